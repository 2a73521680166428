"""The roll-up that every picture reads: `inbox_minutes`, added to by the web and by the worker."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

BOUNDS_MS = (50, 100, 250, 500, 1_000, 2_000, 5_000, 15_000, 60_000, 300_000, 3_600_000, 86_400_000)
"""Upper bounds of the buckets in milliseconds, from receipt to the event's end; one more without."""


@dataclass(slots=True)
class MinuteCount:
    """What was counted of one (source, minute, result)."""

    count: int = 0
    total_ms: int = 0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))

    def add(self, duration_ms: int | None = None) -> None:
        """Count one; with a duration where the result is an end."""
        self.count += 1
        if duration_ms is not None:
            self.total_ms += duration_ms
            self.buckets[bisect_left(BOUNDS_MS, duration_ms)] += 1

    def add_all(self, other: MinuteCount) -> None:
        """Count what another one counted."""
        self.count += other.count
        self.total_ms += other.total_ms
        self.buckets = [a + b for a, b in zip(self.buckets, other.buckets, strict=True)]


Key = tuple[str, datetime, str]

_ADD = text(
    """\
INSERT INTO inbox_minutes AS m (source, minute, result, count, total_ms, buckets)
VALUES (:source, :minute, :result, :count, :total_ms, CAST(:buckets AS bigint[]))
ON CONFLICT (source, minute, result) DO UPDATE SET
  count = m.count + excluded.count, total_ms = m.total_ms + excluded.total_ms,
  buckets = ARRAY(SELECT a + b FROM unnest(m.buckets, excluded.buckets) AS u(a, b))"""
)


def add_minutes(session: Session, counted: Mapping[Key, MinuteCount]) -> None:
    """Add counts; keys in one order, so that two writers wait for and never block each other."""
    for (source, minute, result), counts in sorted(counted.items()):
        session.execute(
            _ADD,
            {
                "source": source,
                "minute": minute,
                "result": result,
                "count": counts.count,
                "total_ms": counts.total_ms,
                "buckets": counts.buckets,
            },
        )


def minute_of(at: datetime) -> datetime:
    """The minute that an instant belongs to."""
    return at.replace(second=0, microsecond=0)


def percentile_ms(buckets: Iterable[int], share: float) -> int | None:
    """The bound of the bucket in which ``share`` (0 to 1) of the rows are reached; None without rows.

    The last bucket has no bound: its lower one is given.
    """
    counts = list(buckets)
    total = sum(counts)
    if not total:
        return None
    wanted, seen = share * total, 0
    for index, count in enumerate(counts):
        seen += count
        if seen >= wanted and count:
            return BOUNDS_MS[min(index, len(BOUNDS_MS) - 1)]
    return BOUNDS_MS[-1]
