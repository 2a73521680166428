"""Parking and waking: what comes too early waits, and is worked as soon as what it waits for is there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select

from receiver.accounts.models import OperatorAction
from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.orders.models import OrderTransaction

from .gestures import attempts, event, ledger, order, outcome, receive, register, row, stands, store, work

BARE = {"order_reference": None}
SECOND = timedelta(seconds=1)


@pytest.mark.field_case(74)
def test_an_event_before_its_order_is_applied_when_that_comes(deps: Deps, clock: FixedClock) -> None:
    """A success for an unknown order waits; registering the order makes it due at once, and it pays."""
    (early,) = receive(deps, event("succeeded"))
    assert outcome(deps, early.id) == ("pending", None, "order_unknown")
    assert early.next_attempt_at > early.received_at
    assert early.last_error == "no order o_1"

    clock.move(SECOND)
    register(deps)
    assert row(deps, early.id).next_attempt_at == clock.at
    work(deps)

    assert outcome(deps, early.id) == ("processed", "applied", None)
    assert row(deps, early.id).last_error is None
    assert stands(deps)[0] == "paid"
    assert attempts(deps, early.id) == [(1, "parked"), (2, "applied")]


@pytest.mark.field_case(74)
def test_an_event_whose_order_never_comes_expires(deps: Deps, clock: FixedClock) -> None:
    """If the order never comes, the event ends expired after 72 hours, after few attempts and many looks."""
    (early,) = receive(deps, event("succeeded"))
    for _ in range(24):
        clock.move(timedelta(hours=3))
        work(deps)

    assert outcome(deps, early.id) == ("expired", "order_unknown", "order_unknown")
    assert attempts(deps, early.id) == [(1, "parked"), (2, "expired")]


def test_registering_again_wakes_nothing_and_changes_nothing(deps: Deps) -> None:
    """Registering twice with the same facts is one order."""
    register(deps)
    receive(deps, event("succeeded"))
    register(deps)

    assert stands(deps)[0] == "paid"


@pytest.mark.parametrize("kind", ["refunded", "dispute_opened"])
def test_a_refund_before_its_capture_waits_for_it(deps: Deps, kind: str) -> None:
    """A refund or dispute of a transaction that captured nothing yet waits, and follows the capture."""
    register(deps)
    early, paid = receive(deps, event(kind, effect_id="x_1"), event("succeeded"))

    assert paid.outcome == "applied"
    assert attempts(deps, early.id) == [(1, "parked"), (2, "applied")]
    assert stands(deps)[0] in ("refunded", "disputed")


def test_a_nameless_refund_waits_for_its_transaction(deps: Deps) -> None:
    """A refund that names no order waits for its transaction, and is worked when that becomes known."""
    register(deps)
    early, _ = receive(deps, event("refunded", effect_id="rf_1", **BARE), event("succeeded"))

    assert attempts(deps, early.id) == [(1, "parked"), (2, "applied")]
    assert stands(deps) == ("refunded", 2500, 2500)


def test_a_nameless_refund_follows_a_status(deps: Deps) -> None:
    """A status binds the transaction too: the refund then waits for the capture, and follows it."""
    register(deps)
    (early,) = receive(deps, event("refunded", effect_id="rf_1", **BARE))
    receive(deps, event("pending", sequence=1))
    assert outcome(deps, early.id) == ("pending", None, "before_capture")
    assert attempts(deps, early.id) == [(1, "parked"), (2, "parked")]

    receive(deps, event("succeeded"))

    assert outcome(deps, early.id)[1] == "applied"


def test_a_refund_above_the_captured_waits_for_a_capture(deps: Deps) -> None:
    """A refund above what the parts captured so far is explained by the next part."""
    register(deps)
    first, refund, second = receive(
        deps,
        event("captured", effect_id="cap_1", amount_minor=1000),
        event("refunded", effect_id="rf_1", amount_minor=1500),
        event("captured", effect_id="cap_2", amount_minor=1500),
    )

    assert (first.outcome, second.outcome) == ("applied", "applied")
    assert attempts(deps, refund.id) == [(1, "parked"), (2, "applied")]
    assert stands(deps) == ("partially_refunded", 2500, 1500)


@pytest.mark.parametrize("kind", ["pending", "failed", "authorized", "succeeded"])
def test_what_was_not_ours_goes_round_when_its_transaction_becomes_known(deps: Deps, kind: str) -> None:
    """An event ignored as `not_ours` is replayed by `system` when its transaction turns out to be ours."""
    register(deps)
    (nameless,) = receive(deps, event(kind, **BARE))
    assert outcome(deps, nameless.id) == ("processed", "ignored", "not_ours")

    receive(deps, event("authorized", effect_id="tx_1"))

    assert row(deps, nameless.id).replays == 1
    assert row(deps, nameless.id).outcome in ("applied", "stale", "repeat")
    assert attempts(deps, nameless.id)[0] == (1, "ignored")
    with deps.sessions() as session:
        (action,) = session.scalars(select(OperatorAction)).all()
    assert (action.actor, action.action, action.target) == (
        "system",
        "event.replay",
        f"event:{nameless.id}",
    )


def test_events_of_other_transactions_stay_ignored(deps: Deps) -> None:
    """Only the events of the transaction that became known go round."""
    register(deps)
    other, same_id = receive(
        deps, event("succeeded", transaction_id="tx_9", **BARE), event("succeeded", source="lesson", **BARE)
    )
    receive(deps, event("succeeded"))

    assert row(deps, other.id).replays == row(deps, same_id.id).replays == 0


def test_a_transaction_without_an_order_is_noted_once(deps: Deps) -> None:
    """A payment that is not ours leaves one row for its transaction; an event without meaning leaves none."""
    receive(
        deps,
        event("pending", **BARE),
        event("succeeded", **BARE),
        event("refunded", effect_id="rf_1", **BARE),
        event("other", transaction_id="tx_2", **BARE),
        event("succeeded", transaction_id="tx_3", facts_error="unreadable_amount", **BARE),
    )

    with deps.sessions() as session:
        noted = session.scalars(select(OrderTransaction)).all()
    assert [(one.transaction_id, one.order_id) for one in noted] == [("tx_1", None)]


def test_a_lifted_second_payment_pays(deps: Deps) -> None:
    """When the paying transaction gave everything back, the one refused beside it goes round and pays."""
    register(deps)
    _, second = receive(deps, event("succeeded"), event("succeeded", transaction_id="tx_2"))
    assert second.reason == "second_payment"

    receive(deps, event("refunded", effect_id="rf_1"))

    assert outcome(deps, second.id) == ("processed", "applied", None)
    assert row(deps, second.id).replays == 1
    assert stands(deps) == ("paid", 2500, 0)
    assert ledger(deps) == [("capture", 2500), ("refund", 2500), ("capture", 2500)]


def test_a_surplus_that_went_back_goes_round_too(deps: Deps) -> None:
    """Refund of the second payment (ignored), then of the first: both are refunded, in whichever order."""
    register(deps)
    receive(deps, event("succeeded"), event("succeeded", transaction_id="tx_2"))
    (surplus,) = receive(deps, event("refunded", transaction_id="tx_2", effect_id="rf_2", **BARE))
    assert outcome(deps, surplus.id) == ("processed", "ignored", "surplus_returned")

    receive(deps, event("refunded", effect_id="rf_1"))

    assert row(deps, surplus.id).replays == 1
    assert row(deps, surplus.id).outcome == "applied"
    assert order(deps).state == "refunded"


def test_a_batch_that_lifts_and_refuses_at_once(deps: Deps) -> None:
    """Second payment and the first one's refund in one batch: the refused row goes round after it."""
    register(deps)
    ids = store(
        deps,
        event("succeeded"),
        event("succeeded", transaction_id="tx_2"),
        event("refunded", effect_id="rf_1"),
    )
    work(deps)

    assert [outcome(deps, one)[1] for one in ids] == ["applied"] * 3
    assert stands(deps) == ("paid", 2500, 0)


def test_an_acknowledged_refusal_that_goes_round_is_seen_again(deps: Deps) -> None:
    """A row that `system` sends round is no longer taken as acknowledged."""
    register(deps)
    _, second = receive(deps, event("succeeded"), event("succeeded", transaction_id="tx_2"))
    with deps.sessions.begin() as session:
        session.merge(second).acknowledged_at = second.received_at

    receive(deps, event("refunded", effect_id="rf_1"))

    assert row(deps, second.id).acknowledged_at is None
