"""Pause and resume: a pause is a row, and the claim looks at nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Row, select, text
from sqlalchemy.orm import Session

from receiver.queue.models import Pause
from receiver.queue.table import QueueTable

PIECE = 2_000
"""Held rows that one transaction of a resume gives time to: duplicates of them wait no longer than that."""


class Resumed(NamedTuple):
    """How many held rows were given fresh time so far, and whether those were all."""

    held: int
    over: bool


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
    """Hold a key's rows from now on; False when it is paused already, or its resume is not over yet (the
    first pause stands).
    """
    statement = text(
        "INSERT INTO pauses (queue, key, by, reason, paused_at, until)"
        " VALUES (:queue, :key, :by, :reason, coalesce(CAST(:now AS timestamptz), now()), :until)"
        " ON CONFLICT (queue, key) DO NOTHING RETURNING key"
    )
    parameters = {"queue": table.name, "key": key, "by": by, "reason": reason, "until": until, "now": now}
    return session.execute(statement, parameters).first() is not None


# In seconds: days of an interval would be counted in the session's zone, summer time and all.
_LENGTH = (
    "make_interval(secs => CAST(extract(epoch FROM"
    " t.now - greatest(CAST(:paused_at AS timestamptz), e.created_at)) AS double precision))"
)

# What is due by its own time is left alone by the first part, so that it is told from what the second
# part set; a microsecond before, for what is due at that very moment needs no change.
_BEGIN = """\
UPDATE pauses
SET resumed_at = coalesce(CAST(:now AS timestamptz), now()) - interval '1 microsecond',
    resume_spread = CAST(:spread AS interval)
WHERE queue = :queue AND key = :key AND resumed_at IS NULL
"""

_FUTURE = """\
e.next_attempt_at > CAST(:resumed_at AS timestamptz)
    AND (e.next_attempt_at, e.id) > (CAST(:passed_at AS timestamptz), CAST(:passed_id AS uuid))"""
_DUE = "e.next_attempt_at <= CAST(:resumed_at AS timestamptz)"

_PIECE = """\
WITH t AS (
  SELECT {now} AS now, CAST(:resumed_at AS timestamptz) + interval '1 microsecond' AS earliest
), seen AS MATERIALIZED (
  SELECT e.id, e.next_attempt_at FROM {table} e
  WHERE e.state = 'pending' AND e.{key} = :key AND {which}
  ORDER BY e.next_attempt_at, e.id LIMIT :piece
), locked AS MATERIALIZED (
  SELECT e.id FROM {table} e JOIN seen ON seen.id = e.id WHERE e.state = 'pending'
  ORDER BY {order} FOR NO KEY UPDATE OF e
), held AS (
  UPDATE {table} AS e
  SET give_up_at = greatest(e.give_up_at + {length}, t.earliest),
      next_attempt_at = CASE WHEN e.next_attempt_at >= t.earliest THEN e.next_attempt_at
        ELSE greatest(t.earliest, least(
          e.give_up_at + {length},
          t.now + CAST(:spread AS interval) * (abs(hashtext(e.id::text)::bigint) % 1000) / 1000.0)) END,
      row_version = e.row_version + 1, updated_at = t.now
  FROM locked, t
  WHERE e.id = locked.id
  RETURNING 1
)
SELECT (SELECT count(*) FROM held) AS held, (SELECT count(*) FROM seen) AS seen, last.next_attempt_at, last.id
FROM (SELECT 1) AS one LEFT JOIN (
  SELECT next_attempt_at, id FROM seen ORDER BY next_attempt_at DESC, id DESC LIMIT 1) AS last ON true
"""


def resume(
    session: Session,
    table: QueueTable,
    key: str,
    *,
    spread: timedelta = timedelta(0),
    now: datetime | None = None,
) -> Resumed | None:
    """Begin to end a pause, with a first piece; None when the key was not paused.

    Every held row gets the pause's length added to its deadline, and what is due comes back spread over
    ``spread`` by a hash of its id. While ``over`` is false `go_on` must follow, in transactions of its
    own (the worker's duty does it too): the pause stands until the last row has its time.
    """
    session.execute(text(_BEGIN), {"queue": table.name, "key": key, "spread": spread, "now": now})
    return go_on(session, table, key, now=now)


def go_on(session: Session, table: QueueTable, key: str, *, now: datetime | None = None) -> Resumed | None:
    """Give the next piece of a resume's rows their time, and end the pause after the last.

    None when nobody resumed it. While somebody else is at it, nothing is done here.
    """
    query = select(Pause).where(Pause.queue == table.name, Pause.key == key, Pause.resumed_at.is_not(None))
    locked = query.with_for_update(skip_locked=True).execution_options(populate_existing=True)
    found = session.scalars(locked).one_or_none()
    if found is None:
        freed = session.scalars(query.with_only_columns(Pause.freed)).one_or_none()
        return None if freed is None else Resumed(freed, over=False)
    over = _give_time(session, table, found, now)
    freed = found.freed
    if over:
        session.delete(found)
    session.flush()
    return Resumed(freed, over)


def _give_time(session: Session, table: QueueTable, found: Pause, now: datetime | None) -> bool:
    """One piece; whether no row is left."""
    room = PIECE
    # What is not due yet goes first: afterwards nobody could tell it from what the other part set.
    if found.passed_at is None or found.passed_id is not None:
        piece = _piece(session, table, found, _FUTURE, room, now)
        found.freed += piece.held
        if piece.seen == room:
            found.passed_at, found.passed_id = piece.next_attempt_at, piece.id
            return False
        found.passed_at, found.passed_id = found.resumed_at, None
        room -= piece.seen
    piece = _piece(session, table, found, _DUE, room, now)
    found.freed += piece.held
    return bool(piece.seen < room)


def resume_due(
    session: Session, table: QueueTable, *, spread: timedelta = timedelta(0), now: datetime | None = None
) -> list[str]:
    """Begin to resume the keys whose pause had an end that is over; returns them (a duty)."""
    statement = text(
        "SELECT key FROM pauses WHERE queue = :queue AND resumed_at IS NULL"
        " AND until <= coalesce(CAST(:now AS timestamptz), now())"
        " ORDER BY key FOR UPDATE SKIP LOCKED"
    )
    keys = list(session.execute(statement, {"queue": table.name, "now": now}).scalars())
    for key in keys:
        resume(session, table, key, spread=spread, now=now)
    return keys


def resumed_keys(session: Session, table: QueueTable) -> list[str]:
    """The keys whose resume is not over."""
    query = select(Pause.key).where(Pause.queue == table.name, Pause.resumed_at.is_not(None))
    return list(session.scalars(query.order_by(Pause.key)))


def _piece(
    session: Session, table: QueueTable, pause: Pause, which: str, size: int, now: datetime | None
) -> Row[Any]:
    statement = _PIECE.format(
        now="coalesce(CAST(:now AS timestamptz), now())",
        table=table.table,
        key=table.key,
        order=", ".join(f"e.{column}" for column in table.lock_order),
        which=which,
        length=_LENGTH,
    )
    parameters = {
        "key": pause.key,
        "piece": size,
        "paused_at": pause.paused_at,
        "resumed_at": pause.resumed_at,
        "passed_at": pause.passed_at or pause.resumed_at,
        "passed_id": pause.passed_id or UUID(int=0),
        "spread": pause.resume_spread,
        "now": now,
    }
    return session.execute(text(statement), parameters).one()


def list_pauses(session: Session, table: QueueTable | None = None) -> list[Pause]:
    """The pauses in force, by queue and key."""
    query = select(Pause).order_by(Pause.queue, Pause.key)
    if table is not None:
        query = query.where(Pause.queue == table.name)
    return list(session.scalars(query))
