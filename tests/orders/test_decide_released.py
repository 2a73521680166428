"""What an admin's release makes the rules skip, and what it never does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receiver.orders.decide import WAIVABLE, decide
from receiver.orders.decisions import Apply, Refuse
from receiver.orders.facts import LedgerLine, SourceTerms
from receiver.orders.ledger import apply, captured_of, paying_key, state_of, totals_of
from receiver.providers.payment_event import Kind, PaymentEvent

from .single_events import PAID, TERMS, event, order_after, reason

STRICT = SourceTerms(account="acct_1", live=True)
EVERYTHING = frozenset({*WAIVABLE, "currency", "transaction", "effect", "effect_changed", "second_payment"})


@pytest.mark.parametrize(
    ("waive", "expected"),
    [
        ((), "refuse account"),
        (("account",), "refuse mode"),
        (("mode",), "refuse account"),
        (("account", "mode"), "apply"),
    ],
)
def test_account_and_mode_are_skipped_each_alone(waive: tuple[str, ...], expected: str) -> None:
    """A waiver skips the check that it names and no other one; what is applied for it is released."""
    foreign = event("succeeded", account="acct_other", live=False)

    decision = decide(order_after(), foreign, STRICT, waive=frozenset(waive))

    assert reason(decision) == expected
    if isinstance(decision, Apply):
        assert decision.released


def test_what_would_be_applied_anyway_is_not_released() -> None:
    """An idle waiver changes nothing: the money is the event's doing."""
    decision = decide(order_after(), event("succeeded"), TERMS, waive=WAIVABLE)

    assert decision == decide(order_after(), event("succeeded"), TERMS)
    assert isinstance(decision, Apply)
    assert not decision.released


@pytest.mark.parametrize(("kind", "state"), [("succeeded", "paid"), ("authorized", "authorized")])
def test_a_cancelled_order_takes_released_money(kind: str, state: str) -> None:
    """The capture is applied on the cancelled order, its mark is lifted, and its surplus rows go round."""
    order = order_after(cancelled=True)
    order.state = state_of(order)
    refused = decide(order, event(kind), TERMS)
    assert isinstance(refused, Refuse)
    if refused.marks:
        apply(order, refused)

    decision = decide(order, event(kind), TERMS, waive={"order_cancelled"})

    assert isinstance(decision, Apply)
    assert decision.released
    applied = apply(order, decision)
    assert (applied.from_state, applied.to_state) == ("cancelled", state)
    assert applied.lifted == refused.marks
    assert not order.transactions[("demo", "tx_1")].refused
    assert reason(decide(order, event(kind), TERMS)) == "repeat"


def test_a_void_of_released_money_leaves_the_order_cancelled() -> None:
    """An authorization that was released and then voided is as if it had not been."""
    order = order_after(cancelled=True)
    order.state = state_of(order)
    for one, waive in ((event("authorized"), {"order_cancelled"}), (event("voided"), set[str]())):
        decision = decide(order, one, TERMS, waive=waive)
        assert isinstance(decision, Apply)
        apply(order, decision)

    assert order.state == "cancelled"


def test_a_second_payment_of_a_cancelled_order_is_never_released() -> None:
    """Once one payment was released onto it, another one is refused as second, waiver or not."""
    order = order_after(cancelled=True)
    order.state = state_of(order)
    first = decide(order, event("succeeded"), TERMS, waive=WAIVABLE)
    assert isinstance(first, Apply)
    apply(order, first)

    second = decide(order, event("succeeded", transaction_id="tx_2"), TERMS, waive=EVERYTHING)

    assert reason(second) == "refuse second_payment"


def test_an_amount_below_the_orders_counts_as_captured() -> None:
    """2000 of 2500 are captured in part; the rest may come as a part, and the same again is a repeat."""
    low = event("succeeded", amount_minor=2000)
    assert reason(decide(order_after(), low, TERMS)) == "refuse amount"

    decision = decide(order_after(), low, TERMS, waive={"amount"})

    assert isinstance(decision, Apply)
    assert decision.released
    assert decision.lines == (LedgerLine("demo", "tx_1", "capture", "tx_1", 2000, "EUR"),)
    order = order_after()
    assert apply(order, decision).to_state == "partially_paid"
    assert totals_of(order).captured_minor == 2000
    assert reason(decide(order, low, TERMS)) == "repeat"
    assert reason(decide(order, event("succeeded"), TERMS)) == "refuse effect_changed"
    rest = decide(order, event("captured", amount_minor=500), TERMS)
    assert isinstance(rest, Apply)
    assert apply(order, rest).to_state == "paid"


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("succeeded", {"amount_minor": 2501}),
        ("succeeded", {"amount_minor": None}),
        ("authorized", {"amount_minor": 2000}),
        ("authorized", {"amount_minor": 2501}),
        ("captured", {"amount_minor": 2501}),
    ],
)
def test_no_other_amount_is_released(kind: str, facts: dict[str, int | None]) -> None:
    """More than the order's amount, none at all, or an authorization of another amount stays refused."""
    assert reason(decide(order_after(), event(kind, **facts), TERMS, waive=EVERYTHING)) == "refuse amount"


def test_parts_never_sum_above_the_amount() -> None:
    """A low `succeeded` beside a captured part is refused where both are more than the order's amount."""
    order = order_after(event("captured", amount_minor=1000))

    decision = decide(order, event("succeeded", amount_minor=2000), TERMS, waive={"amount"})

    assert reason(decision) == "refuse amount"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"currency": "USD"}, "refuse currency"),
        ({"currency": None}, "refuse currency"),
        ({"transaction_id": None}, "refuse transaction"),
        ({"facts_error": "unreadable_amount"}, "refuse unreadable_amount"),
        ({"source": "lesson"}, "refuse source"),
    ],
)
def test_what_no_release_skips(facts: dict[str, str | None], expected: str) -> None:
    """Currency, transaction, source and unreadable facts are refused whatever is waived."""
    order = order_after(sources=("demo",))

    assert reason(decide(order, event("succeeded", **facts), TERMS, waive=EVERYTHING)) == expected


def test_transaction_effect_and_second_payment_are_never_skipped() -> None:
    """Another order's transaction, an effect without or with another meaning, and a second payment stay."""
    assert reason(decide(order_after(), event("succeeded"), TERMS, foreign=True, waive=EVERYTHING)) == (
        "refuse transaction"
    )
    part = event("captured", effect_id=None, amount_minor=100)
    assert reason(decide(order_after(), part, TERMS, waive=EVERYTHING)) == "refuse effect"
    other = event("succeeded", transaction_id="tx_2")
    assert reason(decide(order_after(*PAID), other, TERMS, waive=EVERYTHING)) == "refuse second_payment"
    low = event("succeeded", amount_minor=2000)
    assert reason(decide(order_after(*PAID), low, TERMS, waive=EVERYTHING)) == "refuse effect_changed"
    elsewhere = decide(order_after(), event("succeeded"), TERMS, effect_elsewhere=True, waive=EVERYTHING)
    assert reason(elsewhere) == "refuse effect_changed"


EVENTS = st.builds(
    event,
    st.sampled_from([str(kind) for kind in Kind]),
    transaction_id=st.sampled_from(["tx_1", "tx_2", None]),
    effect_id=st.sampled_from(["e_1", "e_2", None]),
    amount_minor=st.sampled_from([1, 1000, 2000, 2500, 2501, None]),
    currency=st.sampled_from(["EUR", "EUR", "EUR", "USD", None]),
    account=st.sampled_from(["acct_1", "acct_2"]),
    live=st.sampled_from([True, True, False]),
    refund_total_minor=st.sampled_from([500, 2500, None]),
)
WAIVERS = st.sets(st.sampled_from(sorted(EVERYTHING)))


@given(st.lists(st.tuples(EVENTS, WAIVERS), max_size=8), st.booleans())
def test_no_waiver_breaks_what_the_ledger_holds(
    events: list[tuple[PaymentEvent, set[str]]], cancelled: bool
) -> None:
    """Whatever is waived: captured ≤ amount, one currency, one paying transaction, effects once, and an
    event that is applied without a waiver is applied the same with one.
    """
    order = order_after(cancelled=cancelled)
    order.state = state_of(order)
    for one, waive in events:
        plain = decide(order, one, STRICT)
        decision = decide(order, one, STRICT, waive=waive)
        if isinstance(plain, Apply):
            assert decision == plain
        if isinstance(decision, Apply):
            assert decision.released == (not isinstance(plain, Apply))
            assert not decision.released or waive & WAIVABLE
        if isinstance(decision, Apply) or (isinstance(decision, Refuse) and decision.marks):
            apply(order, decision)
        totals = totals_of(order)
        assert 0 <= totals.refunded_minor <= totals.captured_minor <= order.amount_minor
        assert {line.currency for line in order.lines} <= {"EUR", None}
        effects = [(line.source, line.kind, line.effect_id) for line in order.lines]
        assert len(effects) == len(set(effects))
        assert sum(facts.paying for facts in order.transactions.values()) <= 1
        holding = [key for key in order.lines_of if captured_of(order, key)]
        assert bool(holding) == (paying_key(order) is not None)
