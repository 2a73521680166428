"""Rows for tests: each factory fills what the asked-for state implies, so that every CHECK holds.

Give what the test is about; the rest is plausible. Rows are added and flushed, never committed.
``at`` is the time of the row (received, created), NOW of the tests' clock unless given.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy.orm import Session

from receiver.accounts.models import User
from receiver.alerts.models import Alert
from receiver.dice import uuid7
from receiver.inbox.models import (
    InboxMinute,
    WebhookConflict,
    WebhookEvent,
    WebhookEventAttempt,
    WebhookPayload,
    WebhookRejection,
)
from receiver.orders.models import LedgerEntry, Order, OrderTransaction, OrderTransition
from receiver.queue.models import BulkReplay, Pause, Worker

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

WITH_MONEY = ("paid", "partially_refunded", "refunded", "disputed", "charged_back")
"""Order states that imply a capture of the whole amount."""

_numbers = itertools.count(1)


def new_id(at: datetime = NOW) -> UUID:
    """A UUIDv7 of a time, growing within this run, so that later rows sort after earlier ones."""
    return uuid7(int(at.timestamp() * 1000), next(_numbers) << 40)


def make_event(
    session: Session,
    *,
    state: str = "pending",
    at: datetime = NOW,
    payload: bytes | None = b"",
    headers: Mapping[str, str] | None = None,
    **columns: Any,
) -> WebhookEvent:
    """A stored event; ``payload`` None leaves it without one, empty makes one from the facts.

    ``parked_reason`` parks it, ``reason`` becomes the outcome of a failed row, and a row that is
    in flight or ended has one attempt counted.
    """
    number = next(_numbers)
    values: dict[str, Any] = {
        "id": new_id(at),
        "source": "demo",
        "provider_event_id": f"evt_{number}",
        "event_type": "payment.succeeded",
        "kind": "succeeded",
        "order_reference": "ord_1",
        "transaction_id": f"tx_{number}",
        "amount_minor": 2500,
        "currency": "EUR",
        "key_id": "0a1b2c3d",
        "received_at": at,
        "last_received_at": at,
        "next_attempt_at": at,
        "give_up_at": at + timedelta(hours=72),
        "created_at": at,
        "updated_at": at,
        "state": state,
        **_of_state(state, at, columns),
        **columns,
    }
    if payload is not None:
        _add_payload(session, values, payload or body_of(values), headers)
    values.setdefault("payload_sha256", hashlib.sha256(str(number).encode()).digest())
    values.setdefault("facts_sha256", hashlib.sha256(f"facts {number}".encode()).digest())
    event = WebhookEvent(**values)
    session.add(event)
    session.flush()
    return event


def _add_payload(
    session: Session, values: dict[str, Any], body: bytes, headers: Mapping[str, str] | None
) -> None:
    stored = WebhookPayload(
        id=new_id(values["received_at"]),
        payload=body,
        headers=[list(pair) for pair in (headers or {"Content-Type": "application/json"}).items()],
        received_at=values["received_at"],
    )
    session.add(stored)
    session.flush()
    values.setdefault("payload_id", stored.id)
    values.setdefault("payload_sha256", hashlib.sha256(body).digest())


def _of_state(state: str, at: datetime, columns: Mapping[str, Any]) -> dict[str, Any]:
    if state == "pending":
        return {"parked_at": at} if columns.get("parked_reason") else {}
    if state == "in_flight":
        return {
            "claim_id": uuid4(),
            "claimed_at": at,
            "claimed_until": at + timedelta(seconds=60),
            "claimed_by": "worker-1",
            "attempts": 1,
        }
    ended: dict[str, Any] = {"finished_at": at + timedelta(seconds=1), "attempts": 1}
    if state == "processed":
        return {**ended, "outcome": "ignored" if columns.get("reason") else "applied"}
    reason = columns.get("reason", "amount" if state == "failed" else "order_unknown")
    return {**ended, "outcome": reason, "reason": reason, "last_error_code": reason}


def body_of(facts: Mapping[str, Any]) -> bytes:
    """A demo body that says the given facts."""
    data = {
        "order_id": facts.get("order_reference"),
        "transaction_id": facts.get("transaction_id"),
        "amount": facts.get("amount_minor"),
        "currency": facts.get("currency"),
    }
    document = {"id": facts["provider_event_id"], "type": facts.get("event_type"), "data": data}
    return json.dumps(document).encode()


def make_attempt(session: Session, event: WebhookEvent, **columns: Any) -> WebhookEventAttempt:
    """One finished try at an event."""
    values: dict[str, Any] = {
        "event_id": event.id,
        "replay": event.replays,
        "attempt": 1,
        "started_at": event.received_at,
        "duration_ms": 12,
        "outcome": event.outcome or "released",
        "error_code": event.last_error_code,
        "error": event.last_error,
        "worker": "worker-1",
        **columns,
    }
    attempt = WebhookEventAttempt(**values)
    session.add(attempt)
    session.flush()
    return attempt


def make_conflict(session: Session, event: WebhookEvent, **columns: Any) -> WebhookConflict:
    """Other bytes under the event's id: an open conflict unless ``kind`` says variant."""
    body = columns.get("payload", b'{"id":"other"}')
    values: dict[str, Any] = {
        "event_id": event.id,
        "payload_sha256": hashlib.sha256(body or b"").digest(),
        "payload": body,
        "headers": [["Content-Type", "application/json"]],
        "kind": "conflict",
        "first_seen_at": event.received_at,
        "last_seen_at": event.received_at,
        **columns,
    }
    conflict = WebhookConflict(**values)
    session.add(conflict)
    session.flush()
    return conflict


def make_rejection(session: Session, **columns: Any) -> WebhookRejection:
    """Refused requests of one kind in one minute."""
    values: dict[str, Any] = {
        "source": "demo",
        "reason": "signature",
        "minute": NOW.replace(second=0, microsecond=0),
        "remote_address": "203.0.113.7",
        "length": 120,
        "count": 1,
        **columns,
    }
    rejection = WebhookRejection(**values)
    session.add(rejection)
    session.flush()
    return rejection


def make_minute(session: Session, **columns: Any) -> InboxMinute:
    """One row of the roll-up."""
    values: dict[str, Any] = {
        "source": "demo",
        "minute": NOW.replace(second=0, microsecond=0),
        "result": "applied",
        "count": 1,
        **columns,
    }
    minute = InboxMinute(**values)
    session.add(minute)
    session.flush()
    return minute


def make_order(session: Session, *, state: str = "pending", at: datetime = NOW, **columns: Any) -> Order:
    """An order with the totals that its state implies, 25.00 EUR unless told otherwise."""
    amount = columns.get("amount_minor", 2500)
    captured = amount if state in WITH_MONEY else 0
    values: dict[str, Any] = {
        "id": new_id(at),
        "reference": f"ord_{next(_numbers)}",
        "sources": None,
        "amount_minor": amount,
        "currency": "EUR",
        "state": state,
        "authorized_minor": amount if state == "authorized" else 0,
        "captured_minor": amount // 2 if state == "partially_paid" else captured,
        "refunded_minor": {"refunded": amount, "partially_refunded": amount // 2}.get(state, 0),
        "cancelled_at": at if state == "cancelled" else None,
        "created_at": at,
        "updated_at": at,
        **columns,
    }
    order = Order(**values)
    session.add(order)
    session.flush()
    return order


def make_transaction(session: Session, order: Order | None, **columns: Any) -> OrderTransaction:
    """A provider transaction, of an order or of none yet."""
    at = order.created_at if order else NOW
    values: dict[str, Any] = {
        "order_id": order.id if order else None,
        "source": "demo",
        "transaction_id": f"tx_{next(_numbers)}",
        "created_at": at,
        "updated_at": at,
        **columns,
    }
    transaction = OrderTransaction(**values)
    session.add(transaction)
    session.flush()
    return transaction


def make_ledger_entry(
    session: Session, order: Order, event: WebhookEvent | None = None, **columns: Any
) -> LedgerEntry:
    """One money fact of an order, by default the capture of its whole amount."""
    number = next(_numbers)
    transaction_id = event.transaction_id if event else f"tx_{number}"
    values: dict[str, Any] = {
        "order_id": order.id,
        "source": event.source if event else "demo",
        "transaction_id": transaction_id,
        "kind": "capture",
        "effect_id": transaction_id,
        "amount_minor": order.amount_minor,
        "currency": order.currency,
        "event_id": event.id if event else None,
        "provider_event_id": event.provider_event_id if event else f"evt_{number}",
        "by": "event",
        "created_at": order.created_at,
        **columns,
    }
    entry = LedgerEntry(**values)
    session.add(entry)
    session.flush()
    return entry


def make_transition(session: Session, order: Order, **columns: Any) -> OrderTransition:
    """One change of an order's state, by default from pending to its present state."""
    values: dict[str, Any] = {
        "order_id": order.id,
        "from_state": "pending",
        "to_state": order.state,
        "at": order.created_at,
        "by": "event",
        **columns,
    }
    transition = OrderTransition(**values)
    session.add(transition)
    session.flush()
    return transition


def make_pause(session: Session, key: str = "demo", **columns: Any) -> Pause:
    """A pause of a source of the inbox."""
    values: dict[str, Any] = {
        "queue": "inbox",
        "key": key,
        "by": "olga",
        "reason": "provider maintenance",
        "paused_at": NOW,
        **columns,
    }
    pause = Pause(**values)
    session.add(pause)
    session.flush()
    return pause


def make_bulk_replay(session: Session, **columns: Any) -> BulkReplay:
    """A bulk replay midway."""
    values: dict[str, Any] = {
        "id": new_id(),
        "queue": "inbox",
        "filter": {"state": "dead"},
        "counted": 3000,
        "done": 1200,
        "skipped": 14,
        "spread_seconds": 300,
        "by": "olga",
        "reason": "the currency setting was repaired",
        "created_at": NOW - timedelta(minutes=2),
        "updated_at": NOW,
        **columns,
    }
    replay = BulkReplay(**values)
    session.add(replay)
    session.flush()
    return replay


def make_worker(session: Session, **columns: Any) -> Worker:
    """A worker that was seen just now."""
    number = next(_numbers)
    values: dict[str, Any] = {
        "id": new_id(),
        "name": f"worker-{number}",
        "host": "host-1",
        "pid": number,
        "started_at": NOW - timedelta(hours=1),
        "last_seen_at": NOW,
        "last_tick_at": NOW,
        **columns,
    }
    worker = Worker(**values)
    session.add(worker)
    session.flush()
    return worker


def make_user(session: Session, *, name: str = "olga", role: str = "operator", **columns: Any) -> User:
    """A user without a password (give ``password_hash`` for one)."""
    values: dict[str, Any] = {"id": new_id(), "name": name, "role": role, "created_at": NOW, **columns}
    user = User(**values)
    session.add(user)
    session.flush()
    return user


def make_alert(session: Session, **columns: Any) -> Alert:
    """An alert that stands open."""
    at = columns.get("opened_at", NOW)
    values: dict[str, Any] = {
        "kind": "silence",
        "key": "demo",
        "level": "page",
        "step": 1,
        "facts": {"expected": 40, "last": "2026-03-01 11:00 UTC"},
        "since": at - timedelta(hours=1),
        "seen_at": at,
        "opened_at": at,
        "noticed_at": at,
        **columns,
    }
    alert = Alert(**values)
    session.add(alert)
    session.flush()
    return alert
