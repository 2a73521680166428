"""Payloads by age, so that the hourly look for old ones reads those alone

Expand only.
"""

from alembic import op

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index('ix_webhook_payloads_received_at', 'webhook_payloads', ['received_at'], unique=False)


def downgrade() -> None:
    op.drop_index('ix_webhook_payloads_received_at', table_name='webhook_payloads')
