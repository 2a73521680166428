"""What the text of an alert shows of the rows behind it: the last reasons, and the last events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.inbox.counts import LOOK_AT

EVENTS, REASONS = 5, 3


@dataclass(frozen=True, slots=True)
class Example:
    """One event, told by what is ours to tell: its receipt, why it stands where it stands, and times."""

    id: UUID
    source: str
    state: str
    why: str | None
    received_at: datetime
    give_up_at: datetime


@dataclass(frozen=True, slots=True)
class Examples:
    """The last reasons, the newest first, and the last events."""

    reasons: tuple[str, ...] = ()
    events: tuple[Example, ...] = ()


_COLUMNS = (
    "id, source, state, coalesce(reason, parked_reason, last_error_code, outcome) AS why,"
    " received_at, give_up_at"
)
_OF_SOURCE = "(CAST(:source AS text) IS NULL OR source = :source)"

_DEAD = f"""\
SELECT {_COLUMNS} FROM (
  SELECT * FROM webhook_events WHERE state IN ('failed', 'expired')
  ORDER BY updated_at DESC, id LIMIT :look_at
) d WHERE acknowledged_at IS NULL AND {_OF_SOURCE} ORDER BY updated_at DESC LIMIT :limit"""

_PENDING = f"""\
SELECT {_COLUMNS} FROM webhook_events WHERE state = 'pending' AND {_OF_SOURCE}
ORDER BY give_up_at, id LIMIT :limit"""

_RETRYING = f"""\
SELECT {_COLUMNS} FROM (
  SELECT * FROM webhook_events WHERE state = 'pending' AND {_OF_SOURCE}
  ORDER BY next_attempt_at DESC, id LIMIT :look_at
) p WHERE attempts > 0 AND parked_reason IS NULL ORDER BY updated_at DESC LIMIT :limit"""

_NEWEST = f"""\
SELECT {_COLUMNS} FROM webhook_events WHERE source = :source ORDER BY id DESC LIMIT :limit"""

_CONFLICTS = f"""\
SELECT {_COLUMNS} FROM webhook_events JOIN (
  SELECT event_id, max(last_seen_at) AS seen FROM webhook_conflicts
  WHERE state = 'open' AND kind = 'conflict' GROUP BY event_id ORDER BY seen DESC LIMIT :look_at
) c ON c.event_id = id WHERE {_OF_SOURCE} ORDER BY seen DESC LIMIT :limit"""

_REFUSED = """\
SELECT reason FROM webhook_rejections WHERE source = :source
GROUP BY reason ORDER BY max(minute) DESC, sum(count) DESC LIMIT :limit"""

_QUERIES = {
    "dead_letters": (_DEAD,),
    "dead_rate": (_DEAD,),
    "source_failing": (_RETRYING, _DEAD),
    "expiring": (_PENDING,),
    "backlog": (_PENDING,),
    "no_worker": (_PENDING,),
    "conflict": (_CONFLICTS,),
    "silence": (_NEWEST,),
    "rejections": (_NEWEST,),
}
"""By kind; several are read until there are enough. A kind that is not here shows no events."""

SAMPLE = 50
"""Rows whose reasons are looked at."""


def examples(session: Session, kind: str, key: str) -> Examples:
    """The last reasons and events of an alert; bounded, through indexes."""
    rows: list[Any] = []
    for query in _QUERIES.get(kind, ()):
        parameters = {"source": key or None, "limit": SAMPLE, "look_at": LOOK_AT}
        rows += session.execute(text(query), parameters).all()
    reasons: Sequence[str] = [row.why for row in rows if row.why is not None]
    if kind in ("rejections", "clock_skew"):
        reasons = session.scalars(text(_REFUSED), {"source": key, "limit": REASONS}).all()
    return Examples(
        tuple(dict.fromkeys(reasons))[:REASONS] if kind != "silence" else (),
        tuple(
            Example(row.id, row.source, row.state, row.why, row.received_at, row.give_up_at)
            for row in rows[:EVENTS]
        ),
    )


def ends_since(session: Session, source: str, since: datetime, until: datetime) -> dict[str, int]:
    """What became of a source's events in a time, by result: the summary of an alert that is over."""
    statement = text(
        "SELECT result, sum(count)::bigint AS number FROM inbox_minutes"
        " WHERE source = :source AND minute >= date_trunc('minute', CAST(:since AS timestamptz))"
        " AND minute <= :until AND result IN ('applied', 'repeat', 'stale', 'ignored', 'failed', 'expired')"
        " GROUP BY result ORDER BY result"
    )
    rows = session.execute(statement, {"source": source, "since": since, "until": until})
    return {row.result: row.number for row in rows}
