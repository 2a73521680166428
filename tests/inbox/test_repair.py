"""Repair: register, correct and cancel an order, replay an event, and the trace that each leaves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.accounts.models import OperatorAction
from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox.cancel_order import NotCancellable, cancel_order
from receiver.inbox.correct_order import NotCorrectable, UnknownOrder, correct_order
from receiver.inbox.register_order import OrderFactsDiffer, OrderRefused, register_order
from receiver.inbox.replay import (
    preview_replay,
    replay_event,
)
from receiver.orders.models import OrderTransition
from tests.factories import NOW, make_event

from .gestures import attempts, event, ledger, order, outcome, receive, register, row, stands, work

BY: dict[str, Any] = {"actor": "olga", "reason": "the shop sent the wrong sum"}


def actions(session: Session) -> Sequence[OperatorAction]:
    """What operators did, oldest first."""
    return session.scalars(select(OperatorAction).order_by(OperatorAction.id)).all()


def correct(deps: Deps, reference: str = "o_1", **facts: Any) -> Any:
    """Correct an order in a transaction of its own."""
    with deps.sessions.begin() as session:
        return correct_order(session, reference, **BY, now=deps.clock.now(), **facts)


def cancel(deps: Deps, reference: str = "o_1") -> Any:
    """Cancel an order in a transaction of its own."""
    with deps.sessions.begin() as session:
        return cancel_order(session, reference, **BY, now=deps.clock.now())


def again(deps: Deps, row_id: Any, version: int, *, admin: bool = False) -> None:
    """Replay an event in a transaction of its own."""
    with deps.sessions.begin() as session:
        replay_event(session, row_id, row_version=version, **BY, admin=admin, now=deps.clock.now())


def preview(deps: Deps, row_id: Any) -> str:
    """What replay would do now."""
    with deps.sessions() as session:
        return preview_replay(session, deps.settings, row_id)


FACTS: dict[str, Any] = {"reference": "o_1", "amount_minor": 2500, "currency": "EUR", "sources": None}


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"reference": ""}, "bad_reference"),
        ({"reference": "   "}, "bad_reference"),
        ({"reference": "x" * 256}, "bad_reference"),
        ({"reference": "a\0b"}, "bad_reference"),
        ({"reference": "a\ud800"}, "bad_reference"),
        ({"reference": 7}, "bad_reference"),
        ({"amount_minor": 0}, "bad_amount"),
        ({"amount_minor": -1}, "bad_amount"),
        ({"amount_minor": 10**15 + 1}, "bad_amount"),
        ({"amount_minor": True}, "bad_amount"),
        ({"amount_minor": 25.0}, "bad_amount"),
        ({"amount_minor": "2500"}, "bad_amount"),
        ({"currency": "eur"}, "bad_currency"),
        ({"currency": "USDT"}, "bad_currency"),
        ({"currency": "ınr"}, "bad_currency"),
        ({"currency": None}, "bad_currency"),
        ({"sources": []}, "bad_sources"),
        ({"sources": ["demo", 1]}, "bad_sources"),
        ({"sources": ["a\ud800"]}, "bad_sources"),
        ({"sources": "demo"}, "bad_sources"),
    ],
)
def test_facts_that_no_order_can_have_are_refused(session: Session, facts: dict[str, Any], code: str) -> None:
    """Each impossible fact is refused by its code, and nothing is registered."""
    with pytest.raises(OrderRefused) as refused:
        register_order(session, order_id=uuid4(), **{**FACTS, **facts})

    assert refused.value.code == code


def test_registering_is_idempotent(session: Session) -> None:
    """The same facts find the order; other facts are refused and say what is known."""
    first = register_order(session, order_id=uuid4(), **{**FACTS, "sources": ["lesson", "demo"]})
    second = register_order(session, order_id=uuid4(), **{**FACTS, "sources": ("demo", "lesson", "demo")})
    with pytest.raises(OrderFactsDiffer, match=r"25\.00 EUR from demo, lesson"):
        register_order(session, order_id=uuid4(), **{**FACTS, "amount_minor": 2600})

    assert (first.created, second.created) == (True, False)
    assert first.order.id == second.order.id


@pytest.mark.field_case(138)
def test_a_refused_payment_is_repaired(deps: Deps, clock: FixedClock) -> None:
    """Wrong amount: correct the order, replay what was refused: paid, no error shown, the history stays."""
    register(deps, amount_minor=2600)
    (refused,) = receive(deps, event("succeeded"))
    assert refused.reason == "amount"
    assert "refused again (amount)" in preview(deps, refused.id)

    corrected = correct(deps, amount_minor=2500)
    assert corrected.replayable == [refused.id]
    assert preview(deps, refused.id) == "It would be applied: order o_1 pending → paid."
    clock.move(timedelta(days=5))
    again(deps, refused.id, row(deps, refused.id).row_version)
    work(deps)

    done = row(deps, refused.id)
    assert (done.state, done.outcome, done.reason, done.last_error) == ("processed", "applied", None, None)
    assert (done.replays, done.give_up_at) == (1, clock.at + timedelta(hours=72))
    assert attempts(deps, refused.id) == [(1, "failed"), (1, "applied")]
    assert stands(deps) == ("paid", 2500, 0)


def test_a_correction_leaves_a_trace(deps: Deps) -> None:
    """The audit row says who corrected which order, why, and both sets of facts."""
    register(deps, amount_minor=2600)

    correct(deps, amount_minor=2500, sources=["demo"])

    with deps.sessions() as session:
        (action,) = actions(session)
    assert (action.actor, action.action, action.target) == ("olga", "order.correct", "order:o_1")
    assert (action.reason, action.at) == (BY["reason"], NOW)
    assert action.criteria == {
        "before": {"amount_minor": 2600, "currency": "EUR", "sources": None},
        "after": {"amount_minor": 2500, "currency": "EUR", "sources": ["demo"]},
    }


def test_a_correction_wakes_what_waits(deps: Deps) -> None:
    """A refund whose capture was refused waits; correction and replay of the capture let both through."""
    register(deps, amount_minor=2600)
    refused, refund = receive(deps, event("succeeded"), event("refunded", effect_id="rf_1"))
    assert outcome(deps, refund.id) == ("pending", None, "before_capture")

    corrected = correct(deps, amount_minor=2500)
    assert corrected.woken == 1
    again(deps, refused.id, row(deps, refused.id).row_version)
    work(deps)

    assert stands(deps) == ("refunded", 2500, 2500)


def test_a_correction_offers_nameless_refusals_too(deps: Deps) -> None:
    """A refused event that is the order's by its transaction alone is offered for replay as well."""
    register(deps, amount_minor=2600)
    _, nameless = receive(deps, event("pending", sequence=1), event("succeeded", order_reference=None))
    assert nameless.reason == "amount"

    assert correct(deps, amount_minor=2500).replayable == [nameless.id]


def test_sources_can_be_opened_and_left(deps: Deps) -> None:
    """`None` lets any source pay again; sources that are not named stay as they are."""
    register(deps)
    assert correct(deps, sources=["lesson"]).order.sources == ["lesson"]
    (refused,) = receive(deps, event("succeeded"))
    assert refused.reason == "source"
    assert correct(deps, amount_minor=2400).order.sources == ["lesson"]
    assert correct(deps, amount_minor=2500, sources=None).order.sources is None


def test_what_cannot_be_corrected(deps: Deps) -> None:
    """Unknown orders, equal facts, impossible facts and orders with money are refused without a trace."""
    register(deps)
    with pytest.raises(UnknownOrder):
        correct(deps, "o_9", amount_minor=1)
    with pytest.raises(NotCorrectable) as same:
        correct(deps, amount_minor=2500)
    with pytest.raises(OrderRefused):
        correct(deps, currency="EURO")
    receive(deps, event("authorized"))
    with pytest.raises(NotCorrectable) as money:
        correct(deps, amount_minor=2600)

    assert (same.value.code, money.value.code) == ("nothing_to_correct", "ledger_not_empty")
    with deps.sessions() as session:
        assert actions(session) == []


def test_cancel(deps: Deps) -> None:
    """A cancelled order has its transition and audit row; cancelling again changes nothing."""
    register(deps)
    cancelled = cancel(deps)
    cancel(deps)

    assert (cancelled.state, cancelled.cancelled_at) == ("cancelled", NOW)
    with deps.sessions() as session:
        (action,) = actions(session)
        (move,) = session.scalars(select(OrderTransition)).all()
    assert (action.action, action.target) == ("order.cancel", "order:o_1")
    assert (move.from_state, move.to_state, move.by, move.reason) == (
        "pending",
        "cancelled",
        "operator",
        BY["reason"],
    )


def test_money_for_a_cancelled_order_is_refused_and_its_refund_ignored(deps: Deps) -> None:
    """A payment after the cancel fails `order_cancelled`; giving it back is `surplus_returned`."""
    register(deps)
    cancel(deps)
    paid, back = receive(deps, event("succeeded"), event("refunded", effect_id="rf_1"))

    assert (paid.state, paid.reason) == ("failed", "order_cancelled")
    assert (back.state, back.reason) == ("processed", "surplus_returned")
    assert stands(deps) == ("cancelled", 0, 0)
    assert ledger(deps) == []


@pytest.mark.parametrize(
    ("kinds", "code"),
    [(["authorized"], "money_held"), (["succeeded"], "money_held"), (["authorized", "voided"], None)],
)
def test_money_stands_against_a_cancel(deps: Deps, kinds: list[str], code: str | None) -> None:
    """An authorization that is not voided, or a capture, forbids the cancel."""
    register(deps)
    receive(deps, *[event(kind) for kind in kinds])

    if code is None:
        assert cancel(deps).state == "cancelled"
    else:
        with pytest.raises(NotCancellable) as refused:
            cancel(deps)
        assert refused.value.code == code


@pytest.mark.parametrize("facts", [{}, {"order_reference": None}], ids=["by reference", "by transaction"])
@pytest.mark.parametrize("state", ["pending", "in_flight"])
def test_a_waiting_event_stands_against_a_cancel(deps: Deps, state: str, facts: dict[str, Any]) -> None:
    """An event of the order that is still to be worked, found by either way, forbids the cancel."""
    register(deps)
    receive(deps, event("pending", sequence=1))
    with deps.sessions.begin() as session:
        make_event(session, state=state, **{"order_reference": "o_1", "transaction_id": "tx_1", **facts})

    with pytest.raises(NotCancellable) as refused:
        cancel(deps)

    assert refused.value.code == "events_waiting"
    assert order(deps).cancelled_at is None
