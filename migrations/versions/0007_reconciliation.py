"""Reconciliation: what is asked when, where both sides differ, catch-ups, and where an event came from

Expand only: new tables and indexes, and a column that old processes leave empty.
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('catch_ups',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('from_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('to_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('reached_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('state', sa.Text(), server_default='running', nullable=False),
    sa.Column('listed', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('missing', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('failures', sa.Integer(), server_default='0', nullable=False),
    sa.Column('last_error', sa.Text(), nullable=True),
    sa.Column('next_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('claim_id', sa.Uuid(), nullable=True),
    sa.Column('claimed_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("(state = 'running') = (finished_at IS NULL)", name=op.f('ck_catch_ups_finished')),
    sa.CheckConstraint("state IN ('running', 'done', 'failed', 'cancelled')", name=op.f('ck_catch_ups_state')),
    sa.CheckConstraint('(claim_id IS NULL) = (claimed_until IS NULL)', name=op.f('ck_catch_ups_claim')),
    sa.CheckConstraint('from_at <= reached_at AND reached_at <= to_at', name=op.f('ck_catch_ups_window')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_catch_ups'))
    )
    op.create_index('ix_catch_ups_running', 'catch_ups', ['next_at'], unique=False, postgresql_where=sa.text("state = 'running'"))
    op.create_table('drift_findings',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('order_reference', sa.Text(), server_default='', nullable=False),
    sa.Column('transaction_id', sa.Text(), server_default='', nullable=False),
    sa.Column('ours', sa.Text(), nullable=False),
    sa.Column('theirs', sa.Text(), nullable=False),
    sa.Column('events', postgresql.ARRAY(sa.Uuid()), nullable=True),
    sa.Column('opened_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('seen_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('closed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('closed_because', sa.Text(), nullable=True),
    sa.CheckConstraint("kind IN ('missing', 'amount_differs', 'currency_differs', 'state_differs', 'unknown_to_us')", name=op.f('ck_drift_findings_kind')),
    sa.CheckConstraint('(closed_at IS NULL) = (closed_because IS NULL)', name=op.f('ck_drift_findings_closed')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_drift_findings'))
    )
    op.create_index('ix_drift_findings_order_reference', 'drift_findings', ['order_reference', 'source'], unique=False)
    op.create_index('uq_drift_findings_open', 'drift_findings', ['kind', 'source', 'order_reference', 'transaction_id'], unique=True, postgresql_where=sa.text('closed_at IS NULL'))
    op.create_table('reconcile_marks',
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('enrolled_until', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('source', name=op.f('pk_reconcile_marks'))
    )
    op.create_table('order_checks',
    sa.Column('order_id', sa.Uuid(), nullable=False),
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('next_check_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('checks', sa.Integer(), server_default='0', nullable=False),
    sa.Column('failures', sa.Integer(), server_default='0', nullable=False),
    sa.Column('last_checked_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('last_answered_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('last_result', sa.Text(), nullable=True),
    sa.Column('last_said', sa.Text(), nullable=True),
    sa.Column('claim_id', sa.Uuid(), nullable=True),
    sa.Column('claimed_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("last_result IN ('agrees', 'posted', 'waiting', 'drift', 'not_found', 'not_offered', 'unavailable', 'too_old')", name=op.f('ck_order_checks_last_result')),
    sa.CheckConstraint('(claim_id IS NULL) = (claimed_until IS NULL)', name=op.f('ck_order_checks_claim')),
    sa.ForeignKeyConstraint(['order_id'], ['orders.id'], name=op.f('fk_order_checks_order_id')),
    sa.PrimaryKeyConstraint('order_id', 'source', name=op.f('pk_order_checks'))
    )
    op.create_index('ix_order_checks_due', 'order_checks', ['next_check_at'], unique=False, postgresql_where=sa.text('next_check_at IS NOT NULL'))
    op.create_index('ix_order_checks_unanswered', 'order_checks', ['last_checked_at'], unique=False, postgresql_where=sa.text("last_result IN ('not_offered', 'unavailable', 'too_old')"))
    op.create_index('ix_ledger_entries_refund_failed', 'ledger_entries', ['created_at'], unique=False, postgresql_where=sa.text("kind = 'refund_failed'"))
    op.create_index('ix_orders_unpaid', 'orders', ['created_at'], unique=False, postgresql_where=sa.text("state IN ('pending', 'failed', 'authorized', 'partially_paid')"))
    op.add_column('webhook_events', sa.Column('origin', sa.Text(), nullable=True))
    # In two steps: the check of old rows then locks nobody out.
    op.execute("ALTER TABLE webhook_events ADD CONSTRAINT ck_webhook_events_origin CHECK (origin IN ('reconcile', 'catch_up')) NOT VALID")
    op.execute("ALTER TABLE webhook_events VALIDATE CONSTRAINT ck_webhook_events_origin")


def downgrade() -> None:
    op.drop_column('webhook_events', 'origin')
    op.drop_index('ix_orders_unpaid', table_name='orders', postgresql_where=sa.text("state IN ('pending', 'failed', 'authorized', 'partially_paid')"))
    op.drop_index('ix_ledger_entries_refund_failed', table_name='ledger_entries', postgresql_where=sa.text("kind = 'refund_failed'"))
    op.drop_index('ix_order_checks_unanswered', table_name='order_checks', postgresql_where=sa.text("last_result IN ('not_offered', 'unavailable', 'too_old')"))
    op.drop_index('ix_order_checks_due', table_name='order_checks', postgresql_where=sa.text('next_check_at IS NOT NULL'))
    op.drop_table('order_checks')
    op.drop_table('reconcile_marks')
    op.drop_index('uq_drift_findings_open', table_name='drift_findings', postgresql_where=sa.text('closed_at IS NULL'))
    op.drop_index('ix_drift_findings_order_reference', table_name='drift_findings')
    op.drop_table('drift_findings')
    op.drop_index('ix_catch_ups_running', table_name='catch_ups', postgresql_where=sa.text("state = 'running'"))
    op.drop_table('catch_ups')
