"""The inbox's periodic duties: reclaim, expire, end pauses. Each opens its own transaction."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.deps import Deps
from receiver.inbox.minutes import Key, MinuteCount, add_minutes, minute_of
from receiver.inbox.models import WebhookEvent
from receiver.inbox.table import INBOX, LATE_ENDS
from receiver.inbox.wake import send_round_bound_meanwhile
from receiver.logs import logger
from receiver.queue.pauses import go_on, resume_due, resumed_keys
from receiver.queue.reclaim import Ended, expire, reclaim

RESUME_SPREAD = timedelta(seconds=60)
"""Over how long held rows come back after a pause that ended by itself."""

log = logger("worker")


def reclaim_events(deps: Deps) -> int:
    """Take back the events of vanished workers; returns their number."""
    with deps.sessions.begin() as session:
        ended = reclaim(session, INBOX, now=deps.clock.now())
        _count_dead(session, deps, ended)
    for row in ended:
        log.warning("event.reclaimed", event_id=str(row.row_id), state=row.state)
    return len(ended)


def expire_events(deps: Deps) -> int:
    """End the events that are past their deadline; returns their number."""
    with deps.sessions.begin() as session:
        now = deps.clock.now()
        ended = expire(session, INBOX, LATE_ENDS, now=now)
        not_ours = [row.row_id for row in ended if row.state == INBOX.success]
        again = send_round_bound_meanwhile(session, not_ours, give_up=deps.settings.give_up, now=now)
        ended = [row for row in ended if row.row_id not in again]
        _count_dead(session, deps, ended)
    for row in ended:
        log.warning("event.expired", event_id=str(row.row_id), state=row.state)
    return len(ended)


def end_pauses(deps: Deps, limit_seconds: float = 30.0) -> int:
    """Resume the sources whose pause had an end that is over, and go on with every resume that is not over;
    returns the number of sources whose pause ended here.
    """
    ends = time.monotonic() + limit_seconds
    with deps.sessions.begin() as session:
        keys = resume_due(session, INBOX, spread=RESUME_SPREAD, now=deps.clock.now())
    for key in keys:
        log.warning("source.resumed", source=key)
    with deps.sessions() as session:
        begun = resumed_keys(session, INBOX)
    at_once = len(set(keys) - set(begun))
    return at_once + sum(_end_pause(deps, key, ends) for key in begun)


def _end_pause(deps: Deps, key: str, ends: float) -> bool:
    """Piece after piece, each in its own transaction; whether the last one was done here."""
    while time.monotonic() < ends:
        with deps.sessions.begin() as session:
            resumed = go_on(session, INBOX, key, now=deps.clock.now())
            if resumed is None:
                return False
            if resumed.over:
                record(
                    session,
                    actor="system",
                    action="source.resumed",
                    target=f"source:{key}",
                    count=resumed.held,
                    reason="every held event was given its time",
                    now=deps.clock.now(),
                )
                return True
    return False


def _count_dead(session: Session, deps: Deps, ended: list[Ended]) -> None:
    now = deps.clock.now() or datetime.now(UTC)
    counted: dict[Key, MinuteCount] = {}
    for row in ended:
        event = session.get(WebhookEvent, row.row_id) if row.state != "pending" else None
        if event is not None:
            duration = int((now - event.received_at).total_seconds() * 1000)
            key = (event.source, minute_of(now), row.state if row.state != "processed" else "ignored")
            counted.setdefault(key, MinuteCount()).add(max(0, duration))
    add_minutes(session, counted)
