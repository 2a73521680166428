"""The roll-up by the hour; and what the status page counts by stands in the index over dead letters

Expand only. The index is built beside running writers and takes the old one's name, outside a transaction;
so everything here may be begun again after a failure.
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('inbox_hours',
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('hour', sa.DateTime(timezone=True), nullable=False),
    sa.Column('result', sa.Text(), nullable=False),
    sa.Column('count', sa.BigInteger(), nullable=False),
    sa.Column('total_ms', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('buckets', postgresql.ARRAY(sa.BigInteger()), nullable=True),
    sa.PrimaryKeyConstraint('source', 'hour', 'result', name=op.f('pk_inbox_hours')),
    if_not_exists=True)
    op.create_index('ix_inbox_hours_hour', 'inbox_hours', ['hour'], unique=False, if_not_exists=True)
    op.create_index('ix_webhook_conflicts_conflict', 'webhook_conflicts', ['id'], unique=False, postgresql_where=sa.text("kind = 'conflict'"), if_not_exists=True)
    op.execute(
        "INSERT INTO inbox_levels (source, minute, waiting, parked, held, dead, oldest_seconds)"
        " SELECT '', minute, sum(waiting), sum(parked), sum(held), sum(dead), max(oldest_seconds)"
        " FROM inbox_levels WHERE source <> '' GROUP BY minute ON CONFLICT DO NOTHING"
    )
    _replace_dlq("(updated_at DESC, id) INCLUDE (source, state, reason, outcome, acknowledged_at)")


def downgrade() -> None:
    _replace_dlq("(updated_at DESC, id)")
    op.execute("DELETE FROM inbox_levels WHERE source = ''")
    op.drop_index('ix_webhook_conflicts_conflict', table_name='webhook_conflicts')
    op.drop_index('ix_inbox_hours_hour', table_name='inbox_hours')
    op.drop_table('inbox_hours')


def _replace_dlq(columns: str) -> None:
    with op.get_context().autocommit_block():
        # It waits for transactions that may write, and blocks none: the limits for locks are not for it.
        op.execute("SET lock_timeout = 0")
        op.execute("SET statement_timeout = 0")
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_webhook_events_dlq_next")
        op.execute(
            f"CREATE INDEX CONCURRENTLY ix_webhook_events_dlq_next ON webhook_events {columns}"
            " WHERE state IN ('failed', 'expired')"
        )
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_webhook_events_dlq")
        op.execute("ALTER INDEX ix_webhook_events_dlq_next RENAME TO ix_webhook_events_dlq")
        op.execute("SET lock_timeout = '5s'")
        op.execute("RESET statement_timeout")
