"""What the status page, the metrics and the command line read off: is money stuck, and where?

Each query costs the same however many rows ended before: pending and dead rows are counted through
their partial indexes and never further than LOOK_AT, rates come from the roll-up `inbox_minutes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from receiver.db import at
from receiver.inbox.counts import LOOK_AT, Count, bounded
from receiver.inbox.expiring import SOON, Expiring, expiring_by_source
from receiver.inbox.models import WebhookEvent
from receiver.inbox.rates import SourceRate, read_rates
from receiver.inbox.refusals import Rejected, open_conflicts, rejections
from receiver.inbox.table import INBOX
from receiver.queue.models import Pause, Worker
from receiver.queue.pauses import list_pauses
from receiver.queue.workers import list_workers

OVERDUE = timedelta(seconds=60)
"""A row that is due for longer than this is overdue: nobody claims it."""

NEWEST = 8
"""How many of the newest dead letters the page shows with their detail."""


@dataclass(slots=True)
class Pending:
    """Pending rows of one source, told apart. A held row is counted as held alone."""

    source: str
    fresh: int = 0
    retrying: int = 0
    held: int = 0
    parked: dict[str, int] = field(default_factory=dict)
    more: bool = False
    oldest_received_at: datetime | None = None
    due_since: datetime | None = None
    retrying_since: datetime | None = None

    @property
    def total(self) -> int:
        """All rows that were counted."""
        return self.fresh + self.retrying + self.held + sum(self.parked.values())


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Dead letters of one source, state and reason."""

    source: str
    state: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class ParkedGroup:
    """What pending events wait for: the order or transaction, how many, since when."""

    reason: str
    source: str
    order_reference: str | None
    transaction_id: str | None
    count: int
    since: datetime
    event_id: UUID


@dataclass(frozen=True)
class Status:
    """Everything on the status page, read in one transaction at ``now``."""

    now: datetime
    pending: Sequence[Pending]
    parked_groups: Sequence[ParkedGroup]
    in_flight: Count
    lease_over: int
    dead: Sequence[DeadLetters]
    dead_more: bool
    newest_dead: Sequence[WebhookEvent]
    rates: Sequence[SourceRate]
    workers: Sequence[Worker]
    workers_alive: int
    open_conflicts: Count
    rejections: Sequence[Rejected]
    pauses: Sequence[Pause]
    expiring: Sequence[Expiring] = ()
    soon: timedelta = SOON

    @property
    def pending_total(self) -> Count:
        """Pending rows of all sources."""
        return Count(sum(p.total for p in self.pending), any(p.more for p in self.pending))

    @property
    def dead_total(self) -> Count:
        """Dead letters that nobody acknowledged."""
        return Count(sum(group.count for group in self.dead), self.dead_more)

    @property
    def oldest_pending_at(self) -> datetime | None:
        """When the oldest pending row that is not held was received."""
        return min((p.oldest_received_at for p in self.pending if p.oldest_received_at), default=None)

    @property
    def overdue_since(self) -> datetime | None:
        """Since when a row is due that nobody claims, if for longer than OVERDUE."""
        due = min((p.due_since for p in self.pending if p.due_since), default=None)
        return due if due is not None and self.now - due > OVERDUE else None

    @property
    def held(self) -> dict[str, Count]:
        """Held rows by paused source."""
        return {p.source: Count(p.held, p.more) for p in self.pending if p.held}


def read_status(
    session: Session,
    *,
    stale: timedelta,
    sources: Iterable[str] = (),
    soon: timedelta = SOON,
    now: datetime | None = None,
) -> Status:
    """Read the whole status. ``sources`` are the configured ones; ``stale`` bounds a worker's silence.

    What expires within ``soon`` is read too.
    """
    instant: datetime = session.execute(select(at(now))).scalar_one()
    pauses = list_pauses(session, INBOX)
    workers = list_workers(session)
    dead, dead_more = dead_letters(session)
    in_flight, lease_over = _in_flight(session, instant)
    paused = {pause.key for pause in pauses}
    return Status(
        now=instant,
        pending=pending_by_source(session, paused, now=instant),
        parked_groups=parked_groups(session),
        in_flight=in_flight,
        lease_over=lease_over,
        dead=dead,
        dead_more=dead_more,
        newest_dead=newest_dead(session),
        rates=read_rates(session, sources=sources, now=instant),
        workers=workers,
        workers_alive=sum(worker.last_seen_at >= instant - stale for worker in workers),
        open_conflicts=open_conflicts(session),
        rejections=rejections(session, since=instant - timedelta(hours=1)),
        pauses=pauses,
        expiring=expiring_by_source(session, paused, until=instant + soon),
        soon=soon,
    )


# The recursive part hops from one source to the next over the partial index; the LATERAL then reads
# at most so many rows of each.
_PENDING = """\
WITH RECURSIVE seen AS (
  (SELECT source FROM webhook_events WHERE state = 'pending' ORDER BY source LIMIT 1)
  UNION ALL
  SELECT (SELECT e.source FROM webhook_events e WHERE e.state = 'pending' AND e.source > seen.source
          ORDER BY e.source LIMIT 1)
  FROM seen WHERE seen.source IS NOT NULL
)
SELECT seen.source, r.parked_reason, r.tried, count(*) AS number,
       min(r.received_at) AS oldest, min(r.next_attempt_at) AS due
FROM seen CROSS JOIN LATERAL (
  SELECT e.parked_reason, e.attempts > 0 AS tried, e.received_at, e.next_attempt_at
  FROM webhook_events e WHERE e.state = 'pending' AND e.source = seen.source
  ORDER BY e.next_attempt_at, e.id LIMIT :look_at
) r
WHERE seen.source IS NOT NULL
GROUP BY seen.source, r.parked_reason, r.tried
ORDER BY seen.source, r.parked_reason NULLS FIRST
"""


def pending_by_source(session: Session, paused: set[str], *, now: datetime) -> list[Pending]:
    """Pending rows of each source that has any, told apart, of its first LOOK_AT due rows."""
    found: dict[str, Pending] = {}
    counted: dict[str, int] = {}
    for row in session.execute(text(_PENDING), {"look_at": LOOK_AT + 1}):
        pending = found.setdefault(row.source, Pending(row.source))
        counted[row.source] = counted.get(row.source, 0) + row.number
        if row.source in paused:
            pending.held += row.number
            continue
        if row.parked_reason is not None:
            pending.parked[row.parked_reason] = pending.parked.get(row.parked_reason, 0) + row.number
        elif row.tried:
            pending.retrying += row.number
            pending.retrying_since = row.oldest
        else:
            pending.fresh += row.number
        pending.oldest_received_at = min(pending.oldest_received_at or row.oldest, row.oldest)
        if row.due <= now:
            pending.due_since = min(pending.due_since or row.due, row.due)
    for source, number in counted.items():
        found[source].more = number > LOOK_AT
    return list(found.values())


def parked_groups(session: Session, *, limit: int = 10) -> list[ParkedGroup]:
    """What parked rows wait for, the longest waiting first, of the LOOK_AT rows nearest their deadline.

    A row parked ``order_unknown`` or so waits; ``refund_exceeds_captured`` is a contradiction that
    a late event may still explain.
    """
    statement = text(
        "SELECT parked_reason, source, order_reference,"
        " CASE WHEN order_reference IS NULL THEN transaction_id END AS transaction_id,"
        " count(*) AS number, min(parked_at) AS since, min(id::text) AS event_id"
        " FROM (SELECT * FROM webhook_events WHERE state = 'pending'"
        " ORDER BY give_up_at, id LIMIT :look_at) p"
        " WHERE parked_reason IS NOT NULL"
        " GROUP BY 1, 2, 3, 4 ORDER BY parked_reason <> 'refund_exceeds_captured', since LIMIT :limit"
    )
    rows = session.execute(statement, {"look_at": LOOK_AT, "limit": limit})
    return [
        ParkedGroup(
            row.parked_reason,
            row.source,
            row.order_reference,
            row.transaction_id,
            row.number,
            row.since,
            UUID(row.event_id),
        )
        for row in rows
    ]


def _in_flight(session: Session, now: datetime) -> tuple[Count, int]:
    statement = text(
        "SELECT count(*) AS number, count(*) FILTER (WHERE claimed_until < :now) AS over FROM"
        " (SELECT claimed_until FROM webhook_events WHERE state = 'in_flight' LIMIT :look_at) f"
    )
    row = session.execute(statement, {"look_at": LOOK_AT + 1, "now": now}).one()
    return bounded(row.number, LOOK_AT), row.over


def dead_letters(session: Session) -> tuple[list[DeadLetters], bool]:
    """Unacknowledged dead letters by source, state and reason, of the newest LOOK_AT; whether more."""
    statement = text(
        "SELECT source, state, reason, count(*) FILTER (WHERE acknowledged_at IS NULL) AS number,"
        " sum(count(*)) OVER () AS looked_at FROM"
        " (SELECT source, state, coalesce(reason, outcome) AS reason, acknowledged_at FROM webhook_events"
        "  WHERE state IN ('failed', 'expired') ORDER BY updated_at DESC, id LIMIT :look_at) d"
        " GROUP BY source, state, reason ORDER BY number DESC, source, reason, state"
    )
    rows = session.execute(statement, {"look_at": LOOK_AT + 1}).all()
    groups = [DeadLetters(row.source, row.state, row.reason, row.number) for row in rows if row.number]
    return groups, bool(rows) and rows[0].looked_at > LOOK_AT


def newest_dead(session: Session, *, limit: int = NEWEST) -> Sequence[WebhookEvent]:
    """The newest unacknowledged dead letters, of the newest LOOK_AT."""
    looked_at = (
        select(WebhookEvent.id, WebhookEvent.updated_at, WebhookEvent.acknowledged_at)
        .where(text("state IN ('failed', 'expired')"))
        .order_by(WebhookEvent.updated_at.desc(), WebhookEvent.id)
        .limit(LOOK_AT)
        .subquery()
    )
    newest = (
        select(looked_at.c.id)
        .where(looked_at.c.acknowledged_at.is_(None))
        .order_by(looked_at.c.updated_at.desc(), looked_at.c.id)
        .limit(limit)
    )
    ids = session.scalars(newest).all()
    rows = {row.id: row for row in session.scalars(select(WebhookEvent).where(WebhookEvent.id.in_(ids)))}
    return [rows[event_id] for event_id in ids if event_id in rows]


def pending_of_source(session: Session, source: str) -> Count:
    """How many rows of a source are pending (held, when it is paused)."""
    statement = select(func.count()).select_from(
        select(WebhookEvent.id)
        .where(text("state = 'pending'"), WebhookEvent.source == source)
        .limit(LOOK_AT + 1)
        .subquery()
    )
    return bounded(session.execute(statement).scalar_one(), LOOK_AT)
