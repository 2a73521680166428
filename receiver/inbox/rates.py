"""Rates and times of the sources, read from the roll-up `inbox_minutes` alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.inbox.minutes import BOUNDS_MS, percentile_ms
from receiver.inbox.models import InboxMinute

PROCESSED = ("applied", "repeat", "stale", "ignored")
DEAD = ("failed", "expired")
RECEIVED = ("new", "duplicate", "variant", "conflict")
"""Results of the intake; `rejected` is counted apart, since nothing was stored."""

WINDOW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class SourceRate:
    """One source over the last hour. Times are from receipt to applied, in ms; None: nothing applied.

    ``p95_ms`` is the upper bound of the bucket that holds the 95th percentile.
    """

    source: str
    received: int = 0
    processed: int = 0
    dead: int = 0
    average_ms: float | None = None
    p95_ms: int | None = None

    @property
    def success(self) -> float | None:
        """Processed share of all rows that ended, 0 to 1; None when none did."""
        ended = self.processed + self.dead
        return self.processed / ended if ended else None


def read_rates(session: Session, *, sources: Iterable[str] = (), now: datetime) -> list[SourceRate]:
    """The last hour of every source that is configured or spoke, by name."""
    rows = session.scalars(
        select(InboxMinute).where(
            InboxMinute.minute > now - WINDOW,
            InboxMinute.minute <= now,
            InboxMinute.result.in_((*RECEIVED, *PROCESSED, *DEAD)),
        )
    ).all()
    names = sorted({*sources, *(row.source for row in rows)})
    return [_rate(name, [row for row in rows if row.source == name]) for name in names]


def _rate(source: str, rows: Sequence[InboxMinute]) -> SourceRate:
    applied = [row for row in rows if row.result == "applied"]
    count = sum(row.count for row in applied)
    return SourceRate(
        source=source,
        received=sum(row.count for row in rows if row.result in RECEIVED),
        processed=sum(row.count for row in rows if row.result in PROCESSED),
        dead=sum(row.count for row in rows if row.result in DEAD),
        average_ms=sum(row.total_ms for row in applied) / count if count else None,
        p95_ms=percentile_ms(add_buckets(row.buckets for row in applied), 0.95),
    )


def add_buckets(histograms: Iterable[Sequence[int] | None]) -> list[int]:
    """The sum of histograms over BOUNDS_MS and one bucket without a bound."""
    total = [0] * (len(BOUNDS_MS) + 1)
    for histogram in histograms:
        for index, count in enumerate((histogram or ())[: len(total)]):
            total[index] += count
    return total
