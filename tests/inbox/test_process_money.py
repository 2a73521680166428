"""Money through the inbox: refunds, disputes, second payments and contradicting effects."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.orders.models import OrderTransaction

from .gestures import (
    event,
    ledger,
    outcome,
    receive,
    register,
    stands,
    store,
    transitions,
    work,
)

PROCESSED, FAILED, PENDING = "processed", "failed", "pending"


@pytest.mark.field_case(67)
def test_an_effect_told_again_with_another_amount(deps: Deps) -> None:
    """Refund rf_9 of 10.00, then rf_9 of 21.00: the second fails and says both; the total stays."""
    register(deps)
    *_, changed = receive(
        deps,
        event("succeeded"),
        event("refunded", effect_id="rf_9", amount_minor=1000),
        event("refunded", effect_id="rf_9", amount_minor=2100),
    )

    assert (changed.state, changed.reason) == (FAILED, "effect_changed")
    assert changed.last_error == "rf_9 already recorded with 10.00 EUR, event 21.00 EUR"
    assert stands(deps) == ("partially_refunded", 2500, 1000)


@pytest.mark.field_case(61)
def test_refunds_in_parts_and_a_dispute(deps: Deps) -> None:
    """Paid 100.00, refunds 30.00 and 70.00, then a dispute: partially refunded, refunded, dispute kept."""
    register(deps, amount_minor=10_000)
    receive(
        deps,
        event("succeeded", amount_minor=10_000),
        event("refunded", effect_id="rf_1", amount_minor=3_000),
        event("refunded", effect_id="rf_2", amount_minor=7_000),
        event("dispute_opened", effect_id="dp_1", amount_minor=10_000),
    )

    assert transitions(deps) == ["paid", "partially_refunded", "refunded"]
    assert stands(deps) == ("refunded", 10_000, 10_000)
    assert ledger(deps)[-1] == ("dispute", 10_000)


@pytest.mark.field_case(64)
def test_a_refund_above_what_was_captured(deps: Deps, clock: FixedClock) -> None:
    """Paid 50.00, refunds 30.00 and 30.00: the second waits in red, fails at the deadline, counts nothing."""
    register(deps, amount_minor=5_000)
    *_, above = receive(
        deps,
        event("succeeded", amount_minor=5_000),
        event("refunded", effect_id="rf_1", amount_minor=3_000),
        event("refunded", effect_id="rf_2", amount_minor=3_000),
    )
    assert outcome(deps, above.id) == (PENDING, None, "refund_exceeds_captured")
    assert above.last_error == "refunded would be 60.00 EUR, captured is 50.00 EUR"

    clock.move(timedelta(hours=72))
    work(deps)

    assert outcome(deps, above.id) == (FAILED, "refund_exceeds_captured", "refund_exceeds_captured")
    assert stands(deps) == ("partially_refunded", 5_000, 3_000)


@pytest.mark.field_case(80)
def test_a_dispute_of_a_refunded_order(deps: Deps) -> None:
    """Paid, refunded, then disputed: the state stays refunded, the dispute stands beside it."""
    register(deps)
    *_, disputed = receive(
        deps,
        event("succeeded"),
        event("refunded", effect_id="rf_1"),
        event("dispute_opened", effect_id="dp_1"),
    )

    assert disputed.outcome == "applied"
    assert stands(deps) == ("refunded", 2500, 2500)
    assert transitions(deps) == ["paid", "refunded"]


@pytest.mark.field_case(81)
@pytest.mark.parametrize(("end", "state"), [("dispute_won", "paid"), ("dispute_lost", "charged_back")])
def test_a_dispute_ends(deps: Deps, end: str, state: str) -> None:
    """A won dispute leaves the order paid, a lost one charged back."""
    register(deps)
    receive(deps, event("succeeded"), event("dispute_opened", effect_id="dp_1"), event(end, effect_id="dp_1"))

    assert transitions(deps) == ["paid", "disputed", state]


@pytest.mark.field_case(84)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_reversal_in_either_order(deps: Deps, clock: FixedClock, reverse: bool) -> None:
    """Succeeded and reversed a second apart, in both arrival orders, by two workers: refunded."""
    register(deps)
    story = [event("succeeded"), event("refunded")]
    for number, facts in enumerate(reversed(story) if reverse else story):
        store(deps, facts)
        work(deps, f"w{number}")
        clock.move(timedelta(seconds=1))
    work(deps)

    assert stands(deps) == ("refunded", 2500, 2500)
    assert transitions(deps) == ["paid", "refunded"]


@pytest.mark.field_case(89)
def test_a_second_payment_is_refused_and_marked(deps: Deps) -> None:
    """Two transactions pay one order: the first pays, the second fails and is marked for giving back."""
    register(deps)
    _, second = receive(deps, event("succeeded"), event("succeeded", transaction_id="tx_2"))

    assert (second.state, second.reason) == (FAILED, "second_payment")
    assert second.last_error is not None
    assert "tx_1 already paid" in second.last_error
    assert stands(deps) == ("paid", 2500, 0)
    with deps.sessions() as session:
        marks = session.execute(
            select(OrderTransaction.transaction_id, OrderTransaction.paying, OrderTransaction.refused)
        ).all()
    assert {tuple(mark) for mark in marks} == {("tx_1", True, False), ("tx_2", False, True)}


def test_an_effect_of_another_order_is_refused(deps: Deps) -> None:
    """A refund id that stands in another order's ledger contradicts, whichever transaction names it."""
    for number in (1, 2):
        register(deps, f"o_{number}")
        receive(deps, event("succeeded", order_reference=f"o_{number}", transaction_id=f"tx_{number}"))
    refund = event("refunded", effect_id="rf_1", amount_minor=100)
    first, second = receive(
        deps,
        refund,
        event("refunded", effect_id="rf_1", amount_minor=100, order_reference="o_2", transaction_id="tx_2"),
    )

    assert (first.outcome, second.reason) == ("applied", "effect_changed")
    assert stands(deps, "o_2") == ("paid", 2500, 0)


def test_a_transaction_belongs_to_one_order(deps: Deps) -> None:
    """The transaction of one order under another order's reference is refused."""
    register(deps, "o_1")
    register(deps, "o_2")
    _, second = receive(deps, event("succeeded"), event("succeeded", order_reference="o_2"))

    assert (second.state, second.reason) == (FAILED, "transaction")
