"""Claim: pending, due and not paused → in flight, in one statement.

Keys (sources, subscriptions) are found by hopping over the pending index, so that their number and
not the number of rows costs; each that has work gets an equal share of the batch through a LATERAL,
and a paused key is not looked into at all: a million held rows ahead cost nothing. Where the keys
are more than the batch has places, a hash of the claim's id deals the places out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.orm import Session

from receiver.queue.table import QueueTable

_CLAIM = """\
WITH RECURSIVE keys AS (
  (SELECT {key} AS key FROM {table} WHERE state = 'pending' ORDER BY {key} LIMIT 1)
  UNION ALL
  SELECT (SELECT {key} FROM {table} WHERE state = 'pending' AND {key} > keys.key ORDER BY {key} LIMIT 1)
  FROM keys WHERE keys.key IS NOT NULL
), open AS MATERIALIZED (
  SELECT key FROM keys
  WHERE key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.queue = '{queue}' AND p.key = keys.key)
    AND EXISTS (
      SELECT 1 FROM {table}
      WHERE state = 'pending' AND {key} = keys.key AND lost = 0
        AND next_attempt_at <= coalesce(CAST(:now AS timestamptz), now())
    )
  ORDER BY md5(key || CAST(:claim_id AS text))
), due AS MATERIALIZED (
  SELECT d.id
  FROM open CROSS JOIN LATERAL (
    SELECT id FROM {table}
    WHERE state = 'pending' AND {key} = open.key AND lost = 0
      AND next_attempt_at <= coalesce(CAST(:now AS timestamptz), now())
    ORDER BY next_attempt_at, id
    LIMIT greatest(1, CAST(:batch AS int) / (SELECT greatest(1, count(*)) FROM open))
    FOR UPDATE SKIP LOCKED
  ) d
  LIMIT CAST(:batch AS int)
)
"""

_CLAIM_LOST = """\
WITH due AS MATERIALIZED (
  SELECT id FROM {table} t
  WHERE state = 'pending' AND lost > 0
    AND next_attempt_at <= coalesce(CAST(:now AS timestamptz), now())
    AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.queue = '{queue}' AND p.key = t.{key})
  ORDER BY next_attempt_at, id
  LIMIT 1
  FOR UPDATE SKIP LOCKED
)
"""

_TAKE = """\
UPDATE {table} AS e
SET state = 'in_flight', attempts = attempts + 1, claim_id = :claim_id, claimed_by = :worker,
    claimed_at = coalesce(CAST(:now AS timestamptz), now()),
    claimed_until = coalesce(CAST(:now AS timestamptz), now()) + CAST(:lease AS interval),
    row_version = row_version + 1, updated_at = coalesce(CAST(:now AS timestamptz), now())
FROM due WHERE e.id = due.id
RETURNING {columns}
"""


def claim(
    session: Session,
    table: QueueTable,
    columns: Sequence[str],
    *,
    claim_id: UUID,
    worker: str,
    batch: int,
    lease: timedelta,
    now: datetime | None = None,
) -> list[Any]:
    """Take up to ``batch`` due rows of unpaused keys; returns their ``columns``.

    Rows that were lost with a worker before are left to `claim_lost`.
    """
    return _take(session, claim_statement(table, tuple(columns)), claim_id, worker, lease, now, batch=batch)


def claim_lost(
    session: Session,
    table: QueueTable,
    columns: Sequence[str],
    *,
    claim_id: UUID,
    worker: str,
    lease: timedelta,
    now: datetime | None = None,
) -> list[Any]:
    """Take one row that a worker was lost with: alone, so that it takes no innocent row along."""
    return _take(session, _lost_statement(table, tuple(columns)), claim_id, worker, lease, now)


def _take(
    session: Session,
    statement: TextClause,
    claim_id: UUID,
    worker: str,
    lease: timedelta,
    now: datetime | None,
    **more: Any,
) -> list[Any]:
    parameters = {"claim_id": claim_id, "worker": worker, "lease": lease, "now": now, **more}
    return list(session.execute(statement, parameters).all())


@cache
def claim_statement(table: QueueTable, columns: tuple[str, ...]) -> TextClause:
    """The claim's statement (its plan is tested)."""
    return _compose(_CLAIM + _TAKE, table, columns)


@cache
def _lost_statement(table: QueueTable, columns: tuple[str, ...]) -> TextClause:
    return _compose(_CLAIM_LOST + _TAKE, table, columns)


def _compose(template: str, table: QueueTable, columns: tuple[str, ...]) -> TextClause:
    return text(
        template.format(
            table=table.table,
            key=table.key,
            queue=table.name,
            columns=", ".join(f"e.{column}" for column in columns),
        )
    )
