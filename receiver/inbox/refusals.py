"""What the intake would not take as it came: rejections and conflicts, and when a source last spoke."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.inbox.counts import LOOK_AT, Count, bounded
from receiver.inbox.models import WebhookConflict, WebhookEvent


@dataclass(frozen=True, slots=True)
class Rejected:
    """Refused requests of the last hour, of one source and reason."""

    source: str
    reason: str
    count: int
    last_minute: datetime


def open_conflicts(session: Session) -> Count:
    """Conflicts (other facts under a known id) that nobody settled; variants do not count."""
    statement = text(
        "SELECT count(*) FROM (SELECT 1 FROM webhook_conflicts"
        " WHERE state = 'open' AND kind = 'conflict' LIMIT :look_at) c"
    )
    return bounded(session.execute(statement, {"look_at": LOOK_AT + 1}).scalar_one(), LOOK_AT)


def newest_conflicts(session: Session, *, limit: int = 5) -> list[tuple[WebhookConflict, WebhookEvent]]:
    """The open conflicts seen last, each with its event."""
    query = (
        select(WebhookConflict, WebhookEvent)
        .join(WebhookEvent, WebhookEvent.id == WebhookConflict.event_id)
        .where(text("webhook_conflicts.state = 'open' AND webhook_conflicts.kind = 'conflict'"))
        .order_by(WebhookConflict.last_seen_at.desc())
        .limit(limit)
    )
    return [(conflict, event) for conflict, event in session.execute(query)]


def rejections(session: Session, *, since: datetime) -> list[Rejected]:
    """Refused requests since a time by source and reason, the most frequent first."""
    statement = text(
        "SELECT source, reason, sum(count)::bigint AS number, max(minute) AS last_minute FROM"
        " (SELECT * FROM webhook_rejections WHERE minute >= :since ORDER BY minute DESC LIMIT :look_at) r"
        " GROUP BY source, reason ORDER BY number DESC, source, reason LIMIT 50"
    )
    rows = session.execute(statement, {"since": since, "look_at": LOOK_AT})
    return [Rejected(row.source, row.reason, row.number, row.last_minute) for row in rows]


@dataclass(frozen=True, slots=True)
class SourceTimes:
    """When a source was last heard: a stored event, a refused request and why."""

    last_received_at: datetime | None
    last_rejected_at: datetime | None
    last_rejected_reason: str | None
    last_skew_seconds: int | None


def source_times(session: Session, source: str) -> SourceTimes:
    """When a source last spoke, and when it was last refused (to the minute)."""
    received = session.scalar(
        select(WebhookEvent.received_at)
        .where(WebhookEvent.source == source)
        .order_by(WebhookEvent.id.desc())
        .limit(1)
    )
    statement = text(
        "SELECT minute, reason, skew_seconds FROM webhook_rejections WHERE source = :source"
        " ORDER BY minute DESC, id DESC LIMIT 1"
    )
    rejected: Any = session.execute(statement, {"source": source}).first()
    if rejected is None:
        return SourceTimes(received, None, None, None)
    return SourceTimes(received, rejected.minute, rejected.reason, rejected.skew_seconds)
