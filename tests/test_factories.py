"""The factories' rows pass every CHECK, whatever state is asked for."""

from __future__ import annotations

from sqlalchemy.orm import Session

from receiver.orders.models import STATES
from tests import factories


def test_every_state_can_be_made(session: Session) -> None:
    """An event of each state, parked or not, and an order of each state can be flushed."""
    for state in ("pending", "in_flight", "processed", "failed", "expired"):
        factories.make_attempt(session, factories.make_event(session, state=state))
    event = factories.make_event(session, parked_reason="order_unknown")
    factories.make_conflict(session, event)
    for state in STATES:
        order = factories.make_order(session, state=state)
        factories.make_transition(session, order)
        factories.make_transaction(session, order)
        factories.make_ledger_entry(session, order)
    factories.make_pause(session)
    factories.make_worker(session)
    factories.make_user(session)
    factories.make_rejection(session)
    factories.make_minute(session)
