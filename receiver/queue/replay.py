"""Replay: an ended row goes round again, its history kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.queue.backoff import GIVE_UP
from receiver.queue.table import QueueTable

ROUND_AGAIN = (
    "state = 'pending', attempts = 0, lost = 0, replays = e.replays + 1, outcome = NULL, reason = NULL,"
    " last_error_code = NULL, last_error = NULL, finished_at = NULL, acknowledged_at = NULL,"
    " next_attempt_at = {now}, give_up_at = {now} + CAST(:give_up AS interval),"
    " row_version = e.row_version + 1, updated_at = {now}"
)
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
