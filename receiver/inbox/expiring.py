"""Pending rows whose deadline is near: what a person can still save."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.inbox.counts import LOOK_AT

SOON = timedelta(hours=12)
"""How long before its deadline a row is warned of, unless the settings say otherwise."""


@dataclass(frozen=True, slots=True)
class Expiring:
    """Rows of one source that end soon, counted up to LOOK_AT over all; when the first of them does."""

    source: str
    count: int
    first: datetime


_SOON = text(
    """\
SELECT source, count(*) AS number, min(give_up_at) AS first FROM (
  SELECT source, give_up_at FROM webhook_events
  WHERE state = 'pending' AND give_up_at <= :until AND source <> ALL(CAST(:paused AS text[]))
  ORDER BY give_up_at, id LIMIT :look_at
) soon GROUP BY source ORDER BY first, source"""
)


def expiring_by_source(session: Session, paused: Collection[str], *, until: datetime) -> list[Expiring]:
    """What ends by ``until``, by source, the first to end first. A held row never ends."""
    rows = session.execute(_SOON, {"until": until, "paused": sorted(paused), "look_at": LOOK_AT})
    return [Expiring(row.source, row.number, row.first) for row in rows]
