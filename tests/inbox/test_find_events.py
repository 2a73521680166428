"""Finding events: every filter alone and together, keyset pages, exactness."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from receiver.inbox import find_events
from receiver.inbox.event_detail import find_event
from receiver.inbox.filter import Filter, FilterError
from receiver.inbox.find_events import event_by_provider_id, events_of_order, list_events
from tests.factories import (
    NOW,
    make_attempt,
    make_conflict,
    make_event,
    make_ledger_entry,
    make_order,
    make_transaction,
)


@pytest.mark.parametrize(
    "query, expected",
    [
        ({}, {"paid", "late", "parked", "flying", "refused", "expired"}),
        ({"state": "pending"}, {"late", "parked"}),
        ({"state": "in_flight"}, {"flying"}),
        ({"state": "processed"}, {"paid"}),
        ({"state": "failed"}, {"refused"}),
        ({"state": "expired"}, {"expired"}),
        ({"state": "dead"}, {"refused", "expired"}),
        ({"source": "lesson"}, {"late"}),
        ({"reason": "amount"}, {"refused"}),
        ({"outcome": "applied"}, {"paid"}),
        ({"event_type": "payment.refunded"}, {"parked"}),
        ({"order_reference": "ord_7"}, {"flying"}),
        ({"transaction_id": "tx_paid"}, {"paid"}),
        ({"text": "paid"}, {"paid"}),
        ({"text": "pa*"}, {"paid", "parked"}),
        ({"text": "PAID"}, set()),
        ({"parked": "1"}, {"parked"}),
        ({"expires_before": "2026-03-04T12:01Z"}, {"late", "parked"}),
        ({"expires_before": "2026-03-04T12:00Z"}, {"late"}),
        ({"expires_before": "2026-03-04T11:00Z"}, set()),
        ({"expires_before": "2026-03-04T12:00Z", "state": "failed"}, set()),
        ({"from": "2026-03-01T10:30Z", "to": "2026-03-01T11:30Z"}, {"late"}),
        ({"state": "failed", "reason": "currency"}, set()),
    ],
)
def test_a_filter_gives_what_it_asks_for(session: Session, query: dict[str, str], expected: set[str]) -> None:
    """Each field narrows the list, several hold together, and texts are compared exactly."""
    make_event(session, state="processed", provider_event_id="paid", transaction_id="tx_paid")
    make_event(session, provider_event_id="late", source="lesson", at=NOW - timedelta(hours=1))
    make_event(
        session, provider_event_id="parked", parked_reason="order_unknown", event_type="payment.refunded"
    )
    make_event(session, state="in_flight", provider_event_id="flying", order_reference="ord_7")
    make_event(session, state="failed", provider_event_id="refused")
    make_event(session, state="expired", provider_event_id="expired")

    page = list_events(session, Filter.parse(query))

    assert {row.provider_event_id for row in page.rows} == expected


@pytest.mark.parametrize(
    "query",
    [
        {"text": "a\0b"},
        {"source": "x" * 256},
        {"state": "paid"},
        {"parked": "yes"},
        {"from": "yesterday"},
        {"to": "0001-01-01T00:00+14:00"},
        {"reason": "\ud800"},
    ],
)
def test_a_filter_that_cannot_be_asked_is_refused(query: dict[str, str]) -> None:
    """NUL, over-long text, unknown states and unreadable times are refused with a sentence."""
    with pytest.raises(FilterError):
        Filter.parse(query)


def test_a_filter_survives_the_query_string() -> None:
    """as_query is what parse reads back into an equal filter."""
    query = {
        "state": "dead",
        "parked": "1",
        "from": "2026-03-01T12:00:00Z",
        "text": "evt_*",
        "source": "demo",
    }
    assert Filter.parse(query).as_query() == query
    assert Filter.parse(Filter.parse(query).as_query()) == Filter.parse(query)


def test_pages_follow_one_another_without_gap_or_repeat(session: Session) -> None:
    """Paging by the last id gives every row once, newest first, also when new rows come in between."""
    for number in range(7):
        make_event(session, provider_event_id=f"evt_p{number}")
    seen: list[str] = []
    before = None
    while True:
        page = list_events(session, Filter(source="demo"), before=before, limit=3)
        seen += [row.provider_event_id for row in page.rows]
        make_event(session, provider_event_id=f"evt_new{len(seen)}")
        if page.next_before is None:
            break
        before = page.next_before

    assert seen == [f"evt_p{number}" for number in reversed(range(7))]


def test_a_page_stops_after_so_many_rows_and_goes_on(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rare row behind many others is found by going on; no page reads more than its bound."""
    monkeypatch.setattr(find_events, "LOOK_AT", 4)
    make_event(session, state="processed", provider_event_id="rare", outcome="stale")
    for _ in range(6):
        make_event(session, state="processed")

    first = list_events(session, Filter(outcome="stale"))
    assert (list(first.rows), first.looked_back_to) == ([], NOW)
    second = list_events(session, Filter(outcome="stale"), before=first.next_before)
    assert [row.provider_event_id for row in second.rows] == ["rare"]
    assert second.next_before is None


@pytest.mark.field_case(29)
def test_ids_are_compared_exactly(session: Session) -> None:
    """Two ids that differ in case are two events."""
    make_event(session, provider_event_id="evt_AbC9")
    make_event(session, provider_event_id="evt_aBc9", source="lesson")

    assert [row.source for row in event_by_provider_id(session, "evt_AbC9")] == ["demo"]
    assert [row.source for row in event_by_provider_id(session, "evt_aBc9")] == ["lesson"]
    assert event_by_provider_id(session, "evt_abc9") == []
    assert event_by_provider_id(session, "evt_AbC9", source="lesson") == []


def test_an_event_comes_with_all_that_belongs_to_it(session: Session) -> None:
    """Payload, attempts in order, conflicts, the order and the event's own ledger lines."""
    order = make_order(session, state="paid", reference="ord_d")
    event = make_event(session, state="processed", order_reference="ord_d", payload=b"{}")
    make_attempt(session, event, attempt=2)
    make_attempt(session, event, attempt=1, outcome="released")
    make_conflict(session, event)
    make_ledger_entry(session, order, event)
    make_ledger_entry(session, order)

    detail = find_event(session, event.id)

    assert detail is not None
    assert detail.payload is not None
    assert detail.payload.payload == b"{}"
    assert [attempt.attempt for attempt in detail.attempts] == [1, 2]
    assert len(detail.conflicts) == 1
    assert detail.order_reference == "ord_d"
    assert len(detail.ledger) == 1


def test_an_order_has_the_events_that_name_it_and_those_of_its_transactions(session: Session) -> None:
    """A refund without a reference belongs by its transaction; an event of another order does not."""
    order = make_order(session, reference="ord_e")
    make_transaction(session, order, transaction_id="tx_e")
    make_event(session, provider_event_id="named", order_reference="ord_e")
    make_event(session, provider_event_id="bound", order_reference=None, transaction_id="tx_e")
    make_event(session, provider_event_id="other", order_reference="ord_f", transaction_id="tx_e")
    make_event(
        session, provider_event_id="elsewhere", source="lesson", order_reference=None, transaction_id="tx_e"
    )

    assert [row.provider_event_id for row in events_of_order(session, order)] == ["named", "bound"]
