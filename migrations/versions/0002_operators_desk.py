"""The operator's desk: bulk replays, failure groups, waivers, and where an attempt broke

Expand only: old workers run on the new schema while it rolls out. The index over dead letters is built
beside running writers, outside a transaction; so everything here may be begun again after a failure.
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute('ALTER TABLE webhook_events ADD COLUMN IF NOT EXISTS failed_in text, ADD COLUMN IF NOT EXISTS waived text[]')
    op.create_table('bulk_replays',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('queue', sa.Text(), nullable=False),
    sa.Column('filter', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('state', sa.Text(), server_default='running', nullable=False),
    sa.Column('counted', sa.BigInteger(), nullable=False),
    sa.Column('done', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('skipped', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('row_limit', sa.BigInteger(), nullable=True),
    sa.Column('spread_seconds', sa.Integer(), nullable=False),
    sa.Column('cursor', sa.Uuid(), nullable=True),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('announcement', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("queue IN ('inbox', 'deliveries')", name=op.f('ck_bulk_replays_queue')),
    sa.CheckConstraint("state IN ('running', 'cancelled', 'done')", name=op.f('ck_bulk_replays_state')),
    sa.CheckConstraint("(state = 'running') = (finished_at IS NULL)", name=op.f('ck_bulk_replays_finish')),
    sa.CheckConstraint('counted >= 0 AND done >= 0 AND skipped >= 0 AND spread_seconds >= 0 AND row_limit > 0', name=op.f('ck_bulk_replays_counts')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_bulk_replays')),
    if_not_exists=True)
    op.create_index('ix_bulk_replays_running', 'bulk_replays', ['id'], unique=False, postgresql_where=sa.text("state = 'running'"), if_not_exists=True)
    op.create_table('replay_allowances',
    sa.Column('queue', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('recent', postgresql.ARRAY(sa.DateTime(timezone=True)), nullable=False),
    sa.PrimaryKeyConstraint('queue', 'key', name=op.f('pk_replay_allowances')),
    if_not_exists=True)
    op.create_table('failure_groups',
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('event_type', sa.Text(), nullable=False),
    sa.Column('place', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('note', sa.Text(), server_default='', nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("state IN ('open', 'acknowledged', 'resolved')", name=op.f('ck_failure_groups_state')),
    sa.PrimaryKeyConstraint('source', 'reason', 'event_type', 'place', name=op.f('pk_failure_groups')),
    if_not_exists=True)
    op.create_index('ix_operator_actions_actor', 'operator_actions', ['actor', 'id'], unique=False, if_not_exists=True)
    op.create_index('ix_operator_actions_action', 'operator_actions', ['action', 'id'], unique=False, if_not_exists=True)
    with op.get_context().autocommit_block():
        # It waits for transactions that may write, and blocks none: the limits for locks are not for it.
        op.execute("SET lock_timeout = 0")
        op.execute("SET statement_timeout = 0")
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS ix_webhook_events_causes")
        op.execute(
            "CREATE INDEX CONCURRENTLY ix_webhook_events_causes ON webhook_events"
            " (source, reason, coalesce(event_type, ''), coalesce(failed_in, ''), updated_at, id)"
            " WHERE state IN ('failed', 'expired') AND acknowledged_at IS NULL"
        )
        op.execute("SET lock_timeout = '5s'")
        op.execute("RESET statement_timeout")


def downgrade() -> None:
    op.drop_index('ix_webhook_events_causes', table_name='webhook_events')
    op.drop_index('ix_operator_actions_action', table_name='operator_actions')
    op.drop_index('ix_operator_actions_actor', table_name='operator_actions')
    op.drop_table('failure_groups')
    op.drop_table('replay_allowances')
    op.drop_index('ix_bulk_replays_running', table_name='bulk_replays', postgresql_where=sa.text("state = 'running'"))
    op.drop_table('bulk_replays')
    op.drop_column('webhook_events', 'waived')
    op.drop_column('webhook_events', 'failed_in')
