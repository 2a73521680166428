"""What tests of the inbox do again and again: store events, register orders, let a worker work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from sqlalchemy import select

from receiver.deps import Deps
from receiver.inbox.models import WebhookEvent, WebhookEventAttempt
from receiver.inbox.process import Processor
from receiver.inbox.register_order import register_order
from receiver.orders.models import LedgerEntry, Order, OrderTransition
from receiver.providers.payment_event import Kind, PaymentEvent
from tests.factories import NOW, make_event

REFERENCE = "o_1"


def event(kind: str, **facts: Any) -> PaymentEvent:
    """An event of order o_1's transaction tx_1, with the money that its kind carries."""
    values: dict[str, Any] = {"source": "demo", "order_reference": REFERENCE, "transaction_id": "tx_1"}
    if kind in ("authorized", "succeeded", "captured", "refunded", "refund_failed", "dispute_opened"):
        values |= {"amount_minor": 2500, "currency": "EUR"}
    return PaymentEvent(kind=Kind(kind), **{**values, **facts})


def store(deps: Deps, *events: PaymentEvent, **columns: Any) -> list[UUID]:
    """Store events in the inbox at the clock's time, each under an id of its own; returns their row ids."""
    ids = []
    with deps.sessions.begin() as session:
        for facts in events:
            values = {name: value for name, value in asdict(facts).items() if name != "kind"}
            row = make_event(
                session,
                at=deps.clock.now() or NOW,
                payload=None,
                kind=str(facts.kind),
                event_type=f"payment.{facts.kind}",
                **{**values, **columns},
            )
            ids.append(row.id)
    return ids


def register(deps: Deps, reference: str = REFERENCE, amount_minor: int = 2500, currency: str = "EUR") -> None:
    """Register an order."""
    with deps.sessions.begin() as session:
        register_order(
            session,
            order_id=deps.dice.new_id(),
            reference=reference,
            amount_minor=amount_minor,
            currency=currency,
            now=deps.clock.now(),
        )


def work(deps: Deps, worker: str = "w1") -> int:
    """Let a worker work off what is due; returns the rows worked."""
    return Processor(deps, worker).tick()


def receive(deps: Deps, *events: PaymentEvent, **columns: Any) -> list[WebhookEvent]:
    """Store events one by one, work each off, and give all rows as they stand in the end."""
    ids = []
    for facts in events:
        ids += store(deps, facts, **columns)
        work(deps)
    return [row(deps, row_id) for row_id in ids]


def row(deps: Deps, row_id: UUID) -> WebhookEvent:
    """A stored event as it stands."""
    with deps.sessions() as session:
        return session.get_one(WebhookEvent, row_id)


def outcome(deps: Deps, row_id: UUID) -> tuple[str, str | None, str | None]:
    """A stored event's state, outcome, and reason (what it waits for while it is parked)."""
    stored = row(deps, row_id)
    return stored.state, stored.outcome, stored.reason or stored.parked_reason


def attempts(deps: Deps, row_id: UUID) -> list[tuple[int, str]]:
    """(attempt, outcome) of a stored event's finished tries."""
    with deps.sessions() as session:
        query = select(WebhookEventAttempt).where(WebhookEventAttempt.event_id == row_id)
        found = session.scalars(query.order_by(WebhookEventAttempt.replay, WebhookEventAttempt.attempt))
        return [(one.attempt, one.outcome) for one in found]


def order(deps: Deps, reference: str = REFERENCE) -> Order:
    """An order as it stands."""
    with deps.sessions() as session:
        return session.scalars(select(Order).where(Order.reference == reference)).one()


def stands(deps: Deps, reference: str = REFERENCE) -> tuple[str, int, int]:
    """An order's state, captured and refunded minor units."""
    found = order(deps, reference)
    return found.state, found.captured_minor, found.refunded_minor


def ledger(deps: Deps, reference: str = REFERENCE) -> list[tuple[str, int | None]]:
    """(kind, amount) of an order's lines."""
    with deps.sessions() as session:
        query = select(LedgerEntry).join(Order, Order.id == LedgerEntry.order_id)
        lines = session.scalars(query.where(Order.reference == reference).order_by(LedgerEntry.id))
        return [(line.kind, line.amount_minor) for line in lines]


def transitions(deps: Deps, reference: str = REFERENCE) -> Sequence[str]:
    """The states that an order went through after pending."""
    with deps.sessions() as session:
        query = select(OrderTransition.to_state).join(Order, Order.id == OrderTransition.order_id)
        return session.scalars(query.where(Order.reference == reference).order_by(OrderTransition.id)).all()
