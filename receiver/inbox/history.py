"""The inbox over time, for pictures: read from the roll-up and the noted levels, never from the events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.inbox.hours import BUCKET_SUMS, MARK
from receiver.inbox.levels import ALL
from receiver.inbox.minutes import percentile_ms
from receiver.inbox.rates import DEAD, RECEIVED


@dataclass(frozen=True, slots=True)
class Span:
    """How far a picture looks back, in steps."""

    name: str
    length: timedelta
    step: timedelta

    @property
    def steps(self) -> int:
        """How many steps it has."""
        return int(self.length / self.step)


SPANS = {
    "1h": Span("1h", timedelta(hours=1), timedelta(minutes=1)),
    "24h": Span("24h", timedelta(hours=24), timedelta(minutes=15)),
    "7d": Span("7d", timedelta(days=7), timedelta(hours=2)),
}

GROUPS = {
    "applied": ("applied",),
    "unchanged": ("repeat", "stale", "ignored"),
    "dead": DEAD,
    "rejected": ("rejected",),
}
"""Results as pictures show them; what was received is counted apart, as ``received``."""


@dataclass(slots=True)
class Step:
    """One step of time: counts by group, and the times from receipt to applied, in ms.

    ``percentiles`` are upper bounds of buckets, by share; empty where nothing was applied.
    The levels are the highest of the step (of all sources together); None where no worker looked.
    """

    at: datetime
    counts: dict[str, int] = field(default_factory=dict)
    percentiles: dict[float, int] = field(default_factory=dict)
    waiting: int | None = None
    parked: int | None = None
    held: int | None = None
    dead: int | None = None
    oldest_seconds: int | None = None


SHARES = (0.5, 0.95, 0.99)

_SPAN_OF_MINUTES = """\
(SELECT minute, result, count, buckets FROM inbox_minutes
 WHERE minute >= CAST(:since AS timestamptz) AND minute < CAST(:until AS timestamptz))"""

# What is summed up by the hour is read there; the minutes give the rest.
_SPAN_OF_HOURS = f"""\
(SELECT hour AS minute, result, count, buckets FROM inbox_hours
 WHERE hour >= CAST(:since AS timestamptz) AND hour < CAST(:until AS timestamptz)
 UNION ALL
 SELECT minute, result, count, buckets FROM inbox_minutes
 WHERE minute >= greatest(CAST(:since AS timestamptz), {MARK}) AND minute < CAST(:until AS timestamptz))"""

_READ = """\
SELECT date_bin(CAST(:step AS interval), minute, CAST(:since AS timestamptz)) AS at, result,
       sum(count)::bigint AS number,
       CASE WHEN result = 'applied' THEN ARRAY[{sums}]::bigint[] END AS buckets
FROM {rows} AS m GROUP BY 1, 2"""

_MINUTES = text(_READ.format(sums=BUCKET_SUMS, rows=_SPAN_OF_MINUTES))
_HOURLY = text(_READ.format(sums=BUCKET_SUMS, rows=_SPAN_OF_HOURS))

_LEVELS = text(
    """\
SELECT date_bin(CAST(:step AS interval), minute, CAST(:since AS timestamptz)) AS at, max(waiting) AS waiting,
       max(parked) AS parked, max(held) AS held, max(dead) AS dead, max(oldest_seconds) AS oldest
FROM inbox_levels WHERE source = :all AND minute >= :since AND minute < :until GROUP BY 1"""
)


def read_history(session: Session, span: Span, *, now: datetime) -> Sequence[Step]:
    """The steps of a span, the oldest first, up to and with the minute of ``now``; where steps are hours
    or more, up to the end of its hour, since hours are what is read.
    """
    hourly = span.step >= timedelta(hours=1)
    until = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    if hourly:
        until = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    since = until - span.length
    steps = {since + number * span.step: Step(since + number * span.step) for number in range(span.steps)}
    asked = {"step": span.step, "since": since, "until": until}
    for row in session.execute(_HOURLY if hourly else _MINUTES, asked):
        step = steps[row.at]
        for group in _groups_of(row.result):
            step.counts[group] = step.counts.get(group, 0) + row.number
        if row.buckets is not None:
            buckets = [int(number or 0) for number in row.buckets]
            found = {share: percentile_ms(buckets, share) for share in SHARES}
            step.percentiles = {share: ms for share, ms in found.items() if ms is not None}
    for row in session.execute(_LEVELS, {**asked, "all": ALL}):
        step = steps[row.at]
        step.waiting, step.parked, step.held, step.dead = row.waiting, row.parked, row.held, row.dead
        step.oldest_seconds = row.oldest
    return list(steps.values())


def _groups_of(result: str) -> list[str]:
    found = [group for group, results in GROUPS.items() if result in results]
    return [*found, "received"] if result in RECEIVED else found


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour's counts by group, ``received`` included."""

    counts: dict[str, int]

    def of(self, group: str) -> int:
        """How many of a group."""
        return self.counts.get(group, 0)


_HOURS = text(
    """\
SELECT minute > CAST(:now AS timestamptz) - interval '1 hour' AS last, result, sum(count)::bigint AS number
FROM inbox_minutes
WHERE minute > CAST(:now AS timestamptz) - interval '2 hours' AND minute <= :now GROUP BY 1, 2"""
)


def two_hours(session: Session, *, now: datetime) -> tuple[Hour, Hour]:
    """The last hour, and the one before it."""
    last, before = Hour({}), Hour({})
    for row in session.execute(_HOURS, {"now": now}):
        counts = (last if row.last else before).counts
        for group in _groups_of(row.result):
            counts[group] = counts.get(group, 0) + row.number
    return last, before
