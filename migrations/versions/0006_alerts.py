"""Alerts, and what each channel is to be told of them

Expand only: new tables, which old processes do not know.
"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('alerts',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('level', sa.Text(), nullable=False),
    sa.Column('step', sa.Integer(), nullable=False),
    sa.Column('facts', postgresql.JSONB(), nullable=False),
    sa.Column('since', sa.DateTime(timezone=True), nullable=False),
    sa.Column('seen_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('opened_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('absent_since', sa.DateTime(timezone=True), nullable=True),
    sa.Column('noticed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('notified_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('closed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('acknowledged_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('acknowledged_by', sa.Text(), nullable=True),
    sa.CheckConstraint("level IN ('page', 'warn')", name=op.f('ck_alerts_level')),
    sa.CheckConstraint('(acknowledged_at IS NULL) = (acknowledged_by IS NULL)', name=op.f('ck_alerts_acknowledged')),
    sa.CheckConstraint('closed_at IS NULL OR opened_at IS NOT NULL', name=op.f('ck_alerts_opened')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_alerts')))
    op.create_index('uq_alerts_open', 'alerts', ['kind', 'key'], unique=True, postgresql_where=sa.text('closed_at IS NULL'))
    op.create_index('ix_alerts_closed_at', 'alerts', ['closed_at'], unique=False, postgresql_where=sa.text('closed_at IS NOT NULL'))
    op.create_table('alert_notices',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('alert_id', sa.BigInteger(), nullable=False),
    sa.Column('turn', sa.Text(), nullable=False),
    sa.Column('level', sa.Text(), nullable=False),
    sa.Column('channel', sa.Text(), nullable=False),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), server_default='due', nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('due_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('attempts', sa.Integer(), server_default='0', nullable=False),
    sa.Column('claim_id', sa.Uuid(), nullable=True),
    sa.Column('claimed_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('told_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('last_error', sa.Text(), nullable=True),
    sa.CheckConstraint("turn IN ('opened', 'worse', 'reminder', 'recovered')", name=op.f('ck_alert_notices_turn')),
    sa.CheckConstraint("state IN ('due', 'told', 'dropped')", name=op.f('ck_alert_notices_state')),
    sa.CheckConstraint("(state = 'told') = (told_at IS NOT NULL)", name=op.f('ck_alert_notices_told')),
    sa.ForeignKeyConstraint(['alert_id'], ['alerts.id'], name=op.f('fk_alert_notices_alert_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_alert_notices')))
    op.create_index('ix_alert_notices_alert_id', 'alert_notices', ['alert_id'], unique=False)
    op.create_index('ix_alert_notices_due', 'alert_notices', ['channel', 'id'], unique=False, postgresql_where=sa.text("state = 'due'"))


def downgrade() -> None:
    op.drop_table('alert_notices')
    op.drop_table('alerts')
