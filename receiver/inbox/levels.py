"""How full the inbox stood, kept over time: a duty of the worker's notes it, the pictures read it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select, text
from sqlalchemy.orm import Session

from receiver.db import at
from receiver.deps import Deps
from receiver.inbox.minutes import minute_of
from receiver.inbox.models import InboxLevel
from receiver.inbox.readings import Pending, dead_letters, pending_by_source
from receiver.inbox.table import INBOX
from receiver.queue.pauses import list_pauses

KEEP = timedelta(days=35)

ALL = ""
"""The source under which the sums of all sources are noted: pictures read one row a minute."""

_NOTE = text(
    """\
INSERT INTO inbox_levels (source, minute, waiting, parked, held, dead, oldest_seconds)
VALUES (:source, :minute, :waiting, :parked, :held, :dead, :oldest_seconds)
ON CONFLICT (source, minute) DO NOTHING"""
)


def note_levels(deps: Deps) -> int:
    """A duty: note this minute's levels of every source, unless another worker did; returns the rows."""
    with deps.sessions.begin() as session:
        now: datetime = session.execute(select(at(deps.clock.now()))).scalar_one()
        minute = minute_of(now)
        noted = select(InboxLevel.minute).where(InboxLevel.minute == minute).limit(1)
        if session.execute(noted).first() is not None:
            return 0
        session.execute(delete(InboxLevel).where(InboxLevel.minute < minute - KEEP))
        return _note(session, set(deps.settings.sources), now)


def _note(session: Session, configured: set[str], now: datetime) -> int:
    paused = {pause.key for pause in list_pauses(session, INBOX)}
    pending = {found.source: found for found in pending_by_source(session, paused, now=now)}
    dead: dict[str, int] = {}
    for group in dead_letters(session)[0]:
        dead[group.source] = dead.get(group.source, 0) + group.count
    # A source that has nothing gets its row too: no row means that no worker looked.
    rows: list[dict[str, Any]] = []
    for source in sorted({*configured, *pending, *dead}):
        found = pending.get(source, Pending(source))
        oldest = found.oldest_received_at
        rows.append(
            {
                "source": source,
                "minute": minute_of(now),
                "waiting": found.fresh + found.retrying,
                "parked": sum(found.parked.values()),
                "held": found.held,
                "dead": dead.get(source, 0),
                "oldest_seconds": None if oldest is None else max(0, int((now - oldest).total_seconds())),
            }
        )
    ages = [row["oldest_seconds"] for row in rows if row["oldest_seconds"] is not None]
    sums = {name: sum(row[name] for row in rows) for name in ("waiting", "parked", "held", "dead")}
    together = {"source": ALL, "minute": minute_of(now), **sums, "oldest_seconds": max(ages, default=None)}
    session.execute(_NOTE, [together, *rows])
    return len(rows)
