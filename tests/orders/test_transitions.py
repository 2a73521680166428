"""The table of state changes against everything that one event can really cause."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from uuid import UUID

import pytest

from receiver.orders import ledger
from receiver.orders.decide import decide
from receiver.orders.decisions import Apply, Refuse
from receiver.orders.facts import OrderFacts, SourceTerms
from receiver.orders.ledger import IllegalTransition, apply, state_of
from receiver.orders.models import STATES
from receiver.orders.transitions import ACT_TRANSITIONS, RELEASE_TRANSITIONS, TRANSITIONS
from receiver.providers.payment_event import Kind, PaymentEvent

TERMS = SourceTerms()
AMOUNT = 3


def event(
    kind: str, transaction: str, effect: str | None = None, amount: int = AMOUNT, **facts: int
) -> PaymentEvent:
    """An event of an order of 3 minor units, so that a part of a part can go back."""
    return PaymentEvent(
        source="demo",
        kind=Kind(kind),
        order_reference="o_1",
        transaction_id=transaction,
        effect_id=None if effect is None else f"{transaction}_{effect}",
        amount_minor=amount,
        currency="EUR",
        **facts,
    )


def everything(tx: str) -> list[PaymentEvent]:
    """One event of every kind and part, for one transaction."""
    return [
        event("pending", tx),
        event("failed", tx, sequence=1),
        event("pending", tx, sequence=2),
        event("authorized", tx),
        event("voided", tx),
        event("captured", tx, "c1", 2),
        event("captured", tx, "c2", 1),
        event("refunded", tx, "r1", 1),
        event("refund_total", tx, refund_total_minor=2),
        event("refund_total", tx, refund_total_minor=3),
        event("refund_failed", tx, "r1", 1),
        event("dispute_opened", tx, "d"),
        event("dispute_won", tx, "d"),
        event("dispute_lost", tx, "d"),
    ]


def beginnings(tx: str) -> list[PaymentEvent]:
    """What can happen to a transaction up to its capture."""
    return [
        event("pending", tx),
        event("failed", tx, sequence=1),
        event("authorized", tx),
        event("voided", tx),
        event("succeeded", tx),
    ]


def holding(state: str, tx: str) -> list[PaymentEvent]:
    """What it takes for a transaction to hold money in this state, to lose it, and to hold it again."""
    if state == "partially_paid":
        return [
            event("captured", tx, "c1", 1),
            event("refunded", tx, "r1", 1),
            event("refund_failed", tx, "r1", 1),
        ]
    whole = [event("succeeded", tx), event("refunded", tx, "r1"), event("refund_failed", tx, "r1")]
    return (
        whole
        + {
            "paid": [],
            "partially_refunded": [event("refunded", tx, "r2", 1)],
            "disputed": [event("dispute_opened", tx, "d")],
            "charged_back": [event("dispute_lost", tx, "d")],
        }[state]
    )


HOLDING = ("partially_paid", "paid", "partially_refunded", "disputed", "charged_back")


def copy_of(order: OrderFacts) -> OrderFacts:
    """The same order, to be changed apart."""
    twin = OrderFacts(order.id, order.reference, order.sources, order.amount_minor, order.currency)
    twin.cancelled, twin.state = order.cancelled, order.state
    twin.transactions = dict(order.transactions)
    twin.lines, twin.effects = list(order.lines), dict(order.effects)
    twin.lines_of = {key: list(lines) for key, lines in order.lines_of.items()}
    return twin


WAIVED = (frozenset[str](), frozenset({"order_cancelled"}))


def reached(
    alphabet: Iterable[PaymentEvent], *, cancel: bool = False, release: bool = False
) -> set[tuple[str, str]]:
    """Every change of state that these events cause, in any order and number; with ``release`` also what
    they cause on a cancelled order once an admin released them.
    """
    events = tuple(product(alphabet, WAIVED if release else WAIVED[:1]))
    pairs: set[tuple[str, str]] = set()
    first = OrderFacts(UUID(int=1), "o_1", None, AMOUNT, "EUR")
    seen, frontier = set(), [first]
    while frontier:
        order = frontier.pop()
        for one, waive in events:
            decision = decide(order, one, TERMS, waive=waive)
            if not isinstance(decision, Apply) and not (isinstance(decision, Refuse) and decision.marks):
                continue
            after = copy_of(order)
            applied = apply(after, decision)
            pairs.add((applied.from_state, applied.to_state))
            visit(after, seen, frontier)
        if cancel and not order.cancelled and order.state in ("pending", "failed"):
            after = copy_of(order)
            after.cancelled = True
            after.state = state_of(after)
            assert (order.state, after.state) in ACT_TRANSITIONS
            visit(after, seen, frontier)
    return {pair for pair in pairs if pair[0] != pair[1]}


def visit(order: OrderFacts, seen: set[object], frontier: list[OrderFacts]) -> None:
    """Put the order on the frontier once, and check the invariant of marks on it."""
    key = (order.cancelled, frozenset(order.lines), frozenset(order.transactions.values()))
    if key in seen:
        return
    seen.add(key)
    frontier.append(order)
    paying = ledger.paying_key(order)
    if any(transaction.refused for transaction in order.transactions.values()) and not order.cancelled:
        assert paying is not None
        assert ledger.captured_of(order, paying) > ledger.refunded_of(order, paying)
        assert not order.transactions[paying].refused


def test_the_table_holds_exactly_what_events_cause() -> None:
    """Every pair of the table is reached, and every pair that is reached stands in the table."""
    pairs = reached(everything("a"), cancel=True) | reached(beginnings("a") + beginnings("b"), cancel=True)
    for first, second in product(HOLDING, repeat=2):
        pairs |= reached(holding(first, "a") + holding(second, "b"))

    released = reached(everything("a"), cancel=True, release=True)
    released |= reached(beginnings("a") + beginnings("b"), cancel=True, release=True)

    assert pairs | released == TRANSITIONS | RELEASE_TRANSITIONS
    assert pairs == TRANSITIONS - {("authorized", "cancelled")}


def test_no_event_moves_a_cancelled_order() -> None:
    """A cancelled order is left by no pair of the table; what a release may cause is no plain event's."""
    assert not [pair for pair in TRANSITIONS if pair[0] == "cancelled"]
    order = OrderFacts(UUID(int=1), "o_1", None, AMOUNT, "EUR", cancelled=True, state="cancelled")
    decision = decide(order, event("succeeded", "a"), TERMS, waive={"order_cancelled"})
    assert isinstance(decision, Apply)

    with pytest.raises(IllegalTransition, match="cancelled to paid"):
        apply(copy_of(order), Apply(decision.lines, decision.transaction))
    assert apply(order, decision).to_state == "paid"


def test_states_of_the_tables_are_the_states_of_the_rows() -> None:
    """The tables name every state that an order row may hold, and no other."""
    named = {state for pair in TRANSITIONS | ACT_TRANSITIONS for state in pair}

    assert named == set(STATES)


def test_apply_refuses_a_pair_that_the_table_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of state outside the table is a fault of ours, and is raised as one."""
    monkeypatch.setattr(ledger, "TRANSITIONS", TRANSITIONS - {("pending", "paid")})
    order = OrderFacts(UUID(int=1), "o_1", None, AMOUNT, "EUR")
    decision = decide(order, event("succeeded", "a"), TERMS)
    assert isinstance(decision, Apply)

    with pytest.raises(IllegalTransition, match="pending to paid"):
        apply(order, decision)
