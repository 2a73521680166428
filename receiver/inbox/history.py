"""The inbox over time, for pictures: read from the roll-up and the noted levels, never from the events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.inbox.minutes import BOUNDS_MS, percentile_ms
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

_COUNTS = text(
    """\
SELECT date_bin(CAST(:step AS interval), minute, CAST(:since AS timestamptz)) AS at, result,
       sum(count)::bigint AS number
FROM inbox_minutes WHERE minute >= :since AND minute < :until GROUP BY 1, 2"""
)

_TIMES = text(
    """\
SELECT at, array_agg(number ORDER BY bucket) AS buckets FROM (
  SELECT date_bin(CAST(:step AS interval), m.minute, CAST(:since AS timestamptz)) AS at, b.bucket,
         sum(b.number)::bigint AS number
  FROM inbox_minutes m CROSS JOIN LATERAL unnest(m.buckets) WITH ORDINALITY AS b(number, bucket)
  WHERE m.minute >= :since AND m.minute < :until AND m.result = 'applied' GROUP BY 1, 2
) s GROUP BY at"""
)

_LEVELS = text(
    """\
SELECT date_bin(CAST(:step AS interval), minute, CAST(:since AS timestamptz)) AS at, max(waiting) AS waiting,
       max(parked) AS parked, max(held) AS held, max(dead) AS dead, max(oldest) AS oldest
FROM (
  SELECT minute, sum(waiting)::bigint AS waiting, sum(parked)::bigint AS parked, sum(held)::bigint AS held,
         sum(dead)::bigint AS dead, max(oldest_seconds) AS oldest
  FROM inbox_levels WHERE minute >= :since AND minute < :until GROUP BY minute
) m GROUP BY 1"""
)


def read_history(session: Session, span: Span, *, now: datetime) -> Sequence[Step]:
    """The steps of a span up to and with the minute of ``now``, the oldest first."""
    until = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    since = until - span.length
    steps = {since + number * span.step: Step(since + number * span.step) for number in range(span.steps)}
    asked = {"step": span.step, "since": since, "until": until}
    for row in session.execute(_COUNTS, asked):
        counts = steps[row.at].counts
        for group in _groups_of(row.result):
            counts[group] = counts.get(group, 0) + row.number
    for row in session.execute(_TIMES, asked):
        buckets = [int(number) for number in row.buckets[: len(BOUNDS_MS) + 1]]
        found = {share: percentile_ms(buckets, share) for share in SHARES}
        steps[row.at].percentiles = {share: ms for share, ms in found.items() if ms is not None}
    for row in session.execute(_LEVELS, asked):
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
