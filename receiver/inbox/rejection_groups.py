"""Rejections of the last day by source and reason, with the measured skew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.inbox.counts import LOOK_AT

WINDOW = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class RejectionGroup:
    """Refused requests of one source and reason. The skew is in seconds, positive where the sender is
    ahead; None where none was measured. ``bodies`` authentic ones were kept.
    """

    source: str
    reason: str
    count: int
    addresses: int
    first_minute: datetime
    last_minute: datetime
    skew_low: int | None
    skew_middle: float | None
    skew_high: int | None
    bodies: int


_GROUPS = text(
    """\
SELECT source, reason, sum(count)::bigint AS number, count(DISTINCT remote_address) AS addresses,
       min(minute) AS first_minute, max(minute) AS last_minute,
       min(skew_seconds) AS low, percentile_cont(0.5) WITHIN GROUP (ORDER BY skew_seconds) AS middle,
       max(skew_seconds) AS high, count(*) FILTER (WHERE body_key <> '') AS bodies
FROM (
  SELECT source, reason, count, remote_address, minute, skew_seconds, body_key FROM webhook_rejections
  WHERE minute >= coalesce(CAST(:now AS timestamptz), now()) - CAST(:window AS interval)
  ORDER BY minute DESC LIMIT :look_at
) r
GROUP BY source, reason ORDER BY number DESC, source, reason LIMIT 200"""
)


def rejection_groups(
    session: Session, *, window: timedelta = WINDOW, now: datetime | None = None
) -> list[RejectionGroup]:
    """What was refused within the window, the most frequent first, of its LOOK_AT newest rows."""
    rows = session.execute(_GROUPS, {"now": now, "window": window, "look_at": LOOK_AT})
    return [
        RejectionGroup(
            source=row.source,
            reason=row.reason,
            count=row.number,
            addresses=row.addresses,
            first_minute=row.first_minute,
            last_minute=row.last_minute,
            skew_low=row.low,
            skew_middle=row.middle,
            skew_high=row.high,
            bodies=row.bodies,
        )
        for row in rows
    ]
