"""The columns, checks and indexes of a table that behaves as a queue; pauses and workers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Index, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.schema import SchemaItem

from receiver.db import Base, Instant


class QueueRow:
    """What a row of any queue carries through its life (``docs/life-of-a-row.md``).

    ``next_attempt_at`` is never later than ``give_up_at``. ``attempts`` counts claims since the
    last replay, ``lost`` those of them whose worker vanished. ``outcome`` is set at the end:
    what the row did, or the reason code for which it was refused. ``failed_in`` is the place in our
    own code (``module:function``) where its last attempt broke, empty where nothing of ours broke.
    """

    state: Mapped[str] = mapped_column(Text, default="pending", server_default="pending")
    attempts: Mapped[int] = mapped_column(default=0, server_default="0")
    lost: Mapped[int] = mapped_column(default=0, server_default="0")
    next_attempt_at: Mapped[datetime] = mapped_column(Instant)
    give_up_at: Mapped[datetime] = mapped_column(Instant)
    claim_id: Mapped[UUID | None]
    claimed_at: Mapped[datetime | None] = mapped_column(Instant)
    claimed_until: Mapped[datetime | None] = mapped_column(Instant)
    claimed_by: Mapped[str | None] = mapped_column(Text)
    parked_reason: Mapped[str | None] = mapped_column(Text)
    parked_at: Mapped[datetime | None] = mapped_column(Instant)
    outcome: Mapped[str | None] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Text)
    last_error_code: Mapped[str | None] = mapped_column(Text)
    last_error: Mapped[str | None] = mapped_column(Text)
    replays: Mapped[int] = mapped_column(default=0, server_default="0")
    row_version: Mapped[int] = mapped_column(default=1, server_default="1")
    acknowledged_at: Mapped[datetime | None] = mapped_column(Instant)
    created_at: Mapped[datetime] = mapped_column(Instant)
    updated_at: Mapped[datetime] = mapped_column(Instant)
    finished_at: Mapped[datetime | None] = mapped_column(Instant)
    failed_in: Mapped[str | None] = mapped_column(Text, sort_order=100)


def queue_table_items(table: str, key: str, success: str) -> tuple[SchemaItem, ...]:
    """Checks and partial indexes of one queue: ``key`` is its fairness and pause column.

    States stand as literals so that the partial indexes serve generic plans too.
    """
    ends = f"('{success}', 'failed', 'expired')"
    return (
        CheckConstraint(f"state IN ('pending', 'in_flight', '{success}', 'failed', 'expired')", name="state"),
        CheckConstraint(
            "(state = 'in_flight') = (claim_id IS NOT NULL)"
            " AND (state = 'in_flight') = (claimed_until IS NOT NULL)"
            " AND (state = 'in_flight') = (claimed_at IS NOT NULL)",
            name="claim",
        ),
        CheckConstraint(
            f"(state IN {ends}) = (finished_at IS NOT NULL) AND (state IN {ends}) = (outcome IS NOT NULL)",
            name="finish",
        ),
        CheckConstraint(
            "(parked_reason IS NULL) = (parked_at IS NULL)"
            " AND (parked_reason IS NULL OR state IN ('pending', 'in_flight'))",
            name="parked",
        ),
        CheckConstraint("next_attempt_at <= give_up_at", name="due_before_give_up"),
        CheckConstraint("attempts >= 0 AND lost >= 0 AND replays >= 0", name="counts"),
        Index(
            f"ix_{table}_pending", key, "next_attempt_at", "id", postgresql_where=text("state = 'pending'")
        ),
        Index(
            f"ix_{table}_lost",
            "next_attempt_at",
            "id",
            postgresql_where=text("state = 'pending' AND lost > 0"),
        ),
        Index(f"ix_{table}_give_up", "give_up_at", "id", postgresql_where=text("state = 'pending'")),
        Index(f"ix_{table}_in_flight", "claimed_until", postgresql_where=text("state = 'in_flight'")),
        Index(f"ix_{table}_dead", "id", postgresql_where=text("state IN ('failed', 'expired')")),
        Index(
            f"ix_{table}_dlq",
            text("updated_at DESC"),
            "id",
            # What the status page counts by, so that it reads the index alone.
            postgresql_include=[key, "state", "reason", "outcome", "acknowledged_at"],
            postgresql_where=text("state IN ('failed', 'expired')"),
        ),
    )


def causes_index(table: str, *columns: str) -> Index:
    """The index by which dead letters are grouped by cause: a group's rows in the order of their ends."""
    return Index(
        f"ix_{table}_causes",
        *(text(column) for column in columns),
        "updated_at",
        "id",
        postgresql_where=text("state IN ('failed', 'expired') AND acknowledged_at IS NULL"),
    )


class Pause(Base):
    """A pause of one key of one queue: held rows are never claimed and never expire.

    Resumed (``resumed_at``) it stands until every held row has its time: ``freed`` counts them, and
    ``passed_at``, ``passed_id`` say up to which of the rows that were not due; no id, when all were passed.
    """

    __tablename__ = "pauses"

    queue: Mapped[str] = mapped_column(Text, primary_key=True)
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    by: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    paused_at: Mapped[datetime] = mapped_column(Instant)
    until: Mapped[datetime | None] = mapped_column(Instant)
    resumed_at: Mapped[datetime | None] = mapped_column(Instant)
    resume_spread: Mapped[timedelta | None]
    passed_at: Mapped[datetime | None] = mapped_column(Instant)
    passed_id: Mapped[UUID | None]
    freed: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")

    __table_args__ = (CheckConstraint("queue IN ('inbox', 'deliveries')", name="queue"),)


class Worker(Base):
    """The heartbeat of one worker process."""

    __tablename__ = "workers"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    host: Mapped[str] = mapped_column(Text)
    pid: Mapped[int]
    started_at: Mapped[datetime] = mapped_column(Instant)
    last_seen_at: Mapped[datetime] = mapped_column(Instant)
    last_tick_at: Mapped[datetime | None] = mapped_column(Instant)
    ticks: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    skipped_ticks: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")

    __table_args__ = (Index("ix_workers_last_seen_at", "last_seen_at"),)


class BulkReplay(Base):
    """One replay of many dead letters, worked off by a duty of the worker's.

    ``filter`` is the query mapping that chose the rows, ``counted`` how many there were at the start
    (``row_limit`` at most), ``done`` how many went round again, ``skipped`` how many had recovered or
    changed meanwhile. ``cursor`` is the id of the last row that was looked at; ids grow with time.
    ``announcement`` tells who was warned, where the rows are many.
    """

    __tablename__ = "bulk_replays"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    queue: Mapped[str] = mapped_column(Text)
    filter: Mapped[dict[str, Any]] = mapped_column(JSONB)
    state: Mapped[str] = mapped_column(Text, default="running", server_default="running")
    counted: Mapped[int] = mapped_column(BigInteger)
    done: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    skipped: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    row_limit: Mapped[int | None] = mapped_column(BigInteger)
    spread_seconds: Mapped[int]
    cursor: Mapped[UUID | None]
    by: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    announcement: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Instant)
    updated_at: Mapped[datetime] = mapped_column(Instant)
    finished_at: Mapped[datetime | None] = mapped_column(Instant)

    __table_args__ = (
        CheckConstraint("queue IN ('inbox', 'deliveries')", name="queue"),
        CheckConstraint("state IN ('running', 'cancelled', 'done')", name="state"),
        CheckConstraint("(state = 'running') = (finished_at IS NULL)", name="finish"),
        CheckConstraint(
            "counted >= 0 AND done >= 0 AND skipped >= 0 AND spread_seconds >= 0 AND row_limit > 0",
            name="counts",
        ),
        Index("ix_bulk_replays_running", "id", postgresql_where=text("state = 'running'")),
    )


class ReplayAllowance(Base):
    """The times of the last replays of one key by API tokens: what a limit per minute looks at."""

    __tablename__ = "replay_allowances"

    queue: Mapped[str] = mapped_column(Text, primary_key=True)
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    recent: Mapped[list[datetime]] = mapped_column(ARRAY(Instant))
