"""The receiving half: queue, inbox, orders, accounts

Expand first, contract one release later: old workers run on the new schema while it rolls out.
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

revision = '0001'
down_revision = None
branch_labels = None
depends_on = None

WEBHOOK_INBOX = """
CREATE VIEW webhook_inbox AS
SELECT e.id, e.source, e.provider_event_id, e.event_type, e.state, e.state AS status, e.outcome, e.reason,
       e.order_reference, e.transaction_id, e.amount_minor, e.currency, e.attempts, e.next_attempt_at,
       e.give_up_at, e.parked_reason, e.last_error_code, e.last_error, e.receipts, e.variants,
       e.received_at, e.finished_at, p.payload, p.headers
FROM webhook_events e LEFT JOIN webhook_payloads p ON p.id = e.payload_id
"""


def upgrade() -> None:
    op.create_table('api_tokens',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('token_sha256', sa.Text(), nullable=False),
    sa.Column('scopes', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('last_used_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_api_tokens')),
    sa.UniqueConstraint('name', name=op.f('uq_api_tokens_name')),
    sa.UniqueConstraint('token_sha256', name=op.f('uq_api_tokens_token_sha256'))
    )
    op.create_table('inbox_minutes',
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('minute', sa.DateTime(timezone=True), nullable=False),
    sa.Column('result', sa.Text(), nullable=False),
    sa.Column('count', sa.BigInteger(), nullable=False),
    sa.Column('total_ms', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('buckets', postgresql.ARRAY(sa.BigInteger()), nullable=True),
    sa.PrimaryKeyConstraint('source', 'minute', 'result', name=op.f('pk_inbox_minutes'))
    )
    op.create_index('ix_inbox_minutes_minute', 'inbox_minutes', ['minute'], unique=False)
    op.create_table('operator_actions',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('actor', sa.Text(), nullable=False),
    sa.Column('action', sa.Text(), nullable=False),
    sa.Column('target', sa.Text(), nullable=False),
    sa.Column('criteria', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('count', sa.Integer(), server_default='1', nullable=False),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_operator_actions'))
    )
    op.create_index('ix_operator_actions_target', 'operator_actions', ['target', 'id'], unique=False)
    op.create_table('orders',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('reference', sa.Text(), nullable=False),
    sa.Column('sources', postgresql.ARRAY(sa.Text()), nullable=True),
    sa.Column('amount_minor', sa.BigInteger(), nullable=False),
    sa.Column('currency', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), server_default='pending', nullable=False),
    sa.Column('authorized_minor', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('captured_minor', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('refunded_minor', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('cancelled_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('row_version', sa.Integer(), server_default='1', nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("currency ~ '^[A-Z]{3}$'", name=op.f('ck_orders_currency')),
    sa.CheckConstraint("state IN ('pending', 'failed', 'cancelled', 'authorized', 'partially_paid', 'paid', 'partially_refunded', 'refunded', 'disputed', 'charged_back')", name=op.f('ck_orders_state')),
    sa.CheckConstraint('amount_minor > 0 AND 0 <= refunded_minor AND refunded_minor <= captured_minor AND captured_minor <= amount_minor', name=op.f('ck_orders_totals')),
    sa.CheckConstraint('char_length(reference) BETWEEN 1 AND 255', name=op.f('ck_orders_reference')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_orders')),
    sa.UniqueConstraint('reference', name=op.f('uq_orders_reference'))
    )
    op.create_index('ix_orders_state', 'orders', ['state', 'id'], unique=False)
    op.create_table('pauses',
    sa.Column('queue', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('paused_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('until', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("queue IN ('inbox', 'deliveries')", name=op.f('ck_pauses_queue')),
    sa.PrimaryKeyConstraint('queue', 'key', name=op.f('pk_pauses'))
    )
    op.create_table('users',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('role', sa.Text(), nullable=False),
    sa.Column('password_hash', sa.Text(), nullable=True),
    sa.Column('sign_in_sha256', sa.Text(), nullable=True),
    sa.Column('sign_in_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('session_epoch', sa.Integer(), server_default='1', nullable=False),
    sa.Column('disabled_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('last_signed_in_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("role IN ('viewer', 'operator', 'admin', 'customer')", name=op.f('ck_users_role')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_users')),
    sa.UniqueConstraint('name', name=op.f('uq_users_name'))
    )
    op.create_table('webhook_payloads',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('payload', sa.LargeBinary(), nullable=False),
    sa.Column('headers', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('received_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_payloads'))
    )
    op.create_table('webhook_rejections',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('minute', sa.DateTime(timezone=True), nullable=False),
    sa.Column('remote_address', sa.Text(), nullable=False),
    sa.Column('body_key', sa.Text(), server_default='', nullable=False),
    sa.Column('length', sa.BigInteger(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=True),
    sa.Column('skew_seconds', sa.BigInteger(), nullable=True),
    sa.Column('detail', sa.Text(), nullable=True),
    sa.Column('count', sa.BigInteger(), nullable=False),
    sa.Column('payload', sa.LargeBinary(), nullable=True),
    sa.Column('headers', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_rejections')),
    sa.UniqueConstraint('source', 'reason', 'minute', 'remote_address', 'body_key', name=op.f('uq_webhook_rejections_source_reason_minute_remote_address_body_key'))
    )
    op.create_index('ix_webhook_rejections_minute', 'webhook_rejections', ['minute'], unique=False)
    op.create_table('workers',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('host', sa.Text(), nullable=False),
    sa.Column('pid', sa.Integer(), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('last_seen_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('last_tick_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('ticks', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('skipped_ticks', sa.BigInteger(), server_default='0', nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_workers'))
    )
    op.create_index('ix_workers_last_seen_at', 'workers', ['last_seen_at'], unique=False)
    op.create_table('ledger_entries',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('order_id', sa.Uuid(), nullable=False),
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('transaction_id', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('effect_id', sa.Text(), nullable=False),
    sa.Column('amount_minor', sa.BigInteger(), nullable=True),
    sa.Column('currency', sa.Text(), nullable=True),
    sa.Column('extra', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('event_id', sa.Uuid(), nullable=True),
    sa.Column('provider_event_id', sa.Text(), nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("by IN ('event', 'reconcile', 'operator')", name=op.f('ck_ledger_entries_by')),
    sa.CheckConstraint("kind IN ('authorization', 'void', 'capture', 'refund', 'refund_failed', 'dispute', 'dispute_won', 'dispute_lost')", name=op.f('ck_ledger_entries_kind')),
    sa.ForeignKeyConstraint(['order_id'], ['orders.id'], name=op.f('fk_ledger_entries_order_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_ledger_entries')),
    sa.UniqueConstraint('source', 'kind', 'effect_id', name=op.f('uq_ledger_entries_source_kind_effect_id'))
    )
    op.create_index('ix_ledger_entries_order_id', 'ledger_entries', ['order_id'], unique=False)
    op.create_table('order_transactions',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('order_id', sa.Uuid(), nullable=True),
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('transaction_id', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=True),
    sa.Column('status_sequence', sa.BigInteger(), nullable=True),
    sa.Column('refund_total_minor', sa.BigInteger(), nullable=True),
    sa.Column('paying', sa.Boolean(), server_default='false', nullable=False),
    sa.Column('refused', sa.Boolean(), server_default='false', nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("status IN ('pending', 'failed')", name=op.f('ck_order_transactions_status')),
    sa.ForeignKeyConstraint(['order_id'], ['orders.id'], name=op.f('fk_order_transactions_order_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_order_transactions')),
    sa.UniqueConstraint('source', 'transaction_id', name=op.f('uq_order_transactions_source_transaction_id'))
    )
    op.create_index('ix_order_transactions_order_id', 'order_transactions', ['order_id'], unique=False)
    op.create_table('order_transitions',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('order_id', sa.Uuid(), nullable=False),
    sa.Column('from_state', sa.Text(), nullable=True),
    sa.Column('to_state', sa.Text(), nullable=False),
    sa.Column('event_id', sa.Uuid(), nullable=True),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.CheckConstraint("by IN ('event', 'reconcile', 'operator')", name=op.f('ck_order_transitions_by')),
    sa.ForeignKeyConstraint(['order_id'], ['orders.id'], name=op.f('fk_order_transitions_order_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_order_transitions'))
    )
    op.create_index('ix_order_transitions_order_id', 'order_transitions', ['order_id', 'id'], unique=False)
    op.create_table('webhook_events',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('provider_event_id', sa.Text(), nullable=False),
    sa.Column('event_type', sa.Text(), nullable=True),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('order_reference', sa.Text(), nullable=True),
    sa.Column('transaction_id', sa.Text(), nullable=True),
    sa.Column('effect_id', sa.Text(), nullable=True),
    sa.Column('amount_minor', sa.BigInteger(), nullable=True),
    sa.Column('currency', sa.Text(), nullable=True),
    sa.Column('refund_total_minor', sa.BigInteger(), nullable=True),
    sa.Column('sequence', sa.BigInteger(), nullable=True),
    sa.Column('account', sa.Text(), nullable=True),
    sa.Column('live', sa.Boolean(), nullable=True),
    sa.Column('occurred_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('facts_error', sa.Text(), nullable=True),
    sa.Column('facts_sha256', sa.LargeBinary(), nullable=False),
    sa.Column('payload_sha256', sa.LargeBinary(), nullable=False),
    sa.Column('payload_id', sa.Uuid(), nullable=True),
    sa.Column('item', sa.Integer(), server_default='0', nullable=False),
    sa.Column('key_id', sa.Text(), nullable=True),
    sa.Column('receipts', sa.Integer(), server_default='1', nullable=False),
    sa.Column('variants', sa.Integer(), server_default='0', nullable=False),
    sa.Column('received_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('last_received_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('state', sa.Text(), server_default='pending', nullable=False),
    sa.Column('attempts', sa.Integer(), server_default='0', nullable=False),
    sa.Column('lost', sa.Integer(), server_default='0', nullable=False),
    sa.Column('next_attempt_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('give_up_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('claim_id', sa.Uuid(), nullable=True),
    sa.Column('claimed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('claimed_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('claimed_by', sa.Text(), nullable=True),
    sa.Column('parked_reason', sa.Text(), nullable=True),
    sa.Column('parked_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('outcome', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('last_error_code', sa.Text(), nullable=True),
    sa.Column('last_error', sa.Text(), nullable=True),
    sa.Column('replays', sa.Integer(), server_default='0', nullable=False),
    sa.Column('row_version', sa.Integer(), server_default='1', nullable=False),
    sa.Column('acknowledged_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("(parked_reason IS NULL) = (parked_at IS NULL) AND (parked_reason IS NULL OR state IN ('pending', 'in_flight'))", name=op.f('ck_webhook_events_parked')),
    sa.CheckConstraint("(state = 'in_flight') = (claim_id IS NOT NULL) AND (state = 'in_flight') = (claimed_until IS NOT NULL) AND (state = 'in_flight') = (claimed_at IS NOT NULL)", name=op.f('ck_webhook_events_claim')),
    sa.CheckConstraint("(state IN ('processed', 'failed', 'expired')) = (finished_at IS NOT NULL) AND (state IN ('processed', 'failed', 'expired')) = (outcome IS NOT NULL)", name=op.f('ck_webhook_events_finish')),
    sa.CheckConstraint("kind IN ('pending', 'failed', 'authorized', 'succeeded', 'captured', 'voided', 'refunded', 'refund_total', 'refund_failed', 'dispute_opened', 'dispute_won', 'dispute_lost', 'other')", name=op.f('ck_webhook_events_kind')),
    sa.CheckConstraint("state IN ('pending', 'in_flight', 'processed', 'failed', 'expired')", name=op.f('ck_webhook_events_state')),
    sa.CheckConstraint('attempts >= 0 AND lost >= 0 AND replays >= 0', name=op.f('ck_webhook_events_counts')),
    sa.CheckConstraint('char_length(provider_event_id) BETWEEN 1 AND 137', name=op.f('ck_webhook_events_provider_event_id')),
    sa.CheckConstraint('next_attempt_at <= give_up_at', name=op.f('ck_webhook_events_due_before_give_up')),
    sa.ForeignKeyConstraint(['payload_id'], ['webhook_payloads.id'], name=op.f('fk_webhook_events_payload_id'), ondelete='SET NULL'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_events')),
    sa.UniqueConstraint('source', 'provider_event_id', name=op.f('uq_webhook_events_source_provider_event_id'))
    )
    op.create_index('ix_webhook_events_dead', 'webhook_events', ['id'], unique=False, postgresql_where=sa.text("state IN ('failed', 'expired')"))
    op.create_index('ix_webhook_events_dlq', 'webhook_events', [sa.literal_column('updated_at DESC'), 'id'], unique=False, postgresql_where=sa.text("state IN ('failed', 'expired')"))
    op.create_index('ix_webhook_events_event_type_id', 'webhook_events', ['event_type', 'id'], unique=False)
    op.create_index('ix_webhook_events_give_up', 'webhook_events', ['give_up_at', 'id'], unique=False, postgresql_where=sa.text("state = 'pending'"))
    op.create_index('ix_webhook_events_in_flight', 'webhook_events', ['claimed_until'], unique=False, postgresql_where=sa.text("state = 'in_flight'"))
    op.create_index('ix_webhook_events_lost', 'webhook_events', ['next_attempt_at', 'id'], unique=False, postgresql_where=sa.text("state = 'pending' AND lost > 0"))
    op.create_index('ix_webhook_events_order_reference', 'webhook_events', ['order_reference', 'id'], unique=False, postgresql_where=sa.text('order_reference IS NOT NULL'))
    op.create_index('ix_webhook_events_payload_id', 'webhook_events', ['payload_id'], unique=False)
    op.create_index('ix_webhook_events_pending', 'webhook_events', ['source', 'next_attempt_at', 'id'], unique=False, postgresql_where=sa.text("state = 'pending'"))
    op.create_index('ix_webhook_events_reason_id', 'webhook_events', ['reason', 'id'], unique=False, postgresql_where=sa.text('reason IS NOT NULL'))
    op.create_index('ix_webhook_events_source_id', 'webhook_events', ['source', 'id'], unique=False)
    op.create_index('ix_webhook_events_transaction', 'webhook_events', ['transaction_id', 'source'], unique=False, postgresql_where=sa.text('transaction_id IS NOT NULL'))
    op.create_table('webhook_conflicts',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('event_id', sa.Uuid(), nullable=False),
    sa.Column('payload_sha256', sa.LargeBinary(), nullable=False),
    sa.Column('payload', sa.LargeBinary(), nullable=True),
    sa.Column('headers', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('first_seen_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('last_seen_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('count', sa.Integer(), server_default='1', nullable=False),
    sa.Column('state', sa.Text(), server_default='open', nullable=False),
    sa.Column('by', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.CheckConstraint("kind IN ('variant', 'conflict')", name=op.f('ck_webhook_conflicts_kind')),
    sa.CheckConstraint("state IN ('open', 'released', 'rejected')", name=op.f('ck_webhook_conflicts_state')),
    sa.ForeignKeyConstraint(['event_id'], ['webhook_events.id'], name=op.f('fk_webhook_conflicts_event_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_conflicts')),
    sa.UniqueConstraint('event_id', 'payload_sha256', name=op.f('uq_webhook_conflicts_event_id_payload_sha256'))
    )
    op.create_index('ix_webhook_conflicts_open', 'webhook_conflicts', ['last_seen_at'], unique=False, postgresql_where=sa.text("state = 'open' AND kind = 'conflict'"))
    op.create_table('webhook_event_attempts',
    sa.Column('event_id', sa.Uuid(), nullable=False),
    sa.Column('replay', sa.Integer(), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('duration_ms', sa.BigInteger(), nullable=False),
    sa.Column('outcome', sa.Text(), nullable=False),
    sa.Column('error_code', sa.Text(), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('worker', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['event_id'], ['webhook_events.id'], name=op.f('fk_webhook_event_attempts_event_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('event_id', 'replay', 'attempt', name=op.f('pk_webhook_event_attempts'))
    )
    op.execute(WEBHOOK_INBOX)


def downgrade() -> None:
    op.execute('DROP VIEW webhook_inbox')
    op.drop_table('webhook_event_attempts')
    op.drop_index('ix_webhook_conflicts_open', table_name='webhook_conflicts', postgresql_where=sa.text("state = 'open' AND kind = 'conflict'"))
    op.drop_table('webhook_conflicts')
    op.drop_index('ix_webhook_events_transaction', table_name='webhook_events', postgresql_where=sa.text('transaction_id IS NOT NULL'))
    op.drop_index('ix_webhook_events_source_id', table_name='webhook_events')
    op.drop_index('ix_webhook_events_reason_id', table_name='webhook_events', postgresql_where=sa.text('reason IS NOT NULL'))
    op.drop_index('ix_webhook_events_pending', table_name='webhook_events', postgresql_where=sa.text("state = 'pending'"))
    op.drop_index('ix_webhook_events_payload_id', table_name='webhook_events')
    op.drop_index('ix_webhook_events_order_reference', table_name='webhook_events', postgresql_where=sa.text('order_reference IS NOT NULL'))
    op.drop_index('ix_webhook_events_lost', table_name='webhook_events', postgresql_where=sa.text("state = 'pending' AND lost > 0"))
    op.drop_index('ix_webhook_events_in_flight', table_name='webhook_events', postgresql_where=sa.text("state = 'in_flight'"))
    op.drop_index('ix_webhook_events_give_up', table_name='webhook_events', postgresql_where=sa.text("state = 'pending'"))
    op.drop_index('ix_webhook_events_event_type_id', table_name='webhook_events')
    op.drop_index('ix_webhook_events_dead', table_name='webhook_events', postgresql_where=sa.text("state IN ('failed', 'expired')"))
    op.drop_index('ix_webhook_events_dlq', table_name='webhook_events', postgresql_where=sa.text("state IN ('failed', 'expired')"))
    op.drop_table('webhook_events')
    op.drop_index('ix_order_transitions_order_id', table_name='order_transitions')
    op.drop_table('order_transitions')
    op.drop_index('ix_order_transactions_order_id', table_name='order_transactions')
    op.drop_table('order_transactions')
    op.drop_index('ix_ledger_entries_order_id', table_name='ledger_entries')
    op.drop_table('ledger_entries')
    op.drop_index('ix_workers_last_seen_at', table_name='workers')
    op.drop_table('workers')
    op.drop_index('ix_webhook_rejections_minute', table_name='webhook_rejections')
    op.drop_table('webhook_rejections')
    op.drop_table('webhook_payloads')
    op.drop_table('users')
    op.drop_table('pauses')
    op.drop_index('ix_orders_state', table_name='orders')
    op.drop_table('orders')
    op.drop_index('ix_operator_actions_target', table_name='operator_actions')
    op.drop_table('operator_actions')
    op.drop_index('ix_inbox_minutes_minute', table_name='inbox_minutes')
    op.drop_table('inbox_minutes')
    op.drop_table('api_tokens')
