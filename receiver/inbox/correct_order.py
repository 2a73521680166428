"""Correct a wrongly registered order while its ledger is empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID

from sqlalchemy import exists, or_, select, tuple_
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import ColumnElement

from receiver.accounts.actions import record
from receiver.db import at
from receiver.inbox.models import WebhookEvent
from receiver.inbox.register_order import check_facts
from receiver.inbox.wake import wake
from receiver.orders.models import LedgerEntry, Order, OrderTransaction
from receiver.queue.table import DEAD_LETTERS


class Unset(Enum):
    """Tells `sources=None` (any source) from sources that are left as they are."""

    UNSET = "unset"


UNSET = Unset.UNSET


class UnknownOrder(Exception):
    """No order of that reference."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"no order {reference}")
        self.code = "order_unknown"
        self.detail = str(self)


class NotCorrectable(Exception):
    """``code``: ledger_not_empty (money was recorded under the facts), nothing_to_correct."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Corrected:
    """The order, how many parked events were woken, and the refused ones offered for replay."""

    order: Order
    woken: int
    replayable: list[UUID]


def lock_order(session: Session, reference: str) -> Order:
    """The order, locked for this transaction. Raises UnknownOrder."""
    order = session.scalars(
        select(Order).where(Order.reference == reference).with_for_update(key_share=True)
    ).one_or_none()
    if order is None:
        raise UnknownOrder(reference)
    return order


def correct_order(
    session: Session,
    reference: str,
    *,
    amount_minor: int | None = None,
    currency: str | None = None,
    sources: Sequence[str] | Unset | None = UNSET,
    actor: str,
    reason: str,
    now: datetime | None = None,
) -> Corrected:
    """Change an order's amount (minor units), currency or sources, with the audit row.

    Raises UnknownOrder, NotCorrectable, or OrderRefused for facts that no order can have.
    """
    order = lock_order(session, reference)
    before = {"amount_minor": order.amount_minor, "currency": order.currency, "sources": order.sources}
    wanted_sources = order.sources if isinstance(sources, Unset) else sources
    wanted = (
        order.amount_minor if amount_minor is None else amount_minor,
        order.currency if currency is None else currency,
        None if wanted_sources is None else sorted(set(wanted_sources)),
    )
    after = dict(zip(("amount_minor", "currency", "sources"), wanted, strict=True))
    check_facts(reference, *wanted)
    if after == before:
        raise NotCorrectable("nothing_to_correct", f"{reference} has these facts already")
    if session.scalar(select(exists().where(LedgerEntry.order_id == order.id))):
        raise NotCorrectable(
            "ledger_not_empty", f"money is recorded for {reference}: its facts can no longer be changed"
        )
    order.amount_minor, order.currency, order.sources = wanted
    order.row_version += 1
    order.updated_at = at(now)
    session.flush()
    session.refresh(order)
    record(
        session,
        actor=actor,
        action="order.correct",
        target=f"order:{reference}",
        criteria={"before": before, "after": after},
        reason=reason,
        now=now,
    )
    woken = wake(session, [reference], transactions_of(session, order), now=now)
    return Corrected(order, woken, refused_events(session, order))


def transactions_of(session: Session, order: Order) -> list[tuple[str, str]]:
    """The (source, transaction id) pairs bound to an order."""
    rows = session.execute(
        select(OrderTransaction.source, OrderTransaction.transaction_id).where(
            OrderTransaction.order_id == order.id
        )
    )
    return [(source, transaction_id) for source, transaction_id in rows]


def refused_events(session: Session, order: Order) -> list[UUID]:
    """The order's dead letters, oldest first: what a repair is followed by replaying."""
    query = select(WebhookEvent.id).where(of_order(session, order), WebhookEvent.state.in_(DEAD_LETTERS))
    return list(session.scalars(query.order_by(WebhookEvent.id)))


def of_order(session: Session, order: Order) -> ColumnElement[bool]:
    """The condition for an order's events: by its reference, or by a transaction bound to it."""
    by_reference = WebhookEvent.order_reference == order.reference
    pairs = transactions_of(session, order)
    if not pairs:
        return by_reference
    return or_(by_reference, tuple_(WebhookEvent.source, WebhookEvent.transaction_id).in_(pairs))
