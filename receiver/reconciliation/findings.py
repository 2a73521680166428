"""Keep the drift report: one open finding for a kind, source, order and transaction, until it is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.arrays import Texts
from receiver.reconciliation.compare import Difference

_KEEP = text(
    """\
INSERT INTO drift_findings AS f
  (kind, source, order_reference, transaction_id, ours, theirs, events, opened_at, seen_at)
SELECT :kind, :source, :order_reference, :transaction_id, :ours, :theirs, CAST(:events AS uuid[]),
       t.now, t.now
FROM (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now) t
ON CONFLICT (kind, source, order_reference, transaction_id) WHERE closed_at IS NULL DO UPDATE SET
  ours = excluded.ours, theirs = excluded.theirs, seen_at = excluded.seen_at,
  events = coalesce(excluded.events, f.events)"""
)

_CLOSE = text(
    """\
UPDATE drift_findings f
SET closed_at = coalesce(CAST(:now AS timestamptz), now()), closed_because = 'agrees'
WHERE order_reference = :order_reference AND source = :source AND closed_at IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM unnest(CAST(:kinds AS text[]), CAST(:transactions AS text[])) AS k(kind, transaction_id)
    WHERE k.kind = f.kind AND k.transaction_id = f.transaction_id
  )"""
)

_SETTLE = text(
    """\
UPDATE drift_findings f
SET closed_at = coalesce(CAST(:now AS timestamptz), now()),
    closed_because = CASE WHEN f.kind = 'missing' THEN 'processed' ELSE 'registered' END
WHERE f.closed_at IS NULL AND CASE f.kind
  WHEN 'missing' THEN f.events IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM webhook_events e WHERE e.id = ANY(f.events) AND e.state <> 'processed'
  )
  WHEN 'unknown_to_us' THEN f.order_reference <> '' AND EXISTS (
    SELECT 1 FROM orders o WHERE o.reference = f.order_reference
  )
  ELSE false END"""
)


def keep_findings(
    session: Session,
    source: str,
    differences: Sequence[Difference],
    events: Mapping[str, Sequence[UUID]],
    *,
    now: datetime | None = None,
) -> None:
    """Open or refresh a finding for each difference. ``events``: what was posted, by transaction."""
    # In one order, so that two askers wait for and never block each other.
    for one in sorted(differences, key=lambda one: (one.kind, one.order_reference, one.transaction_id)):
        session.execute(
            _KEEP,
            {
                "kind": one.kind,
                "source": source,
                "order_reference": one.order_reference,
                "transaction_id": one.transaction_id,
                "ours": one.ours,
                "theirs": one.theirs,
                "events": list(events.get(one.transaction_id, ())) or None if one.kind == "missing" else None,
                "now": now,
            },
        )


def close_others(
    session: Session,
    source: str,
    order_reference: str,
    still: Sequence[Difference],
    *,
    now: datetime | None = None,
) -> None:
    """Close the order's findings at the source that hold no more: only after an answer to every question."""
    session.execute(
        _CLOSE,
        {
            "source": source,
            "order_reference": order_reference,
            "kinds": Texts(one.kind for one in still),
            "transactions": Texts(one.transaction_id for one in still),
            "now": now,
        },
    )


def settle_findings(session: Session, *, now: datetime | None = None) -> int:
    """Close what the inbox has settled since: posted events processed, unknown orders registered."""
    return int(session.execute(_SETTLE, {"now": now}).rowcount)  # type: ignore[attr-defined]
