"""Orders, the transactions seen for them, the ledger and the history of states."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from receiver.db import Base, Instant

STATES = (
    "pending",
    "failed",
    "cancelled",
    "authorized",
    "partially_paid",
    "paid",
    "partially_refunded",
    "refunded",
    "disputed",
    "charged_back",
)
UNPAID = ("pending", "failed", "authorized", "partially_paid")
"""States in which a payment may still be missing: a failed attempt may be followed by a good one."""

ENTRY_KINDS = (
    "authorization",
    "void",
    "capture",
    "refund",
    "refund_failed",
    "dispute",
    "dispute_won",
    "dispute_lost",
)


def _in(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


class Order(Base):
    """An order that the merchant registered; its totals are those of its paying transaction.

    ``sources`` None lets any source pay it. Amounts are minor units of ``currency``.
    """

    __tablename__ = "orders"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    reference: Mapped[str] = mapped_column(Text, unique=True)
    sources: Mapped[list[str] | None] = mapped_column(ARRAY(Text))
    amount_minor: Mapped[int] = mapped_column(BigInteger)
    currency: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text, default="pending", server_default="pending")
    authorized_minor: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    captured_minor: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    refunded_minor: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    cancelled_at: Mapped[datetime | None] = mapped_column(Instant)
    row_version: Mapped[int] = mapped_column(default=1, server_default="1")
    created_at: Mapped[datetime] = mapped_column(Instant)
    updated_at: Mapped[datetime] = mapped_column(Instant)

    __table_args__ = (
        CheckConstraint(_in("state", STATES), name="state"),
        CheckConstraint(
            "amount_minor > 0 AND 0 <= refunded_minor AND refunded_minor <= captured_minor"
            " AND captured_minor <= amount_minor",
            name="totals",
        ),
        CheckConstraint("currency ~ '^[A-Z]{3}$'", name="currency"),
        CheckConstraint("char_length(reference) BETWEEN 1 AND 255", name="reference"),
        Index("ix_orders_state", "state", "id"),
        # Reconciliation asks for those that are not paid; a state of theirs needs no entry anew.
        Index("ix_orders_unpaid", "created_at", postgresql_where=text(_in("state", UNPAID))),
    )


class OrderTransaction(Base):
    """One provider transaction. ``order_id`` None: seen without a reference, no order known yet.

    Such a row is where two workers meet: the one that finds no order for a transaction writes it,
    the one that binds the transaction to an order updates it, and so the later of the two sees
    the earlier one's work. ``status`` pending or failed comes from status events alone.
    """

    __tablename__ = "order_transactions"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    order_id: Mapped[UUID | None] = mapped_column(ForeignKey("orders.id"))
    source: Mapped[str] = mapped_column(Text)
    transaction_id: Mapped[str] = mapped_column(Text)
    status: Mapped[str | None] = mapped_column(Text)
    status_sequence: Mapped[int | None] = mapped_column(BigInteger)
    refund_total_minor: Mapped[int | None] = mapped_column(BigInteger)
    paying: Mapped[bool] = mapped_column(default=False, server_default="false")
    refused: Mapped[bool] = mapped_column(default=False, server_default="false")
    created_at: Mapped[datetime] = mapped_column(Instant)
    updated_at: Mapped[datetime] = mapped_column(Instant)

    __table_args__ = (
        UniqueConstraint("source", "transaction_id"),
        CheckConstraint("status IN ('pending', 'failed')", name="status"),
        Index("ix_order_transactions_order_id", "order_id"),
    )


class LedgerEntry(Base):
    """One money fact, never changed; unique by the provider's own id of the effect.

    ``by``: event, reconcile or operator. ``source`` and ``provider_event_id`` stay as text when
    the event itself is forgotten.
    """

    __tablename__ = "ledger_entries"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    order_id: Mapped[UUID] = mapped_column(ForeignKey("orders.id"))
    source: Mapped[str] = mapped_column(Text)
    transaction_id: Mapped[str] = mapped_column(Text)
    kind: Mapped[str] = mapped_column(Text)
    effect_id: Mapped[str] = mapped_column(Text)
    amount_minor: Mapped[int | None] = mapped_column(BigInteger)
    currency: Mapped[str | None] = mapped_column(Text)
    extra: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    event_id: Mapped[UUID | None]
    provider_event_id: Mapped[str] = mapped_column(Text)
    by: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(Instant)

    __table_args__ = (
        UniqueConstraint("source", "kind", "effect_id"),
        CheckConstraint(_in("kind", ENTRY_KINDS), name="kind"),
        CheckConstraint("by IN ('event', 'reconcile', 'operator')", name="by"),
        Index("ix_ledger_entries_order_id", "order_id"),
        Index(
            "ix_ledger_entries_refund_failed", "created_at", postgresql_where=text("kind = 'refund_failed'")
        ),
    )


class OrderTransition(Base):
    """One change of an order's state, and what caused it."""

    __tablename__ = "order_transitions"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    order_id: Mapped[UUID] = mapped_column(ForeignKey("orders.id"))
    from_state: Mapped[str | None] = mapped_column(Text)
    to_state: Mapped[str] = mapped_column(Text)
    event_id: Mapped[UUID | None]
    at: Mapped[datetime] = mapped_column(Instant)
    by: Mapped[str] = mapped_column(Text)
    reason: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        CheckConstraint("by IN ('event', 'reconcile', 'operator')", name="by"),
        Index("ix_order_transitions_order_id", "order_id", "id"),
    )
