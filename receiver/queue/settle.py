"""How a claim ends: the verbs as values, and the one statement that writes a batch of them.

A settlement never touches a row whose ``claim_id`` is no longer the caller's: the row's id is then
missing from the answer, and the caller must roll its effect back. A row that would return to
pending after its ``give_up_at`` ends as the settlement's ``late_…`` says; the database decides that,
since only it knows the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.orm import Session

from receiver.arrays import Array, Booleans, Intervals, Texts, Uuids
from receiver.queue import backoff
from receiver.queue.table import EXPIRED, FAILED, PENDING, QueueTable

ERROR_LENGTH = 2000
"""Longest error text that a row keeps."""


def _kept(error: str) -> str:
    """An error's text as a row can keep it: no NUL, no lone surrogate, not too long."""
    return error.encode(errors="replace").decode().replace("\0", "?")[:ERROR_LENGTH]


@dataclass(frozen=True, slots=True)
class Settlement:
    """One row's end of a claim. ``wait`` None keeps ``next_attempt_at``; ``counted`` False takes the
    attempt back; ``attempt`` is the outcome for the attempts table, None writes no attempt row.
    ``late_state`` and ``late_outcome`` (with ``reason``) are the end of a row past its deadline.
    ``failed_in`` is the place in our code where the attempt broke.
    """

    row_id: UUID
    state: str
    outcome: str | None = None
    reason: str | None = None
    wait: timedelta | None = None
    parked_reason: str | None = None
    error_code: str | None = None
    error: str | None = None
    counted: bool = True
    attempt: str | None = None
    late_state: str | None = None
    late_outcome: str | None = None
    failed_in: str | None = None


class LateEnd(NamedTuple):
    """How a row that waits ends at its deadline, where that is not `expired`."""

    state: str
    outcome: str
    reason: str


class Settled(NamedTuple):
    """What became of a row: its state and reason after the statement."""

    row_id: UUID
    state: str
    reason: str | None


def finish(
    table: QueueTable, row_id: UUID, outcome: str, reason: str | None = None, detail: str | None = None
) -> Settlement:
    """In flight → the good end, in the transaction of the effect; ``detail`` is a sentence on ``reason``."""
    return Settlement(row_id, table.success, outcome, reason, error=detail, attempt=outcome)


def fail(row_id: UUID, reason: str, detail: str) -> Settlement:
    """In flight → failed: permanent, with a reason code and a sentence for people."""
    return Settlement(row_id, FAILED, reason, reason, error_code=reason, error=_kept(detail), attempt=FAILED)


def release(
    row_id: UUID, attempts: int, jitter: float, code: str, error: str, failed_in: str | None = None
) -> Settlement:
    """In flight → pending after a transient failure, by backoff; past the deadline → expired."""
    return Settlement(
        row_id,
        PENDING,
        reason=code,
        wait=backoff.wait_after(attempts, jitter),
        error_code=code,
        error=_kept(error),
        attempt="retry",
        late_state=EXPIRED,
        late_outcome=code,
        failed_in=failed_in,
    )


def park(row_id: UUID, reason: str, detail: str, *, again: bool, late: LateEnd | None = None) -> Settlement:
    """In flight → pending, waiting for something. ``again``: it waited for the same before, so that
    this look counts no attempt and writes no attempt row. ``late``: its end at the deadline, where
    that is not `expired`.
    """
    end = late or LateEnd(EXPIRED, reason, reason)
    return Settlement(
        row_id,
        PENDING,
        reason=end.reason,
        parked_reason=reason,
        error_code=reason,
        error=_kept(detail),
        counted=not again,
        attempt=None if again else "parked",
        late_state=end.state,
        late_outcome=end.outcome,
    )


def defer(row_id: UUID, code: str, error: str) -> Settlement:
    """In flight → pending for a few seconds, uncounted: somebody else held what the row needs."""
    return Settlement(row_id, PENDING, wait=backoff.DEFER, error_code=code, error=_kept(error), counted=False)


def hand_back(row_id: UUID) -> Settlement:
    """In flight → pending as it was: claimed, and not started before the shutdown."""
    return Settlement(row_id, PENDING, counted=False)


_PARK_WAIT = "CASE {steps} ELSE {last} END".format(
    steps=" ".join(
        f"WHEN {{age}} < interval '{int(below.total_seconds())} seconds'"
        f" THEN interval '{int(wait.total_seconds())} seconds'"
        for below, wait in backoff.PARK_STEPS
    ),
    last=f"interval '{int(backoff.PARK_LAST.total_seconds())} seconds'",
)

_SETTLE = """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now),
s AS (
  SELECT * FROM unnest(
    CAST(:ids AS uuid[]), CAST(:states AS text[]), CAST(:outcomes AS text[]), CAST(:reasons AS text[]),
    CAST(:waits AS interval[]), CAST(:parked AS text[]), CAST(:codes AS text[]), CAST(:errors AS text[]),
    CAST(:counted AS bool[]), CAST(:attempts AS text[]), CAST(:late_states AS text[]),
    CAST(:late_outcomes AS text[]), CAST(:places AS text[])
  ) AS s(id, state, outcome, reason, wait, parked, code, error, counted, attempt, late_state, late_outcome,
         place)
), done AS (
  UPDATE {table} AS e
  SET state = CASE WHEN {late} THEN s.late_state ELSE s.state END,
      outcome = CASE WHEN {late} THEN s.late_outcome ELSE s.outcome END,
      reason = CASE WHEN s.state = 'pending' AND NOT {late} THEN NULL ELSE s.reason END,
      finished_at = CASE WHEN s.state <> 'pending' OR {late} THEN t.now END,
      next_attempt_at = CASE
        WHEN s.state <> 'pending' OR {late} THEN e.next_attempt_at
        WHEN s.parked IS NOT NULL THEN least(e.give_up_at, t.now + {park_wait})
        WHEN s.wait IS NOT NULL THEN least(e.give_up_at, t.now + s.wait)
        ELSE e.next_attempt_at END,
      parked_reason = CASE WHEN s.state = 'pending' AND NOT {late}
        THEN coalesce(s.parked, CASE WHEN NOT s.counted THEN e.parked_reason END) END,
      parked_at = CASE WHEN s.state = 'pending' AND NOT {late}
        THEN CASE WHEN s.parked IS NOT NULL
          THEN CASE WHEN e.parked_reason = s.parked THEN e.parked_at ELSE t.now END
          WHEN NOT s.counted THEN e.parked_at END END,
      attempts = e.attempts - CASE WHEN s.counted OR {late} THEN 0 ELSE 1 END,
      last_error_code = CASE
        WHEN '{success}' IN (s.state, CASE WHEN {late} THEN s.late_state END) THEN NULL
        WHEN s.code IS NULL AND s.state = 'pending' THEN e.last_error_code ELSE s.code END,
      last_error = CASE
        WHEN '{success}' IN (s.state, CASE WHEN {late} THEN s.late_state END) THEN NULL
        WHEN s.code IS NULL AND s.state = 'pending' THEN e.last_error ELSE s.error END,
      failed_in = CASE WHEN s.code IS NULL AND s.state = 'pending' THEN e.failed_in ELSE s.place END,
      claim_id = NULL, claimed_at = NULL, claimed_until = NULL,
      row_version = e.row_version + 1, updated_at = t.now
  FROM s, t
  WHERE e.id = s.id AND e.state = 'in_flight' AND e.claim_id = :claim_id
  RETURNING e.id, e.state, e.reason, e.replays, e.attempts, s.code, s.error,
    CASE WHEN s.state = 'pending' AND e.state = '{success}' THEN e.outcome
         WHEN s.state = 'pending' AND e.state <> 'pending' THEN e.state
         ELSE s.attempt END AS attempt
), tried AS (
  INSERT INTO {attempts_table}
    ({attempts_column}, replay, attempt, started_at, duration_ms, outcome, error_code, error, worker)
  SELECT d.id, d.replays, d.attempts, coalesce(CAST(:started_at AS timestamptz), t.now), :duration_ms,
         d.attempt, d.code, d.error, :worker
  FROM done d, t WHERE d.attempt IS NOT NULL
  ON CONFLICT DO NOTHING
)
SELECT id, state, reason FROM done
"""


_ARRAYS: tuple[tuple[str, type[Array]], ...] = (
    ("ids", Uuids),
    ("states", Texts),
    ("outcomes", Texts),
    ("reasons", Texts),
    ("waits", Intervals),
    ("parked", Texts),
    ("codes", Texts),
    ("errors", Texts),
    ("counted", Booleans),
    ("attempts", Texts),
    ("late_states", Texts),
    ("late_outcomes", Texts),
    ("places", Texts),
)


def settle(
    session: Session,
    table: QueueTable,
    claim_id: UUID,
    settlements: Sequence[Settlement],
    *,
    worker: str,
    started_at: datetime | None = None,
    duration_ms: int = 0,
    now: datetime | None = None,
) -> list[Settled]:
    """Write the ends of a claim's rows and their attempts; returns those that were still ours.

    ``started_at`` None writes the database's time; ``duration_ms`` is that of the whole batch.
    """
    if not settlements:
        return []
    columns = zip(*[_values(settlement) for settlement in settlements], strict=True)
    parameters: dict[str, object] = {
        name: kind(column) for (name, kind), column in zip(_ARRAYS, columns, strict=True)
    }
    parameters |= {
        "claim_id": claim_id,
        "now": now,
        "started_at": started_at,
        "duration_ms": duration_ms,
        "worker": worker,
    }
    return [Settled(*row) for row in session.execute(_statement(table), parameters)]


def _values(settlement: Settlement) -> tuple[object, ...]:
    return (
        settlement.row_id,
        settlement.state,
        settlement.outcome,
        settlement.reason,
        settlement.wait,
        settlement.parked_reason,
        settlement.error_code,
        settlement.error,
        settlement.counted,
        settlement.attempt,
        settlement.late_state,
        settlement.late_outcome,
        settlement.failed_in,
    )


@cache
def _statement(table: QueueTable) -> TextClause:
    late = "(s.state = 'pending' AND s.late_state IS NOT NULL AND t.now >= e.give_up_at)"
    age = "(CASE WHEN e.parked_reason = s.parked THEN t.now - e.parked_at ELSE interval '0 seconds' END)"
    return text(
        _SETTLE.format(
            table=table.table,
            attempts_table=table.attempts_table,
            attempts_column=table.attempts_column,
            late=late,
            success=table.success,
            park_wait=_PARK_WAIT.format(age=age),
        )
    )
