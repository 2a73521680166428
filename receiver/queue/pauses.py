"""Pause and resume: a pause is a row, and the claim looks at nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.queue.models import Pause
from receiver.queue.table import QueueTable


class Resumed(NamedTuple):
    """How many held rows were given fresh time."""

    held: int


def pause(
    session: Session,
    table: QueueTable,
    key: str,
    *,
    by: str,
    reason: str,
    until: datetime | None = None,
    now: datetime | None = None,
) -> bool:
    """Hold a key's rows from now on; False when it is paused already (the first pause stands)."""
    statement = text(
        "INSERT INTO pauses (queue, key, by, reason, paused_at, until)"
        " VALUES (:queue, :key, :by, :reason, coalesce(CAST(:now AS timestamptz), now()), :until)"
        " ON CONFLICT (queue, key) DO NOTHING RETURNING key"
    )
    parameters = {"queue": table.name, "key": key, "by": by, "reason": reason, "until": until, "now": now}
    return session.execute(statement, parameters).first() is not None


# In seconds: days of an interval would be counted in the session's zone, summer time and all.
_LENGTH = (
    "make_interval(secs => CAST(extract(epoch FROM t.now - greatest(ended.paused_at, e.created_at))"
    " AS double precision))"
)

_RESUME = """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now),
ended AS (DELETE FROM pauses p WHERE p.queue = '{queue}' AND p.key = :key RETURNING p.paused_at),
held AS (
  UPDATE {table} AS e
  SET give_up_at = e.give_up_at + {length},
      next_attempt_at = CASE WHEN e.next_attempt_at > t.now THEN e.next_attempt_at
        ELSE least(
          e.give_up_at + {length},
          t.now + CAST(:spread AS interval) * (abs(hashtext(e.id::text)::bigint) % 1000) / 1000.0) END,
      row_version = e.row_version + 1, updated_at = t.now
  FROM ended, t
  WHERE e.state = 'pending' AND e.{key} = :key
  RETURNING 1
)
SELECT (SELECT count(*) FROM ended), (SELECT count(*) FROM held)
"""


def resume(
    session: Session,
    table: QueueTable,
    key: str,
    *,
    spread: timedelta = timedelta(0),
    now: datetime | None = None,
) -> Resumed | None:
    """End a pause: every held row gets the pause's length added to its deadline, and what is due
    comes back spread over ``spread`` by a hash of its id. None when the key was not paused.

    Takes as long as the held rows are many: the statement's time is not limited.
    """
    session.execute(text("SELECT set_config('statement_timeout', '0', true)"))
    statement = text(_RESUME.format(queue=table.name, table=table.table, key=table.key, length=_LENGTH))
    ended, held = session.execute(statement, {"key": key, "spread": spread, "now": now}).one()
    return Resumed(held) if ended else None


def resume_due(
    session: Session, table: QueueTable, *, spread: timedelta = timedelta(0), now: datetime | None = None
) -> list[str]:
    """Resume the keys whose pause had an end that is over; returns them (a duty)."""
    statement = text(
        "SELECT key FROM pauses WHERE queue = :queue AND until <= coalesce(CAST(:now AS timestamptz), now())"
        " ORDER BY key FOR UPDATE SKIP LOCKED"
    )
    keys = list(session.execute(statement, {"queue": table.name, "now": now}).scalars())
    for key in keys:
        resume(session, table, key, spread=spread, now=now)
    return keys


def list_pauses(session: Session, table: QueueTable | None = None) -> list[Pause]:
    """The pauses in force, by queue and key."""
    query = select(Pause).order_by(Pause.queue, Pause.key)
    if table is not None:
        query = query.where(Pause.queue == table.name)
    return list(session.scalars(query))
