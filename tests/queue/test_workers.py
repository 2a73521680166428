"""Heartbeats: who lives, who is silent, who is gone."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from sqlalchemy.orm import Session

from receiver.queue.workers import alive, beat, leave, list_workers
from tests.factories import NOW, make_worker

STALE = timedelta(seconds=30)


def test_a_worker_beats(session: Session) -> None:
    """A beat makes the worker known and moves when it was seen and when it last ran."""
    worker_id = uuid4()
    beat(session, worker_id, name="w1", host="h", pid=7, ticks=1, now=NOW)
    later = NOW + timedelta(seconds=5)
    beat(session, worker_id, name="w1", host="h", pid=7, ticks=1, skipped_ticks=4, now=later)

    (worker,) = list_workers(session)
    assert (worker.started_at, worker.last_seen_at, worker.last_tick_at) == (NOW, later, NOW)
    assert (worker.ticks, worker.skipped_ticks) == (1, 4)


def test_a_silent_worker_does_not_count(session: Session) -> None:
    """A worker not seen within the time is not alive, and stays on the list for a day."""
    make_worker(session, last_seen_at=NOW - STALE)
    make_worker(session, last_seen_at=NOW - STALE - timedelta(seconds=1))

    assert alive(session, stale=STALE, now=NOW) == 1
    assert len(list_workers(session)) == 2


def test_a_worker_long_gone_is_forgotten(session: Session) -> None:
    """The next beat of any worker takes those off the list that were not seen for a day."""
    make_worker(session, last_seen_at=NOW - timedelta(days=1, seconds=1))
    worker_id = uuid4()

    beat(session, worker_id, name="w1", host="h", pid=7, now=NOW)

    assert [worker.id for worker in list_workers(session)] == [worker_id]


def test_a_worker_leaves(session: Session) -> None:
    """An orderly end takes the worker off the list."""
    worker = make_worker(session)

    leave(session, worker.id)

    assert list_workers(session) == []
