"""What is asked of which API and when, where both sides differ, and catch-ups after an outage."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, Text, Uuid, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from receiver.db import Base, Instant

RESULTS = ("agrees", "posted", "waiting", "drift", "not_found", "not_offered", "unavailable", "too_old")
"""What the last question about an order came to."""

DRIFT = ("missing", "amount_differs", "currency_differs", "state_differs", "unknown_to_us")
"""The kinds of findings: the two sides do not say the same."""

CATCH_UP_STATES = ("running", "done", "failed", "cancelled")


def _in(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


class OrderCheck(Base):
    """One order at one source's API. ``next_check_at`` None: it is asked no more of itself.

    ``checks`` counts answers, ``failures`` the questions since the last answer that got none (its own
    budget: the wait grows with them). ``claim_id`` and ``claimed_until`` are an asker's lease.
    """

    __tablename__ = "order_checks"

    order_id: Mapped[UUID] = mapped_column(ForeignKey("orders.id"), primary_key=True)
    source: Mapped[str] = mapped_column(Text, primary_key=True)
    next_check_at: Mapped[datetime | None] = mapped_column(Instant)
    checks: Mapped[int] = mapped_column(default=0, server_default="0")
    failures: Mapped[int] = mapped_column(default=0, server_default="0")
    last_checked_at: Mapped[datetime | None] = mapped_column(Instant)
    last_answered_at: Mapped[datetime | None] = mapped_column(Instant)
    last_result: Mapped[str | None] = mapped_column(Text)
    last_said: Mapped[str | None] = mapped_column(Text)
    claim_id: Mapped[UUID | None]
    claimed_until: Mapped[datetime | None] = mapped_column(Instant)
    created_at: Mapped[datetime] = mapped_column(Instant)

    __table_args__ = (
        CheckConstraint(_in("last_result", RESULTS), name="last_result"),
        CheckConstraint("(claim_id IS NULL) = (claimed_until IS NULL)", name="claim"),
        Index("ix_order_checks_due", "next_check_at", postgresql_where=text("next_check_at IS NOT NULL")),
        Index(
            "ix_order_checks_unanswered",
            "last_checked_at",
            postgresql_where=text("last_result IN ('not_offered', 'unavailable', 'too_old')"),
        ),
    )


class DriftFinding(Base):
    """Where the provider's record and ours differ: one open row for a kind, source, order and transaction.

    ``ours`` and ``theirs`` are the two sides in words. ``events``: rows posted into the inbox because of
    it; once all are processed it is over. ``closed_because``: agrees, processed, registered, replaced.
    """

    __tablename__ = "drift_findings"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    kind: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    order_reference: Mapped[str] = mapped_column(Text, default="", server_default="")
    transaction_id: Mapped[str] = mapped_column(Text, default="", server_default="")
    ours: Mapped[str] = mapped_column(Text)
    theirs: Mapped[str] = mapped_column(Text)
    events: Mapped[list[UUID] | None] = mapped_column(ARRAY(Uuid))
    opened_at: Mapped[datetime] = mapped_column(Instant)
    seen_at: Mapped[datetime] = mapped_column(Instant)
    closed_at: Mapped[datetime | None] = mapped_column(Instant)
    closed_because: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        CheckConstraint(_in("kind", DRIFT), name="kind"),
        CheckConstraint("(closed_at IS NULL) = (closed_because IS NULL)", name="closed"),
        Index(
            "uq_drift_findings_open",
            "kind",
            "source",
            "order_reference",
            "transaction_id",
            unique=True,
            postgresql_where=text("closed_at IS NULL"),
        ),
        Index("ix_drift_findings_order_reference", "order_reference", "source"),
    )


class CatchUp(Base):
    """A window of a source that is listed at the provider, slice by slice, so that gaps are filled.

    ``reached_at``: up to here every event that the provider lists is in the inbox; a catch-up that was
    interrupted goes on from there. ``missing`` of the ``listed`` ones had not come.
    """

    __tablename__ = "catch_ups"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(Text)
    from_at: Mapped[datetime] = mapped_column(Instant)
    to_at: Mapped[datetime] = mapped_column(Instant)
    reached_at: Mapped[datetime] = mapped_column(Instant)
    state: Mapped[str] = mapped_column(Text, default="running", server_default="running")
    listed: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    missing: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    failures: Mapped[int] = mapped_column(default=0, server_default="0")
    last_error: Mapped[str | None] = mapped_column(Text)
    next_at: Mapped[datetime] = mapped_column(Instant)
    claim_id: Mapped[UUID | None]
    claimed_until: Mapped[datetime | None] = mapped_column(Instant)
    by: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Instant)
    finished_at: Mapped[datetime | None] = mapped_column(Instant)

    __table_args__ = (
        CheckConstraint(_in("state", CATCH_UP_STATES), name="state"),
        CheckConstraint("from_at <= reached_at AND reached_at <= to_at", name="window"),
        CheckConstraint("(state = 'running') = (finished_at IS NULL)", name="finished"),
        CheckConstraint("(claim_id IS NULL) = (claimed_until IS NULL)", name="claim"),
        Index("ix_catch_ups_running", "next_at", postgresql_where=text("state = 'running'")),
    )


class ReconcileMark(Base):
    """Up to which time of registering a source's orders are enrolled for asking."""

    __tablename__ = "reconcile_marks"

    source: Mapped[str] = mapped_column(Text, primary_key=True)
    enrolled_until: Mapped[datetime] = mapped_column(Instant)
