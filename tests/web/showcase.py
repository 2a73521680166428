"""A database in which everything that a page can show is there, hostile texts included."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.inbox.minutes import BOUNDS_MS
from receiver.inbox.models import WebhookEvent
from tests import factories
from tests.factories import NOW, make_attempt, make_event, make_order

HOSTILE = "<img src=x onerror=alert(1)>"
LONG = "a_reference_without_any_blank_" * 8


@dataclass(frozen=True)
class Showcase:
    """What the tests point at."""

    refused: WebhookEvent
    hostile: WebhookEvent
    conflicting: WebhookEvent

    def paths(self) -> list[str]:
        """Each page with something to show."""
        return [
            *("/status", "/events", "/failures", "/orders", "/sources", "/sources/demo", "/sources/lesson"),
            *("/audit", "/events?state=failed&reason=amount&text=nothing*", "/orders?state=paid"),
            f"/events/{self.refused.id}",
            f"/events/{self.hostile.id}",
            f"/events/{self.conflicting.id}",
            *("/orders/ord_2001", "/orders/ord_2000", f"/orders/{LONG}", "/orders/shop/2026/17"),
            "/events/00000000-0000-0000-0000-000000000000",
        ]


def fill(session: Session) -> Showcase:
    """Fill the database."""
    ago = timedelta
    paid = make_order(session, state="paid", reference="ord_2000", amount_minor=1860, at=NOW - ago(hours=3))
    event = make_event(
        session,
        state="processed",
        provider_event_id="evt_2000",
        order_reference="ord_2000",
        amount_minor=1860,
        at=NOW - ago(hours=2),
    )
    make_attempt(session, event)
    factories.make_ledger_entry(session, paid, event)
    factories.make_transition(session, paid, event_id=event.id)
    factories.make_transaction(session, paid, transaction_id=event.transaction_id, paying=True)
    make_order(session, reference="ord_2001", at=NOW - ago(hours=1))
    make_order(session, reference=LONG, sources=["demo", "lesson"], amount_minor=18600, currency="KWD")
    make_order(session, state="refunded", reference="shop/2026/17", amount_minor=5000, currency="JPY")
    make_order(session, state="disputed", reference=HOSTILE)
    refused = make_event(
        session,
        state="failed",
        provider_event_id="evt_2001",
        order_reference="ord_2001",
        amount_minor=2600,
        last_error="order 25.00 EUR, event 26.00 EUR",
        at=NOW - ago(minutes=12),
        replays=1,
        headers={"Content-Type": "application/json", "X-Signature": "v1=" + "ab" * 32},
    )
    make_attempt(session, refused, replay=0)
    make_attempt(session, refused)
    hostile = make_event(
        session,
        state="failed",
        reason="unreadable_amount",
        provider_event_id=HOSTILE,
        event_type="</script><svg onload=alert(2)>",
        order_reference=HOSTILE,
        amount_minor=None,
        currency=None,
        facts_error="unreadable_amount",
        last_error="amount is " + LONG,
        payload=b'{"id":"<img>","note":"Zo\xc3\xab </script>","memo":"ab\\u0000cd","n":1.10}',
        at=NOW - ago(minutes=40),
    )
    conflicting = make_event(
        session, state="processed", provider_event_id="evt_twice", order_reference="ord_2000", receipts=3
    )
    factories.make_conflict(session, conflicting)
    factories.make_conflict(session, conflicting, kind="variant", payload=b'{ "id": "evt_twice" }')
    make_event(session, state="expired", source="lesson", order_reference="ord_never", at=NOW - ago(days=3))
    make_event(session, parked_reason="order_unknown", order_reference="ord_7777", at=NOW - ago(minutes=25))
    make_event(session, parked_reason="refund_exceeds_captured", order_reference="ord_2000", kind="refunded")
    make_event(session, attempts=3, next_attempt_at=NOW + ago(minutes=2), at=NOW - ago(minutes=5))
    make_event(session, source="standard", at=NOW - ago(minutes=2))
    make_event(session, state="in_flight")
    factories.make_pause(session, "standard")
    factories.make_rejection(session, count=40, skew_seconds=-420)
    factories.make_rejection(session, source="(unknown)", reason="unknown_source", count=3)
    factories.make_worker(session)
    factories.make_worker(session, last_seen_at=NOW - ago(minutes=7))
    buckets = [70, 20, 8, *[0] * (len(BOUNDS_MS) - 2)]
    factories.make_minute(session, result="new", count=101)
    factories.make_minute(session, result="applied", count=98, total_ms=5600, buckets=buckets)
    factories.make_minute(session, result="failed", count=2)
    record(
        session,
        actor="olga",
        action="order.correct",
        target=f"order:{LONG}",
        criteria={"before": {"amount_minor": 1860}, "after": {"amount_minor": 18600}},
        reason="registered in the wrong unit",
        now=NOW,
    )
    session.commit()
    return Showcase(refused, hostile, conflicting)
