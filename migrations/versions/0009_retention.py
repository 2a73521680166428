"""The archive of payloads: its files, whose payload lies in which, and whose turn it is

Expand only.
"""

from alembic import op
import sqlalchemy as sa

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('archive_files',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=False), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('previous_name', sa.Text(), nullable=True),
    sa.Column('state', sa.Text(), server_default='reserved', nullable=False),
    sa.Column('rewrite', sa.Boolean(), server_default='false', nullable=False),
    sa.Column('version', sa.Integer(), server_default='1', nullable=False),
    sa.Column('first_received_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('last_received_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('payloads', sa.Integer(), nullable=False),
    sa.Column('bytes', sa.BigInteger(), nullable=True),
    sa.Column('sha256', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('written_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('verified_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("state IN ('reserved', 'written', 'done')", name=op.f('ck_archive_files_state')),
    sa.CheckConstraint("(state = 'reserved') = (sha256 IS NULL) AND (sha256 IS NULL) = (written_at IS NULL)", name=op.f('ck_archive_files_written')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_archive_files')),
    sa.UniqueConstraint('name', name=op.f('uq_archive_files_name')))
    op.create_index('ix_archive_files_owed', 'archive_files', ['id'], unique=False, postgresql_where=sa.text("state <> 'done' OR rewrite OR previous_name IS NOT NULL"))
    op.create_table('archived_events',
    sa.Column('event_id', sa.Uuid(), nullable=False),
    sa.Column('payload_id', sa.Uuid(), nullable=False),
    sa.Column('file_id', sa.BigInteger(), nullable=False),
    sa.Column('restored_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('erased_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['event_id'], ['webhook_events.id'], name=op.f('fk_archived_events_event_id'), ondelete='CASCADE'),
    sa.ForeignKeyConstraint(['file_id'], ['archive_files.id'], name=op.f('fk_archived_events_file_id')),
    sa.PrimaryKeyConstraint('event_id', name=op.f('pk_archived_events')))
    op.create_index('ix_archived_events_payload_id', 'archived_events', ['payload_id'], unique=False)
    op.create_index('ix_archived_events_file_id', 'archived_events', ['file_id'], unique=False)
    op.create_index('ix_archived_events_restored', 'archived_events', ['restored_at'], unique=False, postgresql_where=sa.text('restored_at IS NOT NULL'))
    op.create_table('retention_turns',
    sa.Column('id', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('held_until', sa.DateTime(timezone=True), nullable=False),
    sa.Column('turn_id', sa.Uuid(), nullable=False),
    sa.Column('last_run_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('last_result', sa.Text(), nullable=True),
    sa.Column('last_reindex_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('reindexed', sa.Text(), nullable=True),
    sa.CheckConstraint('id = 1', name=op.f('ck_retention_turns_one')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_retention_turns')))


def downgrade() -> None:
    op.drop_table('retention_turns')
    op.drop_table('archived_events')
    op.drop_table('archive_files')
