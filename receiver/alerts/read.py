"""Reads what the verdicts look at: bounded queries over partial indexes and the roll-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.alerts.models import Alert
from receiver.alerts.readings import ChannelReading, Readings, SourceReading, WorkersReading
from receiver.db import at
from receiver.inbox.counts import LOOK_AT
from receiver.inbox.expiring import expiring_by_source
from receiver.inbox.readings import Pending, dead_letters, pending_by_source
from receiver.inbox.silence import Silence, heard, silent_sources
from receiver.inbox.table import INBOX
from receiver.queue.pauses import list_pauses
from receiver.queue.workers import list_workers
from receiver.settings import Settings

RECENT = timedelta(minutes=15)
"""How far back the rate of dead letters is looked at."""

REFUSED_IN = timedelta(minutes=10)
"""How far back rejections are looked at."""

FAILING_IN = timedelta(hours=48)
"""How far back successes and failures are looked for: twice the longest step."""

SKEWED = ("timestamp_too_old", "timestamp_in_future")


def read_readings(
    session: Session, settings: Settings, *, unix: float | None = None, now: datetime | None = None
) -> Readings:
    """Everything that ``judge`` looks at. ``unix`` is this host's time, None: not compared."""
    instant: datetime = session.execute(select(at(now))).scalar_one()
    paused = {pause.key for pause in list_pauses(session, INBOX)}
    pending = {found.source: found for found in pending_by_source(session, paused, now=instant)}
    parts = _parts(session, settings, paused, instant)
    names = sorted({*settings.sources, *pending, *(name for part in parts.values() for name in part)})
    failing = _failing(session, names, instant)
    sources = tuple(_source(name, pending.get(name), failing, parts, settings) for name in names)
    return Readings(
        now=instant,
        workers=read_workers(session, stale=settings.worker_stale, now=instant),
        sources=sources,
        recent_dead=_recent_dead(session, instant),
        due_since=min((found.due_since for found in pending.values() if found.due_since), default=None),
        clock_off_seconds=0.0 if unix is None else unix - instant.timestamp(),
        channels=read_channels(session),
    )


def read_workers(session: Session, *, stale: timedelta, now: datetime) -> WorkersReading:
    """How many workers live, when one was last seen and when one of those that live last ticked."""
    workers = list_workers(session)
    alive = [worker for worker in workers if worker.last_seen_at >= now - stale]
    ticks = [worker.last_tick_at for worker in alive if worker.last_tick_at is not None]
    return WorkersReading(
        alive=len(alive),
        last_seen_at=workers[0].last_seen_at if workers else None,
        last_tick_at=max(ticks, default=None),
        stale=stale,
    )


def _parts(
    session: Session, settings: Settings, paused: set[str], now: datetime
) -> dict[str, dict[str, Any]]:
    return {
        "dead": _dead(session),
        "expiring": {
            found.source: found for found in expiring_by_source(session, paused, until=now + settings.soon)
        },
        "silence": {found.source: found for found in _silent(session, settings, now)},
        "rejected": _rejected(session, now),
        "conflicts": _conflicts(session),
    }


def _silent(session: Session, settings: Settings, now: datetime) -> list[Silence]:
    """Sources gone silent; one that was told is so until it is heard, however long its history is gone."""
    limits = settings.alerts
    found = silent_sources(
        session, settings.sources, times=limits.silence_times, shortest=limits.silence, now=now
    )
    judged = {one.source for one in found}
    told = session.execute(
        select(Alert.key, Alert.since).where(
            Alert.kind == "silence", Alert.closed_at.is_(None), Alert.opened_at.is_not(None)
        )
    ).all()
    for source, since in told:
        if source in settings.sources and source not in judged and not heard(session, source, since, now):
            found.append(Silence(source, since, limits.silence_times))
    return found


def _source(
    name: str,
    pending: Pending | None,
    failing: Mapping[str, Any],
    parts: Mapping[str, Mapping[str, Any]],
    settings: Settings,
) -> SourceReading:
    dead, expired = parts["dead"].get(name, ({}, 0))
    expiring = parts["expiring"].get(name)
    rejected = parts["rejected"].get(name, {})
    success, first, number = failing.get(name, (None, None, 0))
    retrying_since = pending.retrying_since if pending is not None else None
    if retrying_since is not None:
        # What is tried for longer than the source works is a failure of its own, not the source's.
        retrying_since = max(retrying_since, success) if success is not None else retrying_since
        first = min(first, retrying_since) if first is not None else retrying_since
    source = settings.sources.get(name)
    return SourceReading(
        name=name,
        dead=dead,
        expired=expired,
        last_success_at=success,
        failing_since=first,
        failed_since_success=number,
        retrying=pending.retrying if pending is not None else 0,
        expiring=expiring.count if expiring else 0,
        first_expiry=expiring.first if expiring else None,
        silence=parts["silence"].get(name),
        rejected=rejected.get("reasons", {}),
        rejected_since=rejected.get("since"),
        skewed=rejected.get("skewed", 0),
        skew_seconds=rejected.get("skew"),
        conflicts=parts["conflicts"].get(name, 0),
        rotate_by=source.rotate_by if source is not None else None,
        live=source.live if source is not None else None,
    )


def _dead(session: Session) -> dict[str, tuple[dict[str, int], int]]:
    """Unacknowledged dead letters by source: by reason, and how many of them expired."""
    found: dict[str, tuple[dict[str, int], int]] = {}
    for group in dead_letters(session)[0]:
        reasons, expired = found.get(group.source, ({}, 0))
        reasons[group.reason] = reasons.get(group.reason, 0) + group.count
        found[group.source] = reasons, expired + (group.count if group.state == "expired" else 0)
    return found


def _recent_dead(session: Session, now: datetime) -> dict[str, int]:
    statement = text(
        "SELECT source, sum(count)::bigint AS number FROM inbox_minutes"
        " WHERE minute > :since AND minute <= :now AND result IN ('failed', 'expired') GROUP BY source"
    )
    rows = session.execute(statement, {"since": now - RECENT, "now": now})
    return {row.source: row.number for row in rows}


# Rows are compared as pairs, so that only the index that begins with the source can serve: the planner would
# rather walk the minutes of all sources backward until it meets one.
_FAILING = text(
    """\
SELECT s.source, ok.minute AS success, dead.first, coalesce(dead.number, 0) AS number
FROM (
  SELECT source, CAST(:now AS timestamptz) AS now, CAST(:since AS timestamptz) AS since
  FROM unnest(CAST(:sources AS text[])) AS u(source)
) s
LEFT JOIN LATERAL (
  SELECT minute FROM inbox_minutes
  WHERE (source, minute) <= (s.source, s.now) AND (source, minute) > (s.source, s.since)
    AND result IN ('applied', 'repeat', 'stale', 'ignored')
  ORDER BY source DESC, minute DESC LIMIT 1
) ok ON true
LEFT JOIN LATERAL (
  SELECT min(minute) AS first, sum(count)::bigint AS number FROM inbox_minutes
  WHERE (source, minute) <= (s.source, s.now) AND (source, minute) > (s.source, coalesce(ok.minute, s.since))
    AND result IN ('failed', 'expired')
) dead ON true"""
)


def _failing(
    session: Session, names: Sequence[str], now: datetime
) -> dict[str, tuple[datetime | None, datetime | None, int]]:
    """By source: the minute of the last success; of the first failure since; failures since."""
    parameters = {"sources": list(names), "now": now, "since": now - FAILING_IN}
    rows = session.execute(_FAILING, parameters)
    return {row.source: (row.success, row.first, row.number) for row in rows}


def _rejected(session: Session, now: datetime) -> dict[str, dict[str, Any]]:
    statement = text(
        "SELECT source, reason, sum(count)::bigint AS number, min(minute) AS since,"
        " percentile_disc(0.5) WITHIN GROUP (ORDER BY skew_seconds) AS skew FROM"
        " (SELECT * FROM webhook_rejections WHERE minute > :since AND minute <= :now"
        "  ORDER BY minute DESC LIMIT :look_at) r GROUP BY source, reason ORDER BY number DESC, reason"
    )
    found: dict[str, dict[str, Any]] = {}
    parameters = {"since": now - REFUSED_IN, "now": now, "look_at": LOOK_AT}
    for row in session.execute(statement, parameters):
        of = found.setdefault(row.source, {"reasons": {}, "since": row.since, "skewed": 0, "skew": None})
        of["reasons"][row.reason] = row.number
        of["since"] = min(of["since"], row.since)
        if row.reason in SKEWED and row.skew is not None:
            of["skew"] = row.skew if row.number > of["skewed"] else of["skew"]
            of["skewed"] += row.number
    return found


def _conflicts(session: Session) -> dict[str, int]:
    statement = text(
        "SELECT e.source, count(*) AS number FROM"
        " (SELECT event_id FROM webhook_conflicts WHERE state = 'open' AND kind = 'conflict'"
        "  ORDER BY last_seen_at DESC LIMIT :look_at) c"
        " JOIN webhook_events e ON e.id = c.event_id GROUP BY e.source"
    )
    return {row.source: row.number for row in session.execute(statement, {"look_at": LOOK_AT})}


def read_channels(session: Session) -> tuple[ChannelReading, ...]:
    """The channels with notices that wait, and how often the first of them was tried."""
    statement = text(
        "SELECT channel, count(*) AS waiting, min(created_at) AS since, max(attempts) AS attempts,"
        " max(last_error) AS error FROM"
        " (SELECT * FROM alert_notices WHERE state = 'due' ORDER BY channel, id LIMIT :look_at) n"
        " GROUP BY channel ORDER BY channel"
    )
    return tuple(
        ChannelReading(row.channel, row.waiting, row.since, row.attempts, row.error)
        for row in session.execute(statement, {"look_at": LOOK_AT})
    )
