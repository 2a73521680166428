"""Replay of many dead letters at once: count, start, work off, cancel, take up again.

Only failed and expired rows that nobody acknowledged, and only those that were dead when the replay
was started: what dies later, or dies again, waits for a person's next look.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.deps import Deps
from receiver.inbox.counts import Count
from receiver.inbox.dead_letters import COUNT_TO, count_matching, dead_only, next_matching
from receiver.inbox.filter import Filter
from receiver.inbox.table import INBOX
from receiver.logs import logger
from receiver.queue import bulk_replays
from receiver.queue.bulk_replays import LATE_SHARE, SPREAD, BulkReplayEnded, UnknownBulkReplay
from receiver.queue.models import BulkReplay
from receiver.queue.replay import replay_many

__all__ = [
    "ANNOUNCE_ABOVE",
    "SPREAD",
    "BulkReplayEnded",
    "BulkReplayRefused",
    "UnknownBulkReplay",
    "advance",
    "cancel_bulk_replay",
    "find_bulk_replay",
    "list_bulk_replays",
    "resume_bulk_replay",
    "start_bulk_replay",
    "who_notices",
]

BATCH = 100
"""Rows of one transaction: it holds their locks for some ten milliseconds."""

TURN_SECONDS = 0.1
"""Time that a turn of the duty, once a second, may take beyond one batch of each replay.

Some thousand rows while the database is quick. Where it is slow it has live traffic to serve: fewer go,
and the replay takes longer than its spread.
"""

ANNOUNCE_ABOVE = 2_000
"""Above so many rows others notice: who was told must be said, and is kept."""

SPREAD_MOST = timedelta(hours=24)

log = logger("worker")


class BulkReplayRefused(Exception):
    """``code``: needs_admin, nothing_matches, announcement_needed, bad_spread, bad_limit, no_reason."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def who_notices(count: Count, spread: timedelta) -> list[str]:
    """Which systems notice a replay of so many rows: sentences for the announcement."""
    minutes = max(1, round(spread.total_seconds() / 60))
    return [
        f"Up to {count} orders change within about {minutes} minutes: whatever reads them notices.",
        "The worker and the database do this beside live events: the backlog on /status grows.",
        "Events that are refused again are counted as failures again: alerts on dead letters may speak.",
    ]


def start_bulk_replay(
    session: Session,
    *,
    replay_id: UUID,
    filter: Filter,  # noqa: A002
    actor: str,
    reason: str,
    admin: bool,
    spread: timedelta = SPREAD,
    row_limit: int | None = None,
    announcement: str | None = None,
    now: datetime | None = None,
) -> BulkReplay:
    """Begin to send the filter's dead letters round again, with the audit row.

    The worker's duty does it, at a pace that fills ``spread``. Raises BulkReplayRefused, FilterError.
    """
    filter = dead_only(filter)  # noqa: A001
    announcement = (announcement or "").strip() or None
    _check(admin, reason, spread, row_limit)
    counted = count_matching(session, filter, COUNT_TO).number
    if row_limit is not None:
        counted = min(counted, row_limit)
    if not counted:
        raise BulkReplayRefused("nothing_matches", "no failed or expired event matches: nothing to replay")
    if counted > ANNOUNCE_ABOVE and announcement is None:
        raise BulkReplayRefused(
            "announcement_needed",
            f"{counted:,} events are more than {ANNOUNCE_ABOVE:,}: say who was told that they come",
        )
    replay = bulk_replays.begin(
        session,
        INBOX,
        replay_id=replay_id,
        filter=filter.as_query(),
        counted=counted,
        row_limit=row_limit,
        spread=spread,
        by=actor,
        reason=reason.strip(),
        announcement=announcement,
        now=now,
    )
    told = {} if announcement is None else {"announcement": announcement}
    criteria = {"filter": replay.filter, "spread_seconds": replay.spread_seconds, "limit": row_limit, **told}
    _note(session, replay, "start", actor, replay.reason, counted, now, criteria)
    return replay


def _check(admin: bool, reason: str, spread: timedelta, row_limit: int | None) -> None:
    if not admin:
        raise BulkReplayRefused("needs_admin", "only an admin replays many events at once")
    if not reason.strip():
        raise BulkReplayRefused("no_reason", "say why: the audit row keeps it")
    if not timedelta(0) <= spread <= SPREAD_MOST:
        raise BulkReplayRefused("bad_spread", "the spread is from 0 seconds to 24 hours")
    if row_limit is not None and row_limit < 1:
        raise BulkReplayRefused("bad_limit", "the limit of rows is 1 or more")


def cancel_bulk_replay(
    session: Session, replay_id: UUID, *, actor: str, reason: str, now: datetime | None = None
) -> BulkReplay:
    """Stop a running replay: what was not sent yet stays a dead letter, what was sent goes on.

    Raises UnknownBulkReplay, BulkReplayEnded.
    """
    replay = bulk_replays.cancel(session, replay_id, now)
    _note(session, replay, "cancel", actor, reason, replay.done, now)
    return replay


def resume_bulk_replay(
    session: Session, replay_id: UUID, *, actor: str, reason: str, now: datetime | None = None
) -> BulkReplay:
    """Go on with a cancelled replay where it stopped. Raises UnknownBulkReplay, BulkReplayEnded."""
    replay = bulk_replays.take_up(session, replay_id, now)
    _note(session, replay, "resume", actor, reason, max(0, replay.counted - replay.done), now)
    return replay


def find_bulk_replay(session: Session, replay_id: UUID) -> BulkReplay:
    """A bulk replay with its progress. Raises UnknownBulkReplay."""
    return bulk_replays.find(session, replay_id)


def list_bulk_replays(session: Session, *, before: UUID | None = None, limit: int = 50) -> list[BulkReplay]:
    """The inbox's bulk replays, the newest first."""
    return list(bulk_replays.list_bulk_replays(session, INBOX, before=before, limit=limit))


def advance(deps: Deps) -> int:
    """A duty: bring every running bulk replay up to its pace; returns the rows that went round again.

    While live rows wait for the workers, each keeps but a share of its pace.
    """
    with deps.sessions() as session:
        ids = bulk_replays.running(session, INBOX)
        behind = bool(ids) and bulk_replays.live_rows_wait(session, INBOX, deps.clock.now())
    share = LATE_SHARE if behind else 1.0
    ends = time.monotonic() + TURN_SECONDS * share
    sent = 0
    for replay_id in ids:
        more = True
        while more:
            with deps.sessions.begin() as session:
                rows, more = _step(session, replay_id, deps.settings.give_up, share, deps.clock.now())
            sent += rows
            more = more and time.monotonic() < ends
    return sent


def _step(
    session: Session, replay_id: UUID, give_up: timedelta, share: float, now: datetime | None
) -> tuple[int, bool]:
    """One transaction of a replay: rows sent, and whether another may follow at once."""
    taken = bulk_replays.take(session, replay_id, now)
    if taken is None:
        return 0, False
    replay, since = taken
    allowed = bulk_replays.quota(replay, since, share)
    if not allowed and (replay.row_limit is None or replay.done < replay.row_limit):
        return 0, False
    rows: list[Row[Any]] = []
    cursor, all_seen = replay.cursor, True
    if allowed:
        rows, cursor, all_seen = next_matching(
            session,
            Filter.parse(replay.filter),
            ("id", "row_version"),
            after=replay.cursor,
            limit=min(BATCH, allowed),
            dead_at=replay.created_at,
        )
    sent = replay_many(
        session,
        INBOX,
        [(row.id, row.row_version) for row in rows],
        replay_id=replay.id,
        within=bulk_replays.ahead(replay, since, share),
        give_up=give_up,
        now=now,
    )
    bulk_replays.step(
        session,
        replay,
        done=sent,
        skipped=len(rows) - sent,
        cursor=cursor,
        since=since,
        share=share,
        now=now,
    )
    if all_seen:
        bulk_replays.end(session, replay, now)
        _note(session, replay, "done", "system", "every row was looked at", replay.done, now)
        log.info("bulk_replay.done", bulk_replay=str(replay.id), done=replay.done, skipped=replay.skipped)
    return sent, not all_seen


def _note(
    session: Session,
    replay: BulkReplay,
    act: str,
    actor: str,
    reason: str,
    count: int,
    now: datetime | None,
    criteria: dict[str, Any] | None = None,
) -> None:
    record(
        session,
        actor=actor,
        action=f"bulk_replay.{act}",
        target=f"bulk_replay:{replay.id}",
        criteria=criteria or {"done": replay.done, "skipped": replay.skipped, "counted": replay.counted},
        count=count,
        reason=reason,
        now=now,
    )
