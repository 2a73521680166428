"""The inbox: unique events, their payloads, attempts, conflicts, rejections and the roll-up."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from receiver.db import Base, Instant
from receiver.queue.models import QueueRow, causes_index, queue_table_items

KINDS = (
    "pending",
    "failed",
    "authorized",
    "succeeded",
    "captured",
    "voided",
    "refunded",
    "refund_total",
    "refund_failed",
    "dispute_opened",
    "dispute_won",
    "dispute_lost",
    "other",
)


class WebhookPayload(Base):
    """The exact bytes and the headers of one request, written with its first event."""

    __tablename__ = "webhook_payloads"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)
    headers: Mapped[list[Any]] = mapped_column(JSONB)
    received_at: Mapped[datetime] = mapped_column(Instant)

    # Retention looks for old ones every hour; the young ones are most.
    __table_args__ = (Index("ix_webhook_payloads_received_at", "received_at"),)


class WebhookEvent(QueueRow, Base):
    """One notification, once, whatever the provider repeats; narrow, since its state changes often.

    ``provider_event_id`` has 1 to 128 characters from outside, 137 with the ``#`` suffix of a
    released conflict. ``facts_error`` names the first fact that could not be read.
    ``facts_sha256`` covers the facts that decide, never a time; ``payload_sha256`` the bytes.
    ``waived`` names the checks that an admin's release told the rules to skip. ``origin``: reconcile or
    catch_up where no callback but a question of ours brought it; None: it was sent to us.
    """

    __tablename__ = "webhook_events"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(Text)
    provider_event_id: Mapped[str] = mapped_column(Text)
    event_type: Mapped[str | None] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    order_reference: Mapped[str | None] = mapped_column(Text)
    transaction_id: Mapped[str | None] = mapped_column(Text)
    effect_id: Mapped[str | None] = mapped_column(Text)
    amount_minor: Mapped[int | None] = mapped_column(BigInteger)
    currency: Mapped[str | None] = mapped_column(Text)
    refund_total_minor: Mapped[int | None] = mapped_column(BigInteger)
    sequence: Mapped[int | None] = mapped_column(BigInteger)
    account: Mapped[str | None] = mapped_column(Text)
    live: Mapped[bool | None]
    occurred_at: Mapped[datetime | None] = mapped_column(Instant)
    facts_error: Mapped[str | None] = mapped_column(Text)
    facts_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    payload_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    payload_id: Mapped[UUID | None] = mapped_column(ForeignKey("webhook_payloads.id", ondelete="SET NULL"))
    item: Mapped[int] = mapped_column(default=0, server_default="0")
    key_id: Mapped[str | None] = mapped_column(Text)
    receipts: Mapped[int] = mapped_column(default=1, server_default="1")
    variants: Mapped[int] = mapped_column(default=0, server_default="0")
    received_at: Mapped[datetime] = mapped_column(Instant)
    last_received_at: Mapped[datetime] = mapped_column(Instant)
    waived: Mapped[list[str] | None] = mapped_column(ARRAY(Text), sort_order=101)
    origin: Mapped[str | None] = mapped_column(Text, sort_order=102)

    __table_args__ = (
        UniqueConstraint("source", "provider_event_id"),
        CheckConstraint("char_length(provider_event_id) BETWEEN 1 AND 137", name="provider_event_id"),
        CheckConstraint(f"kind IN ({', '.join(repr(kind) for kind in KINDS)})", name="kind"),
        CheckConstraint("origin IN ('reconcile', 'catch_up')", name="origin"),
        *queue_table_items("webhook_events", key="source", success="processed"),
        Index("ix_webhook_events_source_id", "source", "id"),
        Index("ix_webhook_events_event_type_id", "event_type", "id"),
        Index("ix_webhook_events_reason_id", "reason", "id", postgresql_where=text("reason IS NOT NULL")),
        Index(
            "ix_webhook_events_order_reference",
            "order_reference",
            "id",
            postgresql_where=text("order_reference IS NOT NULL"),
        ),
        Index(
            "ix_webhook_events_transaction",
            "transaction_id",
            "source",
            postgresql_where=text("transaction_id IS NOT NULL"),
        ),
        Index("ix_webhook_events_payload_id", "payload_id"),
        causes_index(
            "webhook_events", "source", "reason", "coalesce(event_type, '')", "coalesce(failed_in, '')"
        ),
    )


class WebhookEventAttempt(Base):
    """One finished try at one event, written when it ends (a lost one by reclaim)."""

    __tablename__ = "webhook_event_attempts"

    event_id: Mapped[UUID] = mapped_column(
        ForeignKey("webhook_events.id", ondelete="CASCADE"), primary_key=True
    )
    replay: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    started_at: Mapped[datetime] = mapped_column(Instant)
    duration_ms: Mapped[int] = mapped_column(BigInteger)
    outcome: Mapped[str] = mapped_column(Text)
    error_code: Mapped[str | None] = mapped_column(Text)
    error: Mapped[str | None] = mapped_column(Text)
    worker: Mapped[str | None] = mapped_column(Text)


class WebhookFetch(Base):
    """What the provider's API answered for an event that had to be read back, cut after 64 KiB.

    ``body`` None: erased with the payload.
    """

    __tablename__ = "webhook_fetches"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    event_id: Mapped[UUID] = mapped_column(ForeignKey("webhook_events.id", ondelete="CASCADE"), index=True)
    fetched_at: Mapped[datetime] = mapped_column(Instant)
    status: Mapped[int]
    body: Mapped[bytes | None] = mapped_column(LargeBinary)

    __table_args__ = (CheckConstraint("octet_length(body) <= 65536", name="body"),)


class WebhookConflict(Base):
    """Other bytes under a known event id: a variant (same facts) or a conflict (other facts)."""

    __tablename__ = "webhook_conflicts"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    event_id: Mapped[UUID] = mapped_column(ForeignKey("webhook_events.id", ondelete="CASCADE"))
    payload_sha256: Mapped[bytes] = mapped_column(LargeBinary)
    payload: Mapped[bytes | None] = mapped_column(LargeBinary)
    headers: Mapped[list[Any] | None] = mapped_column(JSONB)
    kind: Mapped[str] = mapped_column(Text)
    first_seen_at: Mapped[datetime] = mapped_column(Instant)
    last_seen_at: Mapped[datetime] = mapped_column(Instant)
    count: Mapped[int] = mapped_column(default=1, server_default="1")
    state: Mapped[str] = mapped_column(Text, default="open", server_default="open")
    by: Mapped[str | None] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        UniqueConstraint("event_id", "payload_sha256"),
        CheckConstraint("kind IN ('variant', 'conflict')", name="kind"),
        CheckConstraint("state IN ('open', 'released', 'rejected')", name="state"),
        Index(
            "ix_webhook_conflicts_open",
            "last_seen_at",
            postgresql_where=text("state = 'open' AND kind = 'conflict'"),
        ),
        # Variants are quiet, and there may be very many.
        Index("ix_webhook_conflicts_conflict", "id", postgresql_where=text("kind = 'conflict'")),
    )


class WebhookRejection(Base):
    """Refused requests of one kind in one minute; a body only where the signature was right.

    ``body_key`` is the sha256 (hex) of an authentic body that could not be read, else empty.
    """

    __tablename__ = "webhook_rejections"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    source: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    minute: Mapped[datetime] = mapped_column(Instant)
    remote_address: Mapped[str] = mapped_column(Text)
    body_key: Mapped[str] = mapped_column(Text, default="", server_default="")
    length: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(Text)
    skew_seconds: Mapped[int | None] = mapped_column(BigInteger)
    detail: Mapped[str | None] = mapped_column(Text)
    count: Mapped[int] = mapped_column(BigInteger)
    payload: Mapped[bytes | None] = mapped_column(LargeBinary)
    headers: Mapped[list[Any] | None] = mapped_column(JSONB)

    __table_args__ = (
        UniqueConstraint("source", "reason", "minute", "remote_address", "body_key"),
        Index("ix_webhook_rejections_minute", "minute"),
    )


class InboxMinute(Base):
    """The roll-up that every picture reads: counts and times to applied, a minute each.

    ``buckets[i]`` counts the rows whose time from receipt to their end was at most
    ``receiver.inbox.minutes.BOUNDS_MS[i]``; the last bucket has no bound.
    """

    __tablename__ = "inbox_minutes"

    source: Mapped[str] = mapped_column(Text, primary_key=True)
    minute: Mapped[datetime] = mapped_column(Instant, primary_key=True)
    result: Mapped[str] = mapped_column(Text, primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
    total_ms: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    buckets: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))

    __table_args__ = (Index("ix_inbox_minutes_minute", "minute"),)


class InboxHour(Base):
    """`inbox_minutes` summed up, an hour each: what long pictures and the counters of `/metrics` read.

    Written by `receiver.inbox.hours` alone; the running hour and those just over are not here yet.
    """

    __tablename__ = "inbox_hours"

    source: Mapped[str] = mapped_column(Text, primary_key=True)
    hour: Mapped[datetime] = mapped_column(Instant, primary_key=True)
    result: Mapped[str] = mapped_column(Text, primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
    total_ms: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    buckets: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))

    __table_args__ = (Index("ix_inbox_hours_hour", "hour"),)


class InboxLevel(Base):
    """How full the inbox of a source stood in a minute, written by the worker; counts are bounded. A row
    of the empty source holds the sums of all.

    ``waiting`` rows are pending, neither parked nor held. ``oldest_seconds`` is the age of the oldest
    pending row that is not held, None where there is none.
    """

    __tablename__ = "inbox_levels"

    source: Mapped[str] = mapped_column(Text, primary_key=True)
    minute: Mapped[datetime] = mapped_column(Instant, primary_key=True)
    waiting: Mapped[int] = mapped_column(BigInteger)
    parked: Mapped[int] = mapped_column(BigInteger)
    held: Mapped[int] = mapped_column(BigInteger)
    dead: Mapped[int] = mapped_column(BigInteger)
    oldest_seconds: Mapped[int | None] = mapped_column(BigInteger)

    __table_args__ = (Index("ix_inbox_levels_minute", "minute"),)


class FailureGroup(Base):
    """What people say about the dead letters of one cause; empty texts where the cause has none.

    ``at`` is when ``state`` was set. A resolved group whose cause ends another row is open again.
    """

    __tablename__ = "failure_groups"

    source: Mapped[str] = mapped_column(Text, primary_key=True)
    reason: Mapped[str] = mapped_column(Text, primary_key=True)
    event_type: Mapped[str] = mapped_column(Text, primary_key=True)
    place: Mapped[str] = mapped_column(Text, primary_key=True)
    state: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text, default="", server_default="")
    by: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime] = mapped_column(Instant)

    __table_args__ = (CheckConstraint("state IN ('open', 'acknowledged', 'resolved')", name="state"),)
