"""The checks of `decide` that hold for every kind of event."""

from __future__ import annotations

from typing import Any

import pytest

from receiver.orders.decide import decide
from receiver.orders.decisions import Apply, Refuse
from receiver.orders.facts import LedgerLine, SourceTerms, TransactionFacts
from receiver.providers.payment_event import Kind

from .single_events import PAID, TERMS, event, order_after, reason

MONEY_KINDS = [kind for kind in Kind if kind not in (Kind.PENDING, Kind.FAILED, Kind.OTHER)]
EVERY_KIND = [kind for kind in Kind if kind != Kind.OTHER]


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
