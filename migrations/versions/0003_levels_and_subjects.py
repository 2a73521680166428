"""How full the inbox stood, a minute each; and who a user is at an OpenID Connect issuer

Expand only: the column comes without a default, so that no row is rewritten.
"""

from alembic import op
import sqlalchemy as sa

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('inbox_levels',
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('minute', sa.DateTime(timezone=True), nullable=False),
    sa.Column('waiting', sa.BigInteger(), nullable=False),
    sa.Column('parked', sa.BigInteger(), nullable=False),
    sa.Column('held', sa.BigInteger(), nullable=False),
    sa.Column('dead', sa.BigInteger(), nullable=False),
    sa.Column('oldest_seconds', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('source', 'minute', name=op.f('pk_inbox_levels')))
    op.create_index('ix_inbox_levels_minute', 'inbox_levels', ['minute'], unique=False)
    op.add_column('users', sa.Column('oidc_subject', sa.Text(), nullable=True))
    op.create_unique_constraint(op.f('uq_users_oidc_subject'), 'users', ['oidc_subject'])


def downgrade() -> None:
    op.drop_constraint(op.f('uq_users_oidc_subject'), 'users', type_='unique')
    op.drop_column('users', 'oidc_subject')
    op.drop_index('ix_inbox_levels_minute', table_name='inbox_levels')
    op.drop_table('inbox_levels')
