"""Sources that usually speak and have gone silent, judged by their own history in the roll-up.

The stretch since a source was last heard is laid over the same stretch of the weeks before (of the days
before, while it is younger than a week). A source that spoke in many different minutes of each of them
should have spoken now. So nights and weekends, in which it never spoke, are no silence; a source that
speaks a few times a week never has such a stretch; and an outage of an earlier week delays this alert
and raises none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.db import at

LOOK_BACK = timedelta(days=15)
"""History before the last word that is looked at: two weeks and a day."""

YOUNG = timedelta(days=2)
"""A source of a shorter history has no habits yet."""

WEEK, DAY = timedelta(days=7), timedelta(days=1)

TIMES = 10
SHORTEST = timedelta(minutes=10)

_HEARD = "result IN ('new', 'duplicate', 'variant', 'conflict')"

# Rows are compared as pairs, so that only the index that begins with the source can serve: the planner would
# rather walk the minutes of all sources backward until it meets one.
_ENDS = text(
    f"""\
SELECT s.source, first.minute AS first, last.minute AS last
FROM (
  SELECT source, CAST(:now AS timestamptz) AS now, CAST(:look_back AS interval) AS look_back
  FROM unnest(CAST(:sources AS text[])) AS u(source)
) s
CROSS JOIN LATERAL (
  SELECT minute FROM inbox_minutes
  WHERE (source, minute) <= (s.source, s.now) AND (source, minute) >= (s.source, '-infinity')
    AND {_HEARD}
  ORDER BY source DESC, minute DESC LIMIT 1
) last
CROSS JOIN LATERAL (
  SELECT minute FROM inbox_minutes
  WHERE (source, minute) >= (s.source, last.minute - s.look_back)
    AND (source, minute) <= (s.source, last.minute) AND {_HEARD}
  ORDER BY source, minute LIMIT 1
) first"""
)

# Counted no further than is asked for: a long silence would have every minute of weeks read with each look.
_SPOKE = text(
    "SELECT count(*) FROM (SELECT DISTINCT source, minute FROM inbox_minutes"
    " WHERE (source, minute) > (:source, CAST(:since AS timestamptz))"
    f" AND (source, minute) <= (:source, CAST(:until AS timestamptz)) AND {_HEARD}"
    " ORDER BY source, minute LIMIT :times) spoke"
)


@dataclass(frozen=True, slots=True)
class Silence:
    """A source, the minute it was last heard in, and in how many minutes at least it would have spoken."""

    source: str
    since: datetime
    expected: int


def silent_sources(
    session: Session,
    sources: Iterable[str],
    *,
    times: int = TIMES,
    shortest: timedelta = SHORTEST,
    now: datetime | None = None,
) -> list[Silence]:
    """Those of ``sources`` that are silent for ``times`` their usual gap, and for ``shortest`` at least.

    Cheap for sources that speak: two look-ups in an index. One that was never heard is not watched; one
    that stays silent stays in the list.
    """
    instant: datetime = session.execute(select(at(now))).scalar_one()
    parameters = {"sources": sorted(sources), "now": instant, "look_back": LOOK_BACK}
    found = []
    for row in session.execute(_ENDS, parameters).all():
        # The roll-up knows minutes: the last one is over before its silence begins.
        silent_for = instant - row.last - timedelta(minutes=1)
        if silent_for < shortest or row.last - row.first < YOUNG:
            continue
        # More than a week of it would tell no more, and cost more with every look.
        until = min(instant, row.last + WEEK)
        expected = _expected(session, row.source, row.first, row.last, until, times)
        if expected >= times:
            found.append(Silence(row.source, row.last, expected))
    return found


def _expected(
    session: Session, source: str, first: datetime, last: datetime, until: datetime, times: int
) -> int:
    """In how many minutes it spoke in the least of the earlier stretches: 0 to ``times``."""
    step = WEEK if last - first >= WEEK else DAY
    counts: list[int] = []
    shift = step
    while last - shift >= first and shift <= 2 * WEEK:
        # A stretch may not reach into the silence itself.
        stretch = {"source": source, "since": last - shift, "until": min(until - shift, last)}
        counts.append(session.execute(_SPOKE, {**stretch, "times": times}).scalar_one())
        shift += step
    return min(counts, default=0)


def heard(session: Session, source: str, since: datetime, until: datetime) -> bool:
    """Whether a source was heard in a minute after ``since``, up to ``until``."""
    stretch = {"source": source, "since": since, "until": until, "times": 1}
    return bool(session.execute(_SPOKE, stretch).scalar_one())
