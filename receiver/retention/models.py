"""The archive's manifest: its files, and which event's payload lies in which."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from receiver.db import Base, Instant


class ArchiveFile(Base):
    """One file of payloads. ``reserved``: its payloads are chosen, and it is not proven to be written;
    ``written``: it is, and the database still holds some of them; ``done``: it holds none.

    ``sha256`` is that of the file's bytes as they lie there. ``rewrite``: a payload in it was erased on
    request, and the file still holds it. ``previous_name``: the file before the rewriting, still to be
    deleted.
    """

    __tablename__ = "archive_files"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    previous_name: Mapped[str | None] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text, default="reserved", server_default="reserved")
    rewrite: Mapped[bool] = mapped_column(default=False, server_default="false")
    version: Mapped[int] = mapped_column(default=1, server_default="1")
    first_received_at: Mapped[datetime] = mapped_column(Instant)
    last_received_at: Mapped[datetime] = mapped_column(Instant)
    payloads: Mapped[int]
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Instant)
    written_at: Mapped[datetime | None] = mapped_column(Instant)
    verified_at: Mapped[datetime | None] = mapped_column(Instant)

    __table_args__ = (
        CheckConstraint("state IN ('reserved', 'written', 'done')", name="state"),
        CheckConstraint(
            "(state = 'reserved') = (sha256 IS NULL) AND (sha256 IS NULL) = (written_at IS NULL)",
            name="written",
        ),
        Index(
            "ix_archive_files_owed",
            "id",
            postgresql_where=text("state <> 'done' OR rewrite OR previous_name IS NOT NULL"),
        ),
    )


class ArchivedEvent(Base):
    """Whose payload lies in which file. ``restored_at``: it was brought back then; ``erased_at``: it was
    erased on request, and no file holds it once the file's ``rewrite`` is done.
    """

    __tablename__ = "archived_events"

    event_id: Mapped[UUID] = mapped_column(
        ForeignKey("webhook_events.id", ondelete="CASCADE"), primary_key=True
    )
    payload_id: Mapped[UUID] = mapped_column(index=True)
    file_id: Mapped[int] = mapped_column(ForeignKey("archive_files.id"), index=True)
    restored_at: Mapped[datetime | None] = mapped_column(Instant)
    erased_at: Mapped[datetime | None] = mapped_column(Instant)

    __table_args__ = (
        Index("ix_archived_events_restored", "restored_at", postgresql_where=text("restored_at IS NOT NULL")),
    )


class RetentionTurn(Base):
    """Who does retention's work now: one row, taken for a while, so that two workers do not do it at once.

    ``reindexed``: the index after which the month's rewriting goes on; None where it is over.
    """

    __tablename__ = "retention_turns"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    held_until: Mapped[datetime] = mapped_column(Instant)
    turn_id: Mapped[UUID]
    last_run_at: Mapped[datetime | None] = mapped_column(Instant)
    last_result: Mapped[str | None] = mapped_column(Text)
    last_reindex_at: Mapped[datetime | None] = mapped_column(Instant)
    reindexed: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (CheckConstraint("id = 1", name="one"),)
