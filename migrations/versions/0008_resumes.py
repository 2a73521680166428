"""How far the resume of a pause has come, since it is done in pieces

Expand only: empty columns, which old processes leave empty.
"""

from alembic import op
import sqlalchemy as sa

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('pauses', sa.Column('resumed_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('pauses', sa.Column('resume_spread', sa.Interval(), nullable=True))
    op.add_column('pauses', sa.Column('passed_at', sa.DateTime(timezone=True), nullable=True))
    op.add_column('pauses', sa.Column('passed_id', sa.Uuid(), nullable=True))
    op.add_column('pauses', sa.Column('freed', sa.BigInteger(), server_default='0', nullable=False))


def downgrade() -> None:
    for column in ('freed', 'passed_id', 'passed_at', 'resume_spread', 'resumed_at'):
        op.drop_column('pauses', column)
