"""Replay: ended rows go round again, their history kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.arrays import Bigints, Uuids
from receiver.queue.backoff import GIVE_UP
from receiver.queue.table import QueueTable

_ROUND_AGAIN = (
    "state = 'pending', attempts = 0, lost = 0, replays = e.replays + 1, outcome = NULL, reason = NULL,"
    " last_error_code = NULL, last_error = NULL, failed_in = NULL,"
    " finished_at = NULL, acknowledged_at = NULL,"
    " next_attempt_at = {due}, give_up_at = {now} + CAST(:give_up AS interval),"
    " row_version = e.row_version + 1, updated_at = {now}"
)

ROUND_AGAIN = _ROUND_AGAIN.replace("{due}", "{now}")
"""What a replay sets, for the acts of the rooms above that choose rows by their own columns."""

NOW = "coalesce(CAST(:now AS timestamptz), now())"


def replay(
    session: Session,
    table: QueueTable,
    row_id: UUID,
    *,
    row_version: int,
    from_states: tuple[str, ...],
    give_up: timedelta = GIVE_UP,
    now: datetime | None = None,
) -> bool:
    """Send one ended row round again; False when its version or state is no longer the given one."""
    statement = text(
        f"UPDATE {table.table} AS e SET {ROUND_AGAIN.format(now=NOW)}"
        " WHERE e.id = :id AND e.row_version = :row_version AND e.state = ANY(CAST(:states AS text[]))"
        " RETURNING e.id"
    )
    parameters = {
        "id": row_id,
        "row_version": row_version,
        "states": list(from_states),
        "give_up": give_up,
        "now": now,
    }
    return session.execute(statement, parameters).first() is not None


_MANY = """\
WITH wanted AS (
  SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:versions AS bigint[])) AS w(id, row_version)
), locked AS MATERIALIZED (
  SELECT r.id FROM {table} r JOIN wanted w ON w.id = r.id
  WHERE r.row_version = w.row_version AND r.state IN ('failed', 'expired') AND r.acknowledged_at IS NULL
  ORDER BY {order} FOR NO KEY UPDATE OF r
)
UPDATE {table} AS e SET {sets} FROM locked WHERE e.id = locked.id RETURNING e.id
"""

# The same row of the same replay lands at the same moment, whoever asks.
_LATER = (
    "{now} + CAST(:within AS interval)"
    " * (abs(hashtext(e.id::text || CAST(:replay_id AS text))::bigint) % 1000) / 1000.0"
)


def replay_many(
    session: Session,
    table: QueueTable,
    rows: Sequence[tuple[UUID, int]],
    *,
    replay_id: UUID,
    within: timedelta,
    give_up: timedelta = GIVE_UP,
    now: datetime | None = None,
) -> int:
    """Send dead letters (id, row version) round again; returns how many still were what was seen.

    They come due within ``within`` by a hash of row and replay.
    """
    if not rows:
        return 0
    sets = _ROUND_AGAIN.format(now=NOW, due=_LATER.format(now=NOW))
    order = ", ".join(f"r.{column}" for column in table.lock_order)
    statement = text(_MANY.format(table=table.table, order=order, sets=sets))
    parameters = {
        "ids": Uuids(row_id for row_id, _ in rows),
        "versions": Bigints(version for _, version in rows),
        "replay_id": str(replay_id),
        "within": within,
        "give_up": give_up,
        "now": now,
    }
    return len(session.execute(statement, parameters).all())
