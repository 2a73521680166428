"""Alerts, and the notices of them that each channel is to be sent: written first, told afterwards."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from receiver.db import Base, Instant


class Alert(Base):
    """Something wrong, from its first sight to its end; one of a kind and key that is not closed.

    ``seen_at`` is the first sight; ``opened_at`` None: it has not held for long enough to be told.
    ``since`` is when what is wrong began, ``absent_since`` since when it is gone. ``noticed_at`` is when it
    was last to be told, ``notified_at`` when a channel last took a notice of it. One that a person
    acknowledged is not told again until it becomes worse or is over.
    """

    __tablename__ = "alerts"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    kind: Mapped[str] = mapped_column(Text)
    key: Mapped[str] = mapped_column(Text)
    level: Mapped[str] = mapped_column(Text)
    step: Mapped[int]
    facts: Mapped[dict[str, Any]] = mapped_column(JSONB)
    since: Mapped[datetime] = mapped_column(Instant)
    seen_at: Mapped[datetime] = mapped_column(Instant)
    opened_at: Mapped[datetime | None] = mapped_column(Instant)
    absent_since: Mapped[datetime | None] = mapped_column(Instant)
    noticed_at: Mapped[datetime | None] = mapped_column(Instant)
    notified_at: Mapped[datetime | None] = mapped_column(Instant)
    closed_at: Mapped[datetime | None] = mapped_column(Instant)
    acknowledged_at: Mapped[datetime | None] = mapped_column(Instant)
    acknowledged_by: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        CheckConstraint("level IN ('page', 'warn')", name="level"),
        CheckConstraint("(acknowledged_at IS NULL) = (acknowledged_by IS NULL)", name="acknowledged"),
        CheckConstraint("closed_at IS NULL OR opened_at IS NOT NULL", name="opened"),
        Index("uq_alerts_open", "kind", "key", unique=True, postgresql_where=text("closed_at IS NULL")),
        Index("ix_alerts_closed_at", "closed_at", postgresql_where=text("closed_at IS NOT NULL")),
    )


class AlertNotice(Base):
    """One text for one channel. A channel that is down keeps it due; it is sent again until it is taken.

    ``turn`` is what it tells of its alert. ``claimed_until`` is a teller's lease: of one that vanished
    between sending and noting another one takes over, and sends again. A dropped one was overtaken by a later
    reminder, or its channel is configured no more.
    """

    __tablename__ = "alert_notices"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    alert_id: Mapped[int] = mapped_column(ForeignKey("alerts.id", ondelete="CASCADE"), index=True)
    turn: Mapped[str] = mapped_column(Text)
    level: Mapped[str] = mapped_column(Text)
    channel: Mapped[str] = mapped_column(Text)
    subject: Mapped[str] = mapped_column(Text)
    body: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text, default="due", server_default="due")
    created_at: Mapped[datetime] = mapped_column(Instant)
    due_at: Mapped[datetime] = mapped_column(Instant)
    attempts: Mapped[int] = mapped_column(default=0, server_default="0")
    claim_id: Mapped[UUID | None]
    claimed_until: Mapped[datetime | None] = mapped_column(Instant)
    told_at: Mapped[datetime | None] = mapped_column(Instant)
    last_error: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        CheckConstraint("turn IN ('opened', 'worse', 'reminder', 'recovered')", name="turn"),
        CheckConstraint("state IN ('due', 'told', 'dropped')", name="state"),
        CheckConstraint("(state = 'told') = (told_at IS NOT NULL)", name="told"),
        Index("ix_alert_notices_due", "channel", "id", postgresql_where=text("state = 'due'")),
    )
