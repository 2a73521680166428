"""One event with all that belongs to it: payload, attempts, conflicts, what was read back, order, ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.inbox.models import (
    WebhookConflict,
    WebhookEvent,
    WebhookEventAttempt,
    WebhookFetch,
    WebhookPayload,
)
from receiver.orders.models import LedgerEntry, Order, OrderTransaction


@dataclass(frozen=True, slots=True)
class EventDetail:
    """One event with all that belongs to it; ``order`` is the one it names or its transaction's.

    ``fetches``: the answers of the provider's API by which it was confirmed, the newest first.
    """

    event: WebhookEvent
    payload: WebhookPayload | None
    attempts: Sequence[WebhookEventAttempt]
    conflicts: Sequence[WebhookConflict]
    order: Order | None
    ledger: Sequence[LedgerEntry]
    fetches: Sequence[WebhookFetch] = ()

    @property
    def order_reference(self) -> str | None:
        """The reference of the order that the event belongs to, registered or not."""
        return self.order.reference if self.order else self.event.order_reference


def find_event(session: Session, event_id: UUID) -> EventDetail | None:
    """The event with payload, attempts, conflicts, order and ledger lines; None if unknown."""
    event = session.get(WebhookEvent, event_id)
    if event is None:
        return None
    payload = session.get(WebhookPayload, event.payload_id) if event.payload_id else None
    attempts = session.scalars(
        select(WebhookEventAttempt)
        .where(WebhookEventAttempt.event_id == event_id)
        .order_by(WebhookEventAttempt.replay, WebhookEventAttempt.attempt)
        .limit(500)
    ).all()
    conflicts = session.scalars(
        select(WebhookConflict)
        .where(WebhookConflict.event_id == event_id)
        .order_by(WebhookConflict.id)
        .limit(50)
    ).all()
    order = order_of_event(session, event)
    ledger: Sequence[LedgerEntry] = ()
    if order is not None:
        ledger = session.scalars(
            select(LedgerEntry)
            .where(LedgerEntry.order_id == order.id, LedgerEntry.event_id == event_id)
            .order_by(LedgerEntry.id)
        ).all()
    fetches = session.scalars(
        select(WebhookFetch)
        .where(WebhookFetch.event_id == event_id)
        .order_by(WebhookFetch.id.desc())
        .limit(20)
    ).all()
    return EventDetail(event, payload, attempts, conflicts, order, ledger, fetches)


def order_of_event(session: Session, event: WebhookEvent) -> Order | None:
    """The registered order that the event names, else the one that its transaction belongs to."""
    if event.order_reference is not None:
        return session.scalars(select(Order).where(Order.reference == event.order_reference)).first()
    if event.transaction_id is None:
        return None
    return session.scalars(
        select(Order)
        .join(OrderTransaction, OrderTransaction.order_id == Order.id)
        .where(
            OrderTransaction.source == event.source,
            OrderTransaction.transaction_id == event.transaction_id,
        )
    ).first()
