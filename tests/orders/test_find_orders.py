"""Finding orders: state, reference, pages, and what belongs to one order."""

from __future__ import annotations

from sqlalchemy.orm import Session

from receiver.orders.find_orders import list_orders, order_detail
from tests.factories import make_ledger_entry, make_order, make_transaction, make_transition


def test_orders_are_listed_by_state_newest_first(session: Session) -> None:
    """A state narrows the list; pages follow one another by id."""
    for number in range(3):
        make_order(session, state="paid", reference=f"ord_p{number}")
    make_order(session, reference="ord_pending")

    first = list_orders(session, state="paid", limit=2)
    assert [order.reference for order in first.rows] == ["ord_p2", "ord_p1"]
    second = list_orders(session, state="paid", limit=2, before=first.next_before)
    assert [order.reference for order in second.rows] == ["ord_p0"]
    assert second.next_before is None


def test_a_reference_is_found_exactly(session: Session) -> None:
    """No trimming, no folding of case."""
    make_order(session, reference="Ord 1")

    assert [order.reference for order in list_orders(session, text="Ord 1").rows] == ["Ord 1"]
    assert list(list_orders(session, text="ord 1").rows) == []
    assert order_detail(session, "Ord 1 ") is None


def test_an_order_comes_with_what_was_recorded_of_it(session: Session) -> None:
    """Ledger, transitions and transactions; correctable only while the ledger is empty."""
    order = make_order(session, state="paid", reference="ord_d")
    make_transaction(session, order, paying=True)
    make_transition(session, order)

    empty = order_detail(session, "ord_d")
    assert empty is not None
    assert empty.is_correctable
    make_ledger_entry(session, order)
    detail = order_detail(session, "ord_d")
    assert detail is not None
    assert not detail.is_correctable
    assert (len(detail.ledger), len(detail.transitions), len(detail.transactions)) == (1, 1, 1)
