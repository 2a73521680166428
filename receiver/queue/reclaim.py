"""Reclaim and expire: the duties that end what no worker ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.queue.settle import LateEnd
from receiver.queue.table import QueueTable

MAX_LOST = 3
"""A row that took its worker along this often is poison: it fails as `worker_lost`."""

_RECLAIM = """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now),
gone AS MATERIALIZED (
  SELECT e.id, e.attempts, e.replays, e.claimed_at, e.claimed_by FROM {table} e, t
  WHERE e.state = 'in_flight' AND e.claimed_until < t.now
  ORDER BY e.claimed_until LIMIT :batch FOR UPDATE OF e SKIP LOCKED
), done AS (
  UPDATE {table} AS e
  SET lost = e.lost + 1,
      state = CASE WHEN e.lost + 1 >= {max_lost} THEN 'failed' ELSE 'pending' END,
      outcome = CASE WHEN e.lost + 1 >= {max_lost} THEN 'worker_lost' END,
      reason = CASE WHEN e.lost + 1 >= {max_lost} THEN 'worker_lost' END,
      finished_at = CASE WHEN e.lost + 1 >= {max_lost} THEN t.now END,
      next_attempt_at = least(e.give_up_at, t.now),
      parked_reason = CASE WHEN e.lost + 1 >= {max_lost} THEN NULL ELSE e.parked_reason END,
      parked_at = CASE WHEN e.lost + 1 >= {max_lost} THEN NULL ELSE e.parked_at END,
      last_error_code = 'worker_lost',
      last_error = 'the worker ' || gone.claimed_by || ' vanished during this attempt', failed_in = NULL,
      claim_id = NULL, claimed_at = NULL, claimed_until = NULL,
      row_version = e.row_version + 1, updated_at = t.now
  FROM gone, t WHERE e.id = gone.id
  RETURNING e.id, e.state
), tried AS (
  INSERT INTO {attempts_table}
    ({attempts_column}, replay, attempt, started_at, duration_ms, outcome, error_code, error, worker)
  SELECT id, replays, attempts, claimed_at,
         greatest(0, (extract(epoch FROM t.now - claimed_at) * 1000)::bigint), 'lost', 'worker_lost',
         'the worker ' || claimed_by || ' vanished during this attempt', claimed_by
  FROM gone, t
  ON CONFLICT DO NOTHING
)
SELECT id, state FROM done
"""

_EXPIRE = """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now),
late AS MATERIALIZED (
  SELECT e.id FROM {table} e, t
  WHERE e.state = 'pending' AND e.give_up_at <= t.now AND e.attempts > 0
    AND e.next_attempt_at <= t.now - interval '1 minute'
    AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.queue = '{queue}' AND p.key = e.{key})
  ORDER BY e.give_up_at, e.id LIMIT :batch FOR UPDATE OF e SKIP LOCKED
)
UPDATE {table} AS e
SET state = coalesce(s.state, 'expired'),
    outcome = coalesce(s.outcome, e.parked_reason, e.last_error_code, 'expired'),
    reason = coalesce(s.reason, e.parked_reason, e.last_error_code, 'expired'),
    last_error_code = CASE WHEN s.state = '{success}' THEN NULL ELSE e.last_error_code END,
    last_error = CASE WHEN s.state = '{success}' THEN NULL ELSE e.last_error END,
    finished_at = t.now, parked_reason = NULL, parked_at = NULL,
    row_version = e.row_version + 1, updated_at = t.now
FROM t, late LEFT JOIN {table} w ON w.id = late.id
  LEFT JOIN unnest(CAST(:parked AS text[]), CAST(:states AS text[]), CAST(:outcomes AS text[]),
                   CAST(:reasons AS text[])) AS s(parked, state, outcome, reason)
    ON s.parked = w.parked_reason
WHERE e.id = late.id
RETURNING e.id, e.state
"""


class Ended(NamedTuple):
    """A row and the state that it was brought to."""

    row_id: UUID
    state: str


def reclaim(
    session: Session, table: QueueTable, *, batch: int = 500, now: datetime | None = None
) -> list[Ended]:
    """In flight with a lease that is over → pending, or failed `worker_lost` after MAX_LOST."""
    statement = _RECLAIM.format(
        table=table.table,
        attempts_table=table.attempts_table,
        attempts_column=table.attempts_column,
        max_lost=MAX_LOST,
    )
    return [Ended(*row) for row in session.execute(text(statement), {"now": now, "batch": batch})]


def expire(
    session: Session,
    table: QueueTable,
    late_ends: Mapping[str, LateEnd],
    *,
    batch: int = 500,
    now: datetime | None = None,
) -> list[Ended]:
    """Pending past the deadline → its end. The last look at the deadline is the claim's; this is
    for rows that got none. Never a held row, and never one that was not tried at all.
    """
    statement = _EXPIRE.format(table=table.table, key=table.key, queue=table.name, success=table.success)
    parameters = {
        "now": now,
        "batch": batch,
        "parked": list(late_ends),
        "states": [end.state for end in late_ends.values()],
        "outcomes": [end.outcome for end in late_ends.values()],
        "reasons": [end.reason for end in late_ends.values()],
    }
    return [Ended(*row) for row in session.execute(text(statement), parameters)]
