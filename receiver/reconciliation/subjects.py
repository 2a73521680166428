"""Which orders are asked for at which source: enrolled once they are due, claimed under a lease."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.arrays import Texts, Uuids
from receiver.reconciliation.ask import Subject

LEASE = timedelta(minutes=3)
"""Longer than the questions of a batch take: an asker that died holds its orders no longer."""

ENROL = 2000
_OVERLAP = timedelta(minutes=15)
"""An order that is committed late was registered before the mark."""

_NOW = "coalesce(CAST(:now AS timestamptz), now())"
_UNPAID = "o.state IN ('pending', 'failed', 'authorized', 'partially_paid')"

_MARK = text(
    f"""\
INSERT INTO reconcile_marks AS m (source, enrolled_until)
SELECT s, {_NOW} - CAST(:longest AS interval) FROM unnest(CAST(:sources AS text[])) AS s ORDER BY s
ON CONFLICT (source) DO NOTHING"""
)

_ENROL = text(
    f"""\
WITH m AS (
  SELECT source, enrolled_until FROM reconcile_marks WHERE source = :source FOR UPDATE SKIP LOCKED
), due AS MATERIALIZED (
  SELECT o.id, o.created_at, o.sources, m.source FROM m, orders o
  WHERE {_UNPAID}
    AND o.created_at > m.enrolled_until - CAST(:overlap AS interval)
    AND o.created_at <= {_NOW} - CAST(:after AS interval)
    AND NOT EXISTS (SELECT 1 FROM order_checks c WHERE c.order_id = o.id AND c.source = m.source)
    AND (o.sources IS NULL OR m.source = ANY(o.sources))
  ORDER BY o.created_at LIMIT :batch
), enrolled AS (
  INSERT INTO order_checks (order_id, source, next_check_at, created_at)
  SELECT id, source, created_at + CAST(:after AS interval), {_NOW} FROM due ORDER BY id
  ON CONFLICT (order_id, source) DO NOTHING
)
UPDATE reconcile_marks k
SET enrolled_until = greatest(k.enrolled_until, coalesce(
  (SELECT max(created_at) FROM due HAVING count(*) = :batch), {_NOW} - CAST(:after AS interval)))
FROM m WHERE k.source = m.source
RETURNING (SELECT count(*) FROM due)"""
)

_ENROL_FAILED_REFUNDS = text(
    f"""\
INSERT INTO order_checks AS c (order_id, source, next_check_at, created_at)
SELECT l.order_id, l.source, {_NOW}, {_NOW}
FROM (
  SELECT order_id, source, max(created_at) AS at FROM ledger_entries
  WHERE kind = 'refund_failed' AND created_at > {_NOW} - interval '2 days'
    AND source = ANY(CAST(:sources AS text[]))
  GROUP BY order_id, source ORDER BY order_id, source
) l
LEFT JOIN order_checks k ON k.order_id = l.order_id AND k.source = l.source
WHERE k.order_id IS NULL
   OR (k.next_check_at IS NULL AND (k.last_checked_at IS NULL OR k.last_checked_at <= l.at))
ON CONFLICT (order_id, source) DO UPDATE SET next_check_at = excluded.next_check_at"""
)

_CLAIM = text(
    f"""\
WITH due AS MATERIALIZED (
  SELECT order_id, source FROM order_checks
  WHERE next_check_at IS NOT NULL AND next_check_at <= {_NOW}
    AND (claimed_until IS NULL OR claimed_until < {_NOW})
    AND source = ANY(CAST(:sources AS text[]))
  ORDER BY next_check_at LIMIT :batch FOR UPDATE SKIP LOCKED
)
UPDATE order_checks c
SET claim_id = :claim_id, claimed_until = {_NOW} + CAST(:lease AS interval)
FROM due WHERE c.order_id = due.order_id AND c.source = due.source
RETURNING c.order_id, c.source, c.last_answered_at"""
)

_DEMAND = text(
    f"""\
INSERT INTO order_checks AS c (order_id, source, next_check_at, created_at, claim_id, claimed_until)
SELECT :order_id, s, {_NOW}, {_NOW}, CAST(:claim_id AS uuid), {_NOW} + CAST(:lease AS interval)
FROM unnest(CAST(:sources AS text[])) AS s ORDER BY s
ON CONFLICT (order_id, source) DO UPDATE SET
  next_check_at = excluded.next_check_at, claim_id = excluded.claim_id, claimed_until = excluded.claimed_until
RETURNING c.order_id, c.source, c.last_answered_at"""
)

_DUE_NOW = text(
    f"""\
INSERT INTO order_checks AS c (order_id, source, next_check_at, created_at)
SELECT o.id, s, {_NOW}, {_NOW}
FROM orders o, unnest(CAST(:sources AS text[])) AS s
WHERE (o.reference = :reference OR (
         CAST(:reference AS text) IS NULL AND {_UNPAID}
         AND o.created_at >= CAST(:since AS timestamptz) AND o.created_at < CAST(:until AS timestamptz)))
  AND (o.sources IS NULL OR s = ANY(o.sources))
ORDER BY o.id, s
ON CONFLICT (order_id, source) DO UPDATE SET next_check_at = excluded.next_check_at"""
)

_SUBJECTS = text(
    """\
SELECT o.id, o.reference, k.source, o.created_at,
  ARRAY(SELECT transaction_id FROM order_transactions t
        WHERE t.order_id = o.id AND t.source = k.source ORDER BY t.id),
  EXISTS (SELECT 1 FROM ledger_entries l WHERE l.order_id = o.id AND l.source = k.source
          AND l.kind IN ('authorization', 'capture'))
FROM unnest(CAST(:ids AS uuid[]), CAST(:sources AS text[])) WITH ORDINALITY AS k(id, source, position)
JOIN orders o ON o.id = k.id ORDER BY k.position"""
)


def enrol(
    session: Session,
    sources: Iterable[str],
    *,
    after: timedelta,
    longest: timedelta,
    now: datetime | None = None,
) -> int:
    """Enrol orders that are unpaid ``after`` their registering, at each source that may pay them, and
    those with a failed refund; at most ENROL of a source. Returns how many orders were looked at.
    """
    names = sorted(sources)
    session.execute(_MARK, {"sources": Texts(names), "longest": longest, "now": now})
    seen = 0
    for name in names:
        parameters = {"source": name, "after": after, "overlap": _OVERLAP, "batch": ENROL, "now": now}
        seen += session.execute(_ENROL, parameters).scalar_one_or_none() or 0
    session.execute(_ENROL_FAILED_REFUNDS, {"sources": Texts(names), "now": now})
    return seen


def claim_due(
    session: Session,
    sources: Sequence[str],
    *,
    claim_id: UUID,
    batch: int,
    now: datetime | None = None,
) -> list[Subject]:
    """Claim up to ``batch`` orders that are due at one of ``sources``: nobody else asks meanwhile."""
    rows = session.execute(
        _CLAIM,
        {"sources": Texts(sources), "claim_id": claim_id, "batch": batch, "lease": LEASE, "now": now},
    ).all()
    return _subjects(session, rows)


def claim_order(
    session: Session,
    order_id: UUID,
    sources: Sequence[str],
    *,
    claim_id: UUID,
    now: datetime | None = None,
) -> list[Subject]:
    """Claim one order at once at these sources, on somebody's demand; an asker at work loses its claim."""
    rows = session.execute(
        _DEMAND,
        {
            "order_id": order_id,
            "sources": Texts(sources),
            "claim_id": claim_id,
            "lease": LEASE,
            "now": now,
        },
    ).all()
    return _subjects(session, rows)


def make_due(
    session: Session,
    sources: Sequence[str],
    *,
    reference: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    now: datetime | None = None,
) -> int:
    """Let the workers ask now: for one order, or for the unpaid ones registered in a window."""
    parameters = {
        "sources": Texts(sources),
        "reference": reference,
        "since": since,
        "until": until,
        "now": now,
    }
    return int(session.execute(_DUE_NOW, parameters).rowcount)  # type: ignore[attr-defined]


def _subjects(session: Session, rows: Sequence[tuple[UUID, str, datetime | None]]) -> list[Subject]:
    answered = {(row[0], row[1]): row[2] for row in rows}
    found = session.execute(
        _SUBJECTS, {"ids": Uuids(row[0] for row in rows), "sources": Texts(row[1] for row in rows)}
    )
    return [
        Subject(id_, reference, source, created_at, tuple(transactions), holds, answered[(id_, source)])
        for id_, reference, source, created_at, transactions, holds in found
    ]
