"""What the ledger makes of its lines: state, totals, and which transaction pays."""

from __future__ import annotations

from uuid import UUID

import pytest

from receiver.orders.decide import decide
from receiver.orders.decisions import Apply, Refuse
from receiver.orders.facts import OrderFacts, SourceTerms, Totals, TransactionFacts
from receiver.orders.ledger import Applied, apply, state_of, totals_of
from receiver.providers.payment_event import Kind, PaymentEvent


def event(
    kind: str, tx: str = "a", effect: str | None = None, amount: int = 2500, total: int | None = None
) -> PaymentEvent:
    """An event of an order over 25.00 EUR."""
    return PaymentEvent(
        "demo",
        Kind(kind),
        order_reference="o_1",
        transaction_id=tx,
        effect_id=effect,
        amount_minor=amount,
        currency="EUR",
        refund_total_minor=total,
    )


def new_order() -> OrderFacts:
    """An order over 25.00 EUR that nothing happened to."""
    return OrderFacts(UUID(int=1), "o_1", None, 2500, "EUR")


def tell(order: OrderFacts, *events: PaymentEvent) -> Applied:
    """Apply the events one after the other; what the last one changed."""
    applied = None
    for one in events:
        decision = decide(order, one, SourceTerms())
        assert isinstance(decision, Apply | Refuse), decision
        applied = apply(order, decision)
    assert applied is not None
    return applied


STATES = [
    ([event("pending")], "pending", (0, 0, 0)),
    ([event("failed")], "failed", (0, 0, 0)),
    ([event("failed"), event("pending", "b")], "pending", (0, 0, 0)),
    ([event("failed"), event("failed", "b")], "failed", (0, 0, 0)),
    ([event("failed"), event("authorized"), event("voided")], "pending", (0, 0, 0)),
    ([event("authorized")], "authorized", (2500, 0, 0)),
    ([event("voided"), event("authorized")], "pending", (0, 0, 0)),
    ([event("authorized"), event("authorized", "b"), event("voided")], "authorized", (2500, 0, 0)),
    ([event("authorized"), event("captured", effect="c", amount=10)], "partially_paid", (2500, 10, 0)),
    ([event("succeeded")], "paid", (0, 2500, 0)),
    ([event("captured", effect="c", amount=10), event("succeeded")], "paid", (0, 2500, 0)),
    ([event("succeeded"), event("refunded", effect="r", amount=1)], "partially_refunded", (0, 2500, 1)),
    ([event("succeeded"), event("refunded")], "refunded", (0, 2500, 2500)),
    ([event("succeeded"), event("refunded"), event("refund_failed")], "paid", (0, 2500, 0)),
    ([event("succeeded"), event("refund_total", total=9)], "partially_refunded", (0, 2500, 9)),
    (
        [event("succeeded"), event("refund_total", total=9), event("refund_failed", effect="r", amount=9)],
        "paid",
        (0, 2500, 0),
    ),
    (
        [event("succeeded"), event("refunded", effect="r", amount=7), event("refund_total", total=9)],
        "partially_refunded",
        (0, 2500, 9),
    ),
    ([event("succeeded"), event("dispute_opened", effect="d")], "disputed", (0, 2500, 0)),
    (
        [event("succeeded"), event("dispute_won", effect="d"), event("dispute_opened", effect="d")],
        "paid",
        (0, 2500, 0),
    ),
    (
        [event("succeeded"), event("dispute_won", effect="d"), event("dispute_lost", effect="d")],
        "charged_back",
        (0, 2500, 0),
    ),
    (
        [event("succeeded"), event("dispute_opened", effect="d"), event("dispute_opened", effect="e")],
        "disputed",
        (0, 2500, 0),
    ),
    ([event("succeeded"), event("dispute_lost", effect="d"), event("refunded")], "refunded", (0, 2500, 2500)),
]


@pytest.mark.parametrize(("events", "state", "totals"), STATES)
def test_state_and_totals(events: list[PaymentEvent], state: str, totals: tuple[int, int, int]) -> None:
    """The first rule that the ledger meets is the state; totals are the paying transaction's."""
    order = new_order()

    applied = tell(order, *events)

    assert (applied.to_state, applied.totals) == (state, Totals(*totals))
    assert (order.state, state_of(order), totals_of(order)) == (state, state, Totals(*totals))


def test_the_first_capture_makes_its_transaction_the_paying_one() -> None:
    """Statuses and authorizations bind nothing; the first capture does."""
    order = new_order()
    tell(order, event("authorized"), event("pending", "b"))
    assert not any(transaction.paying for transaction in order.transactions.values())

    applied = tell(order, event("succeeded", "c"))

    assert applied.transactions == (TransactionFacts("demo", "c", paying=True),)
    assert applied.new_transaction


def test_a_refusal_writes_its_mark_alone() -> None:
    """A second payment changes the mark of its transaction, and nothing of the order."""
    order = new_order()
    tell(order, event("succeeded"))

    applied = tell(order, event("succeeded", "b"))

    assert (applied.lines, applied.transactions) == ((), (TransactionFacts("demo", "b", refused=True),))
    assert (applied.from_state, applied.to_state, applied.lifted) == ("paid", "paid", False)
    assert tell(order, event("succeeded", "b")).transactions == ()


def test_a_full_refund_lifts_the_marks() -> None:
    """When the paying transaction gave everything back, the other may pay, and its rows go round again."""
    order = new_order()
    tell(order, event("succeeded"), event("succeeded", "b"))
    assert not tell(order, event("refunded", effect="r", amount=2400)).lifted

    applied = tell(order, event("refunded", effect="s", amount=100))

    assert applied.lifted
    assert not order.transactions[("demo", "b")].refused
    assert tell(order, event("succeeded", "b")).to_state == "paid"
    assert order.transactions[("demo", "b")].paying
    assert not order.transactions[("demo", "a")].paying


def test_a_refund_that_fails_late_is_surplus_until_it_is_needed() -> None:
    """Money that comes back beside a paying transaction is marked, and pays once the other is given back."""
    order = new_order()
    tell(order, event("succeeded"), event("refunded"), event("succeeded", "b"))

    tell(order, event("refund_failed"))
    assert order.transactions[("demo", "a")].refused
    assert order.state == "paid"

    applied = tell(order, event("refunded", "b"))
    assert applied.lifted
    assert order.transactions[("demo", "a")] == TransactionFacts("demo", "a", paying=True)
    assert (applied.to_state, applied.totals) == ("paid", Totals(0, 2500, 0))


def test_a_surplus_that_goes_back_is_marked_no_more() -> None:
    """A mark that only its own lines set is cleared when these lines hold nothing any more."""
    order = new_order()
    tell(order, event("succeeded"), event("refunded"), event("succeeded", "b"), event("refund_failed"))

    tell(order, event("refunded", effect="again"))

    assert not order.transactions[("demo", "a")].refused
    assert order.transactions[("demo", "b")].paying


def test_marks_of_a_cancelled_order_stay() -> None:
    """A cancelled order refuses every payment, so nothing lifts its marks."""
    order = new_order()
    order.cancelled, order.state = True, "cancelled"

    tell(order, event("succeeded"), event("succeeded", "b"), event("voided", "c"))

    assert [key[1] for key, transaction in order.transactions.items() if transaction.refused] == ["a", "b"]
    assert (order.state, order.lines_of.keys()) == ("cancelled", {("demo", "c")})


def test_only_what_changes_something_can_be_applied() -> None:
    """A refusal without a mark has nothing to write."""
    with pytest.raises(ValueError, match="nothing to apply"):
        apply(new_order(), Refuse("amount", "order 25.00 EUR, event 26.00 EUR"))
