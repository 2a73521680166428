"""Bulk replays as rows: begun, paced, cancelled, taken up again, ended. What they replay is the rooms' above.

The pace: rows go round again in the order of their ids, so many a second that ``spread_seconds`` are
filled. Rows that are not sent yet are still dead letters, so a cancelled replay leaves them as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Interval, cast, select, text, update
from sqlalchemy.orm import Session

from receiver.db import at
from receiver.queue.models import BulkReplay
from receiver.queue.table import QueueTable

SPREAD = timedelta(minutes=5)
"""Over how long the rows of a bulk replay come back, unless told otherwise."""

SLICE = timedelta(seconds=10)
"""How much of the pace is caught up with at once, after an outage or a slow turn of the duty."""

FIRST = timedelta(seconds=2)
"""How much of it a replay begins with: a longer slice would come over live traffic as a wave."""

LATE = timedelta(seconds=5)
"""A pending row that is due for longer says that the workers do not keep up."""

LATE_SHARE = 0.25
"""What a replay keeps of its pace while they do not: live rows go first, and it still ends."""

_LOOK_AT = 1_000

_LATE = """\
WITH RECURSIVE keys AS (
  (SELECT {key} AS key FROM {table} WHERE state = 'pending' ORDER BY {key} LIMIT 1)
  UNION ALL
  SELECT (SELECT {key} FROM {table} WHERE state = 'pending' AND {key} > keys.key ORDER BY {key} LIMIT 1)
  FROM keys WHERE keys.key IS NOT NULL
)
SELECT coalesce(bool_or(late.live) OR count(*) >= {look_at}, false)
FROM keys CROSS JOIN LATERAL (
  SELECT replays = 0 AS live FROM {table}
  WHERE state = 'pending' AND {key} = keys.key AND lost = 0
    AND next_attempt_at < coalesce(CAST(:now AS timestamptz), now()) - CAST(:late AS interval)
  ORDER BY next_attempt_at, id LIMIT {look_at}
) late
WHERE keys.key IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.queue = '{queue}' AND p.key = keys.key)
"""

PAGE_MAX = 200


class UnknownBulkReplay(Exception):
    """No bulk replay of that id."""

    def __init__(self, replay_id: UUID) -> None:
        super().__init__(f"no bulk replay {replay_id}")
        self.code = "bulk_replay_unknown"
        self.detail = str(self)


class BulkReplayEnded(Exception):
    """``code``: not_running (nothing to cancel), not_cancelled (nothing to take up again)."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def begin(
    session: Session,
    table: QueueTable,
    *,
    replay_id: UUID,
    filter: dict[str, Any],  # noqa: A002
    counted: int,
    row_limit: int | None,
    spread: timedelta,
    by: str,
    reason: str,
    announcement: str | None,
    now: datetime | None = None,
) -> BulkReplay:
    """Write a running bulk replay."""
    replay = BulkReplay(
        id=replay_id,
        queue=table.name,
        filter=filter,
        counted=counted,
        row_limit=row_limit,
        spread_seconds=int(spread.total_seconds()),
        by=by,
        reason=reason,
        announcement=announcement,
        created_at=at(now),
        updated_at=at(now),
    )
    session.add(replay)
    session.flush()
    session.refresh(replay)
    return replay


def find(session: Session, replay_id: UUID) -> BulkReplay:
    """The bulk replay as it stands. Raises UnknownBulkReplay."""
    replay = session.get(BulkReplay, replay_id, populate_existing=True)
    if replay is None:
        raise UnknownBulkReplay(replay_id)
    return replay


def list_bulk_replays(
    session: Session, table: QueueTable, *, before: UUID | None = None, limit: int = 50
) -> Sequence[BulkReplay]:
    """The newest first; ``before`` continues after the last one of a page."""
    query = select(BulkReplay).where(BulkReplay.queue == table.name).order_by(BulkReplay.id.desc())
    if before is not None:
        query = query.where(BulkReplay.id < before)
    return session.scalars(query.limit(max(1, min(limit, PAGE_MAX)))).all()


def running(session: Session, table: QueueTable) -> list[UUID]:
    """The bulk replays that go on, the one longest without a step first."""
    query = select(BulkReplay.id).where(BulkReplay.state == "running", BulkReplay.queue == table.name)
    return list(session.scalars(query.order_by(BulkReplay.updated_at, BulkReplay.id)))


def take(
    session: Session, replay_id: UUID, now: datetime | None = None
) -> tuple[BulkReplay, timedelta] | None:
    """Lock a running replay for one step, with the time since its pace was last filled.

    None when it is not running any more, or when another worker takes this step.
    """
    query = (
        select(BulkReplay, cast(at(now) - BulkReplay.updated_at, Interval))
        .where(BulkReplay.id == replay_id, BulkReplay.state == "running")
        .with_for_update(skip_locked=True, of=BulkReplay)
        .execution_options(populate_existing=True)
    )
    found = session.execute(query).one_or_none()
    return None if found is None else (found[0], found[1])


def live_rows_wait(session: Session, table: QueueTable, now: datetime | None = None) -> bool:
    """Whether the workers are behind: a row that no replay sent is late, or very many are."""
    statement = text(_LATE.format(table=table.table, key=table.key, queue=table.name, look_at=_LOOK_AT))
    return bool(session.execute(statement, {"now": now, "late": LATE}).scalar_one())


def quota(replay: BulkReplay, since: timedelta, share: float = 1.0) -> int:
    """How many rows the pace allows now, ``since`` after it was last filled; of the pace a ``share``.

    >>> quota(BulkReplay(counted=3000, spread_seconds=300, cursor=None), timedelta(seconds=1))
    20
    """
    left = replay.counted if replay.row_limit is None else replay.row_limit - replay.done
    if replay.spread_seconds:
        # A hair more: a whole row is due after exactly its time, however floats round.
        left = min(left, int(rate(replay) * _unfilled(replay, since, share) + 1e-6))
    return max(0, left)


def rate(replay: BulkReplay) -> float:
    """Rows a second that fill the spread."""
    return max(1, replay.counted) / replay.spread_seconds


def ahead(replay: BulkReplay, since: timedelta, share: float = 1.0) -> timedelta:
    """The time that a step's rows fill: within it a hash of row and replay says when each is due."""
    return timedelta(
        seconds=min(replay.spread_seconds, _unfilled(replay, since, share)) if replay.spread_seconds else 0
    )


def _unfilled(replay: BulkReplay, since: timedelta, share: float) -> float:
    """Seconds of the pace that have no rows yet, and at least those of one row at the beginning."""
    row = 1 / rate(replay)
    if replay.cursor is None:
        return max(FIRST.total_seconds(), row)
    return min(max(SLICE.total_seconds(), row), max(0.0, since.total_seconds()) * share)


def step(
    session: Session,
    replay: BulkReplay,
    *,
    done: int,
    skipped: int,
    cursor: UUID | None,
    since: timedelta,
    share: float = 1.0,
    now: datetime | None = None,
) -> None:
    """Note a step of a replay that `take` locked: its rows, and how far it looked."""
    left = 0.0
    if replay.spread_seconds:
        # What the rows did not fill of the time is left for the next step.
        left = max(0.0, _unfilled(replay, since, share) - (done + skipped) / rate(replay)) / share
    session.execute(
        update(BulkReplay)
        .where(BulkReplay.id == replay.id)
        .values(
            done=BulkReplay.done + done,
            skipped=BulkReplay.skipped + skipped,
            cursor=cursor,
            updated_at=at(now) - timedelta(seconds=left),
        )
        .execution_options(synchronize_session=False)
    )
    session.refresh(replay)


def end(session: Session, replay: BulkReplay, now: datetime | None = None) -> None:
    """Every row was looked at: what was counted and not sent had recovered meanwhile."""
    _set_state(session, replay, "done", now, skipped=max(replay.skipped, replay.counted - replay.done))


def cancel(session: Session, replay_id: UUID, now: datetime | None = None) -> BulkReplay:
    """End a running replay midway; what was sent goes on. Raises UnknownBulkReplay, BulkReplayEnded."""
    replay = _locked(session, replay_id)
    if replay.state != "running":
        raise BulkReplayEnded("not_running", f"the bulk replay is {replay.state}: nothing is left to cancel")
    _set_state(session, replay, "cancelled", now)
    return replay


def take_up(session: Session, replay_id: UUID, now: datetime | None = None) -> BulkReplay:
    """Go on with a cancelled replay where it stopped. Raises UnknownBulkReplay, BulkReplayEnded."""
    replay = _locked(session, replay_id)
    if replay.state != "cancelled":
        raise BulkReplayEnded(
            "not_cancelled", f"the bulk replay is {replay.state}: only a cancelled one goes on"
        )
    _set_state(session, replay, "running", now)
    return replay


def _locked(session: Session, replay_id: UUID) -> BulkReplay:
    replay = session.get(BulkReplay, replay_id, with_for_update=True, populate_existing=True)
    if replay is None:
        raise UnknownBulkReplay(replay_id)
    return replay


def _set_state(session: Session, replay: BulkReplay, state: str, now: datetime | None, **more: int) -> None:
    session.execute(
        update(BulkReplay)
        .where(BulkReplay.id == replay.id)
        .values(state=state, updated_at=at(now), finished_at=None if state == "running" else at(now), **more)
        .execution_options(synchronize_session=False)
    )
    session.refresh(replay)
