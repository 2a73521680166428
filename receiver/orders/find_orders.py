"""Finding orders: the list with keyset paging, and one order with all that was recorded of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.orders.models import LedgerEntry, Order, OrderTransaction, OrderTransition

MAX_PAGE = 1000


@dataclass(frozen=True, slots=True)
class OrderPage:
    """Orders, newest first. ``next_before`` None: there are no more."""

    rows: Sequence[Order]
    next_before: UUID | None


@dataclass(frozen=True, slots=True)
class OrderDetail:
    """One order with its ledger, its changes of state and its provider transactions, oldest first."""

    order: Order
    ledger: Sequence[LedgerEntry]
    transitions: Sequence[OrderTransition]
    transactions: Sequence[OrderTransaction]

    @property
    def is_correctable(self) -> bool:
        """Whether its facts may still be corrected: its ledger is empty and it is not cancelled."""
        return not self.ledger and self.order.cancelled_at is None


def list_orders(
    session: Session,
    *,
    state: str | None = None,
    text: str | None = None,
    before: UUID | None = None,
    limit: int = 50,
) -> OrderPage:
    """Orders of a state, or with exactly the reference ``text``, newest first (1 to 1000)."""
    limit = max(1, min(limit, MAX_PAGE))
    query = select(Order)
    if state is not None:
        query = query.where(Order.state == state)
    if text is not None:
        query = query.where(Order.reference == text)
    if before is not None:
        query = query.where(Order.id < before)
    rows = session.scalars(query.order_by(Order.id.desc()).limit(limit + 1)).all()
    more = len(rows) > limit
    return OrderPage(rows[:limit], rows[limit - 1].id if more else None)


def find_order(session: Session, reference: str) -> Order | None:
    """The order of a reference (compared exactly), or None."""
    return session.scalars(select(Order).where(Order.reference == reference)).first()


def order_detail(session: Session, reference: str) -> OrderDetail | None:
    """The order of a reference with all that was recorded of it, or None."""
    order = find_order(session, reference)
    if order is None:
        return None
    ledger = session.scalars(
        select(LedgerEntry).where(LedgerEntry.order_id == order.id).order_by(LedgerEntry.id).limit(1000)
    ).all()
    transitions = session.scalars(
        select(OrderTransition)
        .where(OrderTransition.order_id == order.id)
        .order_by(OrderTransition.id)
        .limit(1000)
    ).all()
    transactions = session.scalars(
        select(OrderTransaction)
        .where(OrderTransaction.order_id == order.id)
        .order_by(OrderTransaction.id)
        .limit(1000)
    ).all()
    return OrderDetail(order, ledger, transitions, transactions)
