"""What a provider's API said of an event that counts only once it is read back

Expand only: a new table, which old workers do not know.
"""

from alembic import op
import sqlalchemy as sa

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('webhook_fetches',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('event_id', sa.Uuid(), nullable=False),
    sa.Column('fetched_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('status', sa.Integer(), nullable=False),
    sa.Column('body', sa.LargeBinary(), nullable=True),
    sa.CheckConstraint('octet_length(body) <= 65536', name=op.f('ck_webhook_fetches_body')),
    sa.ForeignKeyConstraint(['event_id'], ['webhook_events.id'], name=op.f('fk_webhook_fetches_event_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_fetches')))
    op.create_index('ix_webhook_fetches_event_id', 'webhook_fetches', ['event_id'], unique=False)


def downgrade() -> None:
    op.drop_index('ix_webhook_fetches_event_id', table_name='webhook_fetches')
    op.drop_table('webhook_fetches')
