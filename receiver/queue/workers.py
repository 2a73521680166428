"""Heartbeats: which workers live, and when each last ran."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.queue.models import Worker

FORGET_AFTER = timedelta(days=1)
"""A worker not seen for this long no longer stands on the page."""


def beat(
    session: Session,
    worker_id: UUID,
    *,
    name: str,
    host: str,
    pid: int,
    ticks: int = 0,
    skipped_ticks: int = 0,
    now: datetime | None = None,
) -> None:
    """Say that a worker lives; forget those long gone."""
    parameters = {
        "id": worker_id,
        "name": name,
        "host": host,
        "pid": pid,
        "ticks": ticks,
        "skipped": skipped_ticks,
        "now": now,
        "forget": FORGET_AFTER,
    }
    session.execute(
        text(
            "WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now)"
            " INSERT INTO workers"
            " (id, name, host, pid, started_at, last_seen_at, last_tick_at, ticks, skipped_ticks)"
            " SELECT :id, :name, :host, :pid, t.now, t.now, t.now, :ticks, :skipped FROM t"
            " ON CONFLICT (id) DO UPDATE SET last_seen_at = excluded.last_seen_at, skipped_ticks = :skipped,"
            " last_tick_at = CASE WHEN workers.ticks < :ticks THEN excluded.last_seen_at"
            " ELSE workers.last_tick_at END, ticks = :ticks"
        ),
        parameters,
    )
    session.execute(
        text(
            "DELETE FROM workers WHERE last_seen_at <"
            " coalesce(CAST(:now AS timestamptz), now()) - CAST(:forget AS interval)"
        ),
        parameters,
    )


def leave(session: Session, worker_id: UUID) -> None:
    """Take a worker off the list at its orderly end."""
    session.execute(text("DELETE FROM workers WHERE id = :id"), {"id": worker_id})


def list_workers(session: Session) -> list[Worker]:
    """Every worker of the last day, the latest seen first."""
    return list(session.scalars(select(Worker).order_by(Worker.last_seen_at.desc())))


def alive(session: Session, *, stale: timedelta, now: datetime | None = None) -> int:
    """How many workers were seen within ``stale``."""
    statement = text(
        "SELECT count(*) FROM workers WHERE last_seen_at >="
        " coalesce(CAST(:now AS timestamptz), now()) - CAST(:stale AS interval)"
    )
    count: int = session.execute(statement, {"now": now, "stale": stale}).scalar_one()
    return count
