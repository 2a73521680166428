"""Every rule of `decide`, one event against one order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from receiver.orders.decide import decide
from receiver.orders.decisions import Apply, Decision, Ignore, Park, Refuse, Repeat, Stale
from receiver.orders.facts import LedgerLine, OrderFacts, SourceTerms, TransactionFacts
from receiver.orders.ledger import apply
from receiver.providers.payment_event import Kind, PaymentEvent

TERMS = SourceTerms()
MONEY_KINDS = [kind for kind in Kind if kind not in (Kind.PENDING, Kind.FAILED, Kind.OTHER)]
EVERY_KIND = [kind for kind in Kind if kind != Kind.OTHER]


def event(kind: str, **facts: Any) -> PaymentEvent:
    """An event of order o_1 over 25.00 EUR, with every fact that its kind needs."""
    complete = PaymentEvent(
        source="demo",
        kind=Kind(kind),
        order_reference="o_1",
        transaction_id="tx_1",
        effect_id={"captured": "cap_1", "refunded": "rf_1", "refund_failed": "rf_1"}.get(
            kind, "dp_1" if kind.startswith("dispute") else None
        ),
        amount_minor=2500,
        currency="EUR",
        refund_total_minor=1000 if kind == "refund_total" else None,
    )
    return replace(complete, **facts)


def order_after(*events: PaymentEvent, **facts: Any) -> OrderFacts:
    """An order of 25.00 EUR to which these events were applied."""
    order = OrderFacts(UUID(int=1), "o_1", None, 2500, "EUR")
    for one in events:
        decision = decide(order, one, TERMS)
        assert isinstance(decision, Apply | Refuse), decision
        apply(order, decision)
    for name, value in facts.items():
        setattr(order, name, value)
    return order


def reason(decision: Decision) -> str:
    """The decision's word, or its kind and reason."""
    said = getattr(decision, "reason", None)
    name = type(decision).__name__.lower()
    return name if said is None else f"{name} {said}"


PAID = (event("succeeded"),)
HALF = (event("captured", amount_minor=1000),)
REFUNDED = (*PAID, event("refunded", effect_id=None))
TWICE = (*PAID, event("succeeded", transaction_id="tx_2"))
ANY = {"facts_error": "unreadable_amount"}

RULES: list[tuple[str, tuple[PaymentEvent, ...], PaymentEvent, str]] = [
    ("unreadable facts come before everything", PAID, event("other", **ANY), "refuse unreadable_amount"),
    (
        "a repeated field is refused",
        (),
        event("succeeded", facts_error="repeated_field"),
        "refuse repeated_field",
    ),
    ("an event without money is ignored", (), event("other"), "ignore no_money_meaning"),
    ("pending is noted", (), event("pending"), "apply"),
    ("failed is noted", (), event("failed"), "apply"),
    ("a failure after money is stale", PAID, event("failed", sequence=9), "stale"),
    ("pending after an authorization is stale", (event("authorized"),), event("pending"), "stale"),
    ("the whole amount pays", (), event("succeeded"), "apply"),
    ("a wrong whole amount is refused", (), event("succeeded", amount_minor=2600), "refuse amount"),
    ("a wrong authorization is refused", (), event("authorized", amount_minor=2400), "refuse amount"),
    ("parts may reach the amount", HALF, event("captured", effect_id="cap_2", amount_minor=1500), "apply"),
    (
        "parts may not pass the amount",
        HALF,
        event("captured", effect_id="cap_2", amount_minor=1501),
        "refuse amount",
    ),
    ("the whole told after a part is no second capture", HALF, event("succeeded"), "apply"),
    ("a part without an id is refused", (), event("captured", effect_id=None), "refuse effect"),
    (
        "a part refund without an id is refused",
        PAID,
        event("refunded", effect_id=None, amount_minor=5),
        "refuse effect",
    ),
    ("a whole refund needs no id", PAID, event("refunded", effect_id=None), "apply"),
    ("a dispute without an id is refused", PAID, event("dispute_opened", effect_id=None), "refuse effect"),
    (
        "a failed part refund without an id is refused",
        PAID,
        event("refund_failed", effect_id=None, amount_minor=5),
        "refuse effect",
    ),
    ("a failed whole refund needs no id", REFUNDED, event("refund_failed", effect_id=None), "apply"),
    ("a known effect is a repeat", PAID, event("succeeded"), "repeat"),
    (
        "a known effect with another amount is refused",
        PAID,
        event("succeeded", amount_minor=2600),
        "refuse effect_changed",
    ),
    ("a repeated void is a repeat", (event("voided"),), event("voided", amount_minor=7), "repeat"),
    (
        "a repeated dispute may name another sum",
        (*PAID, event("dispute_opened")),
        event("dispute_opened", amount_minor=7),
        "repeat",
    ),
    ("a void comes before its authorization", (), event("voided"), "apply"),
    ("a void is written after money too", PAID, event("voided"), "apply"),
    (
        "a second transaction may not pay",
        PAID,
        event("succeeded", transaction_id="tx_2"),
        "refuse second_payment",
    ),
    (
        "a second transaction may not pay a part",
        HALF,
        event("captured", transaction_id="tx_2", effect_id="cap_9", amount_minor=1),
        "refuse second_payment",
    ),
    (
        "a second transaction may pay what went back",
        REFUNDED,
        event("succeeded", transaction_id="tx_2"),
        "apply",
    ),
    ("a second authorization is written", PAID, event("authorized", transaction_id="tx_2"), "apply"),
    ("a refund waits for the capture", (), event("refunded"), "park before_capture"),
    ("a running total waits for the capture", (), event("refund_total"), "park before_capture"),
    ("a failed refund waits for the capture", (), event("refund_failed"), "park before_capture"),
    ("a dispute waits for the capture", (event("authorized"),), event("dispute_lost"), "park before_capture"),
    (
        "the refund of a surplus is ignored",
        TWICE,
        event("refunded", transaction_id="tx_2"),
        "ignore surplus_returned",
    ),
    (
        "the dispute of a surplus is ignored",
        TWICE,
        event("dispute_opened", transaction_id="tx_2"),
        "ignore surplus_returned",
    ),
    (
        "the running total of a surplus is ignored",
        TWICE,
        event("refund_total", transaction_id="tx_2"),
        "ignore surplus_returned",
    ),
    (
        "more than was captured waits",
        HALF,
        event("refunded", amount_minor=1001),
        "park refund_exceeds_captured",
    ),
    (
        "a running total above the capture waits",
        HALF,
        event("refund_total", refund_total_minor=1001),
        "park refund_exceeds_captured",
    ),
    (
        "a refund that failed takes no room",
        (*REFUNDED, event("refund_failed", effect_id="rf_2")),
        event("refunded", effect_id="rf_2"),
        "apply",
    ),
    (
        "a higher running total is set",
        (*PAID, event("refund_total")),
        event("refund_total", refund_total_minor=1001),
        "apply",
    ),
    ("the same running total is a repeat", (*PAID, event("refund_total")), event("refund_total"), "repeat"),
    (
        "a lower running total is stale",
        (*PAID, event("refund_total")),
        event("refund_total", refund_total_minor=999),
        "stale",
    ),
]


@pytest.mark.parametrize(
    ("before", "one", "expected"), [pytest.param(*rule[1:], id=rule[0]) for rule in RULES]
)
def test_rule(before: tuple[PaymentEvent, ...], one: PaymentEvent, expected: str) -> None:
    """Each rule gives its decision and leaves the order as it was."""
    order = order_after(*before)
    lines, transactions = list(order.lines), dict(order.transactions)

    assert reason(decide(order, one, TERMS)) == expected
    assert (order.lines, order.transactions) == (lines, transactions)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_another_account_never_decides(kind: Kind) -> None:
    """An event of another account, or of none, is refused whatever it says."""
    terms = SourceTerms(account="acct_1")

    for account in ("acct_other", None):
        assert reason(decide(order_after(), event(kind, account=account), terms)) == "refuse account"
    assert reason(decide(order_after(*PAID), event(kind, account="acct_1"), terms)) != "refuse account"


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_another_mode_never_decides(kind: Kind) -> None:
    """An event of the other mode, or of none, is refused whatever it says."""
    terms = SourceTerms(live=True)

    for live in (False, None):
        assert reason(decide(order_after(), event(kind, live=live), terms)) == "refuse mode"
    assert reason(decide(order_after(*PAID), event(kind, live=True), terms)) != "refuse mode"


def test_what_a_protocol_never_carries_is_not_checked() -> None:
    """Account and mode are not compared where the protocol cannot state them."""
    terms = SourceTerms("acct_1", True, frozenset({"account", "live"}))

    assert isinstance(decide(order_after(), event("succeeded"), terms), Apply)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_an_unknown_order_parks(kind: Kind) -> None:
    """A reference whose order is unknown waits for the order."""
    assert reason(decide(None, event(kind), TERMS)) == "park order_unknown"


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_an_event_that_names_no_order(kind: Kind) -> None:
    """Without a reference, first events of unknown transactions are not ours; later ones wait."""
    first = kind in (Kind.PENDING, Kind.FAILED, Kind.AUTHORIZED, Kind.SUCCEEDED)
    expected = "ignore not_ours" if first else "park transaction_unknown"

    assert reason(decide(None, event(kind, order_reference=None), TERMS)) == expected
    nameless = event(kind, order_reference=None, transaction_id=None)
    assert reason(decide(None, nameless, TERMS)) == "ignore not_ours"


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"transaction_id": None}, "refuse transaction"),
        ({"currency": "USD"}, "refuse currency"),
    ],
)
def test_facts_that_contradict_refuse_every_kind(kind: Kind, facts: dict[str, Any], expected: str) -> None:
    """No event of any kind passes without its transaction or in another currency."""
    assert reason(decide(order_after(*PAID), event(kind, **facts), TERMS)) == expected


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_sources_and_owners_hold_for_every_kind(kind: Kind) -> None:
    """An event of a source that may not pay, or of another order's transaction, is refused."""
    assert reason(decide(order_after(sources=("acme",)), event(kind), TERMS)) == "refuse source"
    assert reason(decide(order_after(), event(kind), TERMS, foreign=True)) == "refuse transaction"


@pytest.mark.parametrize("kind", ["authorized", "succeeded", "captured", "refunded"])
@pytest.mark.parametrize(
    ("fact", "expected"), [("amount_minor", "refuse amount"), ("currency", "refuse currency")]
)
def test_a_missing_fact_is_a_mismatch(kind: str, fact: str, expected: str) -> None:
    """Money whose amount or currency lacks is refused, never filled in."""
    order = order_after(event("succeeded", transaction_id="tx_1")) if kind == "refunded" else order_after()

    assert reason(decide(order, event(kind, **{fact: None}), TERMS)) == expected


def test_a_missing_running_total_is_a_mismatch() -> None:
    """A running total that says no total is refused."""
    assert (
        reason(decide(order_after(*PAID), event("refund_total", refund_total_minor=None), TERMS))
        == "refuse refund_total"
    )


def test_a_protocol_without_amounts_means_the_whole() -> None:
    """Where amounts are never carried, succeeded means the order's amount, and a part is refused."""
    terms = SourceTerms(never_carries=frozenset({"amount_minor", "currency"}))
    silent = {"amount_minor": None, "currency": None}

    decision = decide(order_after(), event("succeeded", **silent), terms)

    assert isinstance(decision, Apply)
    assert decision.lines == (LedgerLine("demo", "tx_1", "capture", "tx_1", 2500, "EUR"),)
    assert reason(decide(order_after(), event("captured", **silent), terms)) == "refuse amount"


def test_an_effect_of_another_order_or_transaction_is_refused() -> None:
    """One refund id cannot stand for two orders or two transactions."""
    order = order_after(*PAID, event("refunded", amount_minor=100))
    other = event("refunded", transaction_id="tx_2", amount_minor=100)

    assert reason(decide(order, other, TERMS)) == "refuse effect_changed"
    fresh = event("refunded", effect_id="rf_2", amount_minor=100)
    assert reason(decide(order, fresh, TERMS, effect_elsewhere=True)) == "refuse effect_changed"


@pytest.mark.parametrize("kind", MONEY_KINDS)
def test_a_cancelled_order_refuses_new_money_alone(kind: Kind) -> None:
    """Only authorizations and captures are refused, and only captures mark their transaction."""
    decision = decide(order_after(cancelled=True), event(kind), TERMS)

    if kind in (Kind.SUCCEEDED, Kind.CAPTURED, Kind.AUTHORIZED):
        assert reason(decision) == "refuse order_cancelled"
        assert isinstance(decision, Refuse)
        assert decision.marks == (kind != Kind.AUTHORIZED)
    else:
        assert reason(decision) == ("apply" if kind == Kind.VOIDED else "park before_capture")


def test_a_second_payment_marks_its_transaction() -> None:
    """The refused transaction is marked as money to give back; the paying one is not touched."""
    decision = decide(order_after(*PAID), event("succeeded", transaction_id="tx_2"), TERMS)

    assert isinstance(decision, Refuse)
    assert decision.transaction == TransactionFacts("demo", "tx_2", refused=True)


def test_details_show_both_sides() -> None:
    """What is refused or parked says both sums, in the currency's own decimals."""
    order = OrderFacts(UUID(int=1), "o_1", None, 18600, "KWD")
    decision = decide(order, event("succeeded", amount_minor=1860, currency="KWD"), TERMS)
    assert decision == Refuse("amount", "order 18.600 KWD, event 1.860 KWD")

    decision = decide(order_after(), event("succeeded", currency="USD"), TERMS)
    assert decision == Refuse("currency", "order 25.00 EUR, event 25.00 USD")

    order = order_after(*PAID, event("refunded", effect_id="rf_9", amount_minor=1000))
    decision = decide(order, event("refunded", effect_id="rf_9", amount_minor=2100), TERMS)
    assert decision == Refuse("effect_changed", "rf_9 already recorded with 10.00 EUR, event 21.00 EUR")

    decision = decide(order, event("refunded", effect_id="rf_8", amount_minor=2000), TERMS)
    assert decision == Park("refund_exceeds_captured", "refunded would be 30.00 EUR, captured is 25.00 EUR")


STATUSES = [
    (("failed", None), ("pending", None), "stale"),
    (("failed", None), ("pending", 9), "stale"),
    (("failed", None), ("failed", None), "stale"),
    (("failed", 3), ("pending", None), "stale"),
    (("failed", 3), ("pending", 3), "stale"),
    (("failed", 3), ("pending", 4), "apply"),
    (("failed", 3), ("failed", None), "apply"),
    (("pending", 3), ("failed", 2), "stale"),
    (("pending", 3), ("failed", 3), "apply"),
    (("pending", 3), ("failed", None), "apply"),
    (("pending", 3), ("pending", None), "stale"),
    (("pending", None), ("pending", None), "stale"),
    (("pending", None), ("pending", 1), "apply"),
    (("pending", None), ("failed", 1), "apply"),
]


@pytest.mark.parametrize(("known", "new", "expected"), STATUSES)
def test_statuses_by_sequence(
    known: tuple[str, int | None], new: tuple[str, int | None], expected: str
) -> None:
    """The higher sequence decides; without one, or between equals, failed wins over pending."""
    order = order_after(event(known[0], sequence=known[1]))

    assert reason(decide(order, event(new[0], sequence=new[1]), TERMS)) == expected


def test_every_kind_of_decision_is_reached() -> None:
    """The rules above show every decision that there is."""
    reached = {type(decide(order_after(*rule[1]), rule[2], TERMS)) for rule in RULES}

    assert reached == {Apply, Repeat, Stale, Ignore, Park, Refuse}
