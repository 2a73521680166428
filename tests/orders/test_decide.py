"""The rules of `decide` by kind, one event against one order."""

from __future__ import annotations

from uuid import UUID

import pytest

from receiver.orders.decide import decide
from receiver.orders.decisions import Apply, Ignore, Park, Refuse, Repeat, Stale
from receiver.orders.facts import OrderFacts
from receiver.providers.payment_event import PaymentEvent

from .single_events import PAID, TERMS, event, order_after, reason

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
