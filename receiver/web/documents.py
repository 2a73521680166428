"""The JSON documents of the order API: what a row looks like to the merchant's systems.

Amounts are integers in minor units, times ISO 8601 in UTC; nothing is rounded or reworded.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from receiver.inbox.event_detail import EventDetail
from receiver.inbox.models import WebhookEvent
from receiver.orders.find_orders import OrderDetail
from receiver.orders.models import Order


def order(row: Order) -> dict[str, Any]:
    """One order's facts, state and totals."""
    return {
        "reference": row.reference,
        "amount_minor": row.amount_minor,
        "currency": row.currency,
        "sources": row.sources,
        "state": row.state,
        "authorized_minor": row.authorized_minor,
        "captured_minor": row.captured_minor,
        "refunded_minor": row.refunded_minor,
        "cancelled_at": instant(row.cancelled_at),
        "created_at": instant(row.created_at),
        "updated_at": instant(row.updated_at),
    }


def order_in_full(detail: OrderDetail, events: Sequence[WebhookEvent]) -> dict[str, Any]:
    """One order with ledger, transitions, transactions and events, oldest first."""
    return {
        **order(detail.order),
        "ledger": [
            {
                "kind": line.kind,
                "source": line.source,
                "transaction_id": line.transaction_id,
                "effect_id": line.effect_id,
                "amount_minor": line.amount_minor,
                "currency": line.currency,
                "event": str(line.event_id) if line.event_id else None,
                "by": line.by,
                "created_at": instant(line.created_at),
            }
            for line in detail.ledger
        ],
        "transitions": [
            {
                "from": change.from_state,
                "to": change.to_state,
                "event": str(change.event_id) if change.event_id else None,
                "by": change.by,
                "reason": change.reason,
                "at": instant(change.at),
            }
            for change in detail.transitions
        ],
        "transactions": [
            {
                "source": known.source,
                "transaction_id": known.transaction_id,
                "status": known.status,
                "paying": known.paying,
                "refused": known.refused,
            }
            for known in detail.transactions
        ],
        "events": [event(row) for row in events],
    }


def event(row: WebhookEvent) -> dict[str, Any]:
    """One event's facts, state and outcome."""
    return {
        "receipt": str(row.id),
        "source": row.source,
        "provider_event_id": row.provider_event_id,
        "type": row.event_type,
        "kind": row.kind,
        "order_reference": row.order_reference,
        "transaction_id": row.transaction_id,
        "effect_id": row.effect_id,
        "amount_minor": row.amount_minor,
        "currency": row.currency,
        "state": row.state,
        "outcome": row.outcome,
        "reason": row.reason,
        "detail": row.last_error,
        "parked_reason": row.parked_reason,
        "attempts": row.attempts,
        "replays": row.replays,
        "receipts": row.receipts,
        "variants": row.variants,
        "received_at": instant(row.received_at),
        "finished_at": instant(row.finished_at),
    }


def event_in_full(detail: EventDetail) -> dict[str, Any]:
    """One event with its attempts and its conflicts; never its payload."""
    return {
        **event(detail.event),
        "order": detail.order.reference if detail.order else None,
        "attempt_history": [
            {
                "replay": attempt.replay,
                "attempt": attempt.attempt,
                "started_at": instant(attempt.started_at),
                "duration_ms": attempt.duration_ms,
                "outcome": attempt.outcome,
                "error_code": attempt.error_code,
                "error": attempt.error,
            }
            for attempt in detail.attempts
        ],
        "conflicts": [
            {
                "kind": conflict.kind,
                "payload_sha256": conflict.payload_sha256.hex(),
                "state": conflict.state,
                "count": conflict.count,
                "first_seen_at": instant(conflict.first_seen_at),
                "last_seen_at": instant(conflict.last_seen_at),
            }
            for conflict in detail.conflicts
        ],
    }


def instant(at: datetime | None) -> str | None:
    """ISO 8601 in UTC with a Z."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")
