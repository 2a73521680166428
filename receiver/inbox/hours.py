"""Hours: `inbox_minutes` summed up by a duty, so that long pictures and counters read few rows."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import text

from receiver.deps import Deps
from receiver.inbox.minutes import BOUNDS_MS

SETTLED = timedelta(minutes=2)
"""How long after its end an hour is summed up: the processes' counts come a second late."""

SUMMED_AGAIN = timedelta(hours=6)
"""Hours that every run sums up anew: a process that could not reach the database writes late."""

AT_ONCE = timedelta(days=4)
"""How much of a long history one run sums up."""

BUCKET_SUMS = ", ".join(f"sum(buckets[{index}])" for index in range(1, len(BOUNDS_MS) + 2))
"""One sum for each bucket: a tenth of the cost of unnesting the arrays."""

# The next hour that has rows is looked for, since hours without any leave no trace to go on from.
_ROLL_UP = text(
    f"""\
WITH t AS (
  SELECT date_trunc('hour', coalesce(CAST(:now AS timestamptz), now()) - CAST(:settled AS interval),
                    'UTC') AS until
), mark AS (
  SELECT coalesce(max(hour) + interval '1 hour', '-infinity') AS hour FROM inbox_hours
), next AS (
  SELECT min(m.minute) AS minute FROM inbox_minutes m, mark WHERE m.minute >= mark.hour
), summed AS (
  INSERT INTO inbox_hours (source, hour, result, count, total_ms, buckets)
  SELECT m.source, date_trunc('hour', m.minute, 'UTC') AS hour, m.result, sum(m.count), sum(m.total_ms),
         CASE WHEN count(m.buckets) > 0 THEN ARRAY[{BUCKET_SUMS}]::bigint[] END
  FROM inbox_minutes m, t, mark, next
  WHERE m.minute < t.until
    AND m.minute >= CASE WHEN mark.hour = '-infinity' THEN mark.hour
                         ELSE mark.hour - CAST(:again AS interval) END
    AND m.minute < greatest(mark.hour,
                            date_trunc('hour', next.minute, 'UTC') + CAST(:at_once AS interval))
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (source, hour, result) DO UPDATE
  SET count = excluded.count, total_ms = excluded.total_ms, buckets = excluded.buckets
  WHERE (inbox_hours.count, inbox_hours.total_ms) <> (excluded.count, excluded.total_ms)
  RETURNING 1
)
SELECT count(*) FROM summed"""
)

MARK = "(SELECT coalesce(max(hour) + interval '1 hour', '-infinity') FROM inbox_hours)"
"""From when on the minutes are not summed up yet."""


def roll_up_hours(deps: Deps) -> int:
    """A duty: sum up the hours that are over; returns the rows that are new or changed. Any number of
    workers may do it at once, and again.
    """
    asked = {"now": deps.clock.now(), "settled": SETTLED, "again": SUMMED_AGAIN, "at_once": AT_ONCE}
    with deps.sessions.begin() as session:
        return int(session.execute(_ROLL_UP, asked).scalar_one())
