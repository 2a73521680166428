"""A database in which everything that a page can show is there, hostile texts included."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.alerts.models import AlertNotice
from receiver.inbox.failure_groups import GroupKey, set_group
from receiver.inbox.minutes import BOUNDS_MS
from receiver.inbox.models import InboxLevel, WebhookConflict, WebhookEvent, WebhookRejection
from receiver.queue.models import BulkReplay
from tests import factories
from tests.factories import NOW, make_attempt, make_event, make_order

HOSTILE = "<img src=x onerror=alert(1)>"
MARKUP = "</script><svg onload=alert(2)>"
LONG = "a_reference_without_any_blank_" * 8


@dataclass(frozen=True)
class Showcase:
    """What the tests point at."""

    refused: WebhookEvent
    hostile: WebhookEvent
    conflicting: WebhookEvent
    conflict: WebhookConflict
    rejection: WebhookRejection
    replay: BulkReplay

    def paths(self) -> list[str]:
        """Each page with something to show."""
        return [
            *("/status", "/events", "/failures", "/orders", "/sources", "/sources/demo", "/sources/lesson"),
            *("/audit", "/events?state=failed&reason=amount&text=nothing*", "/orders?state=paid"),
            f"/events/{self.refused.id}",
            f"/events/{self.hostile.id}",
            f"/events/{self.conflicting.id}",
            *("/orders/ord_2001", "/orders/ord_2000", f"/orders/{LONG}", "/orders/shop/2026/17"),
            *(
                "/conflicts",
                f"/conflicts/{self.conflict.id}",
                "/rejections",
                f"/rejections/{self.rejection.id}",
            ),
            *(
                "/replays",
                f"/replays/{self.replay.id}",
                "/replays/new?dry=1",
                "/account",
                "/users",
                "/tokens",
            ),
            *("/status?range=24h", "/status?range=7d", "/failures?reason=amount"),
            "/failures/group?source=demo&reason=amount&event_type=payment.succeeded&place=-",
            f"/failures/group?source=demo&reason=unreadable_amount&event_type={quote(MARKUP)}&place=-",
            "/events/00000000-0000-0000-0000-000000000000",
            "/alerts",
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
        event_type=MARKUP,
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
    conflict = factories.make_conflict(
        session,
        conflicting,
        payload=b'{"id": "evt_twice", "type": "payment.succeeded", "data": {"order_id": "ord_2000",'
        b' "transaction_id": "tx_9", "amount": 900, "currency": "EUR", "note": "</script><svg >"}}',
    )
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
    kept = b'{"type": "payment.succeeded", "note": "</script><svg onload=alert(3)>"}'
    rejection = factories.make_rejection(
        session,
        reason="missing_id",
        detail="no id: " + HOSTILE,
        payload=kept,
        body_key="ab" * 32,
        headers=[["X-Odd", MARKUP]],
        length=len(kept),
    )
    replay = factories.make_bulk_replay(session, filter={"reason": HOSTILE, "text": LONG[:200]})
    set_group(
        session,
        GroupKey("demo", "amount", "payment.succeeded"),
        state="acknowledged",
        note=f"the shop asks the provider {HOSTILE}",
        actor="olga",
        reason="seen",
        now=NOW - ago(minutes=5),
    )
    factories.make_worker(session)
    factories.make_worker(session, last_seen_at=NOW - ago(minutes=7))
    _history(session)
    _alerts(session)
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
    return Showcase(refused, hostile, conflicting, conflict, rejection, replay)


def _alerts(session: Session) -> None:
    """A source gone silent, dead letters that somebody is on, one that is over, a channel that is down."""
    silent = factories.make_alert(session, key="standard")
    factories.make_alert(
        session,
        kind="dead_letters",
        level="warn",
        facts={"reasons": {"amount": 3, LONG[:60]: 1}, "expired": 1},
        acknowledged_at=NOW,
        acknowledged_by="olga",
    )
    factories.make_alert(session, kind="conflict", level="warn", facts={"count": 1}, closed_at=NOW)
    told = {"alert_id": silent.id, "turn": "opened", "level": "page", "subject": "s", "body": "b"}
    told |= {"created_at": NOW, "due_at": NOW}
    session.add(AlertNotice(**told, channel="SUPPORT_EMAIL", state="told", told_at=NOW))
    session.add(AlertNotice(**told, channel="CHAT_URL", attempts=4, last_error="refused, error=503"))


def _history(session: Session) -> None:
    """A day of counts and levels, busier in the last hour."""
    for minute in (*range(60), *range(60, 1440, 15)):
        at = NOW - timedelta(minutes=minute)
        applied = 40 + (minute * 7) % 31
        slow = 6 if 20 < minute < 30 else 1
        buckets = [applied - 10, 7, 3 - min(slow, 2), slow, 0, slow // 3, *[0] * (len(BOUNDS_MS) - 5)]
        factories.make_minute(session, minute=at, result="new", count=applied + 3)
        factories.make_minute(
            session, minute=at, result="applied", count=sum(buckets), total_ms=5600, buckets=buckets
        )
        factories.make_minute(session, minute=at, result="repeat", count=minute % 6)
        if minute in (12, 40, 41, 300):
            factories.make_minute(session, minute=at, result="failed", count=9)
        if 20 < minute < 28:
            factories.make_minute(session, minute=at, result="rejected", count=5)
        full = 60 * max(0, 12 - abs(minute - 25))
        session.add(
            InboxLevel(
                source="",
                minute=at,
                waiting=full + minute % 4,
                parked=30,
                held=80 if minute < 18 else 0,
                dead=3,
                oldest_seconds=full // 2 + 2 if full else minute % 3,
            )
        )
