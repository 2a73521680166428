"""The timetable: which duties a worker has, and what it does when the clock jumps."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import select

from receiver.deps import Deps
from receiver.queue.models import Worker
from receiver.settings import Settings, SettingsError
from receiver.timetable import Timetable, _reread


@pytest.fixture
def scheduler() -> BackgroundScheduler:
    """A scheduler that was never started."""
    return BackgroundScheduler(timezone=UTC)


def test_every_duty_runs_once_at_a_time_and_makes_up_for_missed_runs(
    deps: Deps, scheduler: BackgroundScheduler
) -> None:
    """Each duty is there from the start, one instance, coalesced, however late."""
    Timetable(deps, scheduler)

    jobs = {job.id: job for job in scheduler.get_jobs()}
    assert set(jobs) == {
        "process",
        "reclaim",
        "expire",
        "pauses",
        "bulk_replay",
        "hours",
        "alert",
        "retention",
        "levels",
        "reconcile",
        "heartbeat",
    }
    for job in jobs.values():
        assert (job.max_instances, job.coalesce, job.misfire_grace_time) == (1, True, None)
        assert job.next_run_time <= datetime.now(UTC)
        job.func()


def test_a_heartbeat_tells_of_ticks_and_skipped_ones(deps: Deps, scheduler: BackgroundScheduler) -> None:
    """Ticks done and ticks skipped (while a long one ran) stand on the worker's row until it leaves."""
    timetable = Timetable(deps, scheduler)
    timetable.process()
    for duty in ("process", "process", "reclaim"):
        timetable._job_skipped(SimpleNamespace(job_id=duty))
    timetable.heartbeat()

    with deps.sessions() as session:
        worker = session.scalars(select(Worker)).one()
    assert (worker.name, worker.ticks, worker.skipped_ticks) == (timetable.name, 1, 2)

    timetable.close()
    with deps.sessions() as session:
        assert session.scalars(select(Worker)).all() == []


@pytest.mark.parametrize(("jump", "due"), [(-3600, True), (3600, True), (2, False), (0, False)])
def test_a_jump_of_the_clock_makes_every_duty_due(
    deps: Deps, monkeypatch: pytest.MonkeyPatch, jump: int, due: bool
) -> None:
    """Set back or forward by more than five seconds, every duty becomes due; a small step changes nothing."""
    scheduler = BackgroundScheduler(timezone=UTC)
    timetable = Timetable(deps, scheduler)
    scheduler.start(paused=True)
    try:
        later = datetime.now(UTC) + timedelta(days=1)
        for job in scheduler.get_jobs():
            job.modify(next_run_time=later)
        wall = time.time()
        monkeypatch.setattr("receiver.timetable.time.time", lambda: wall + jump)

        timetable.watch_clock()

        assert {job.next_run_time < later for job in scheduler.get_jobs()} == {due}
    finally:
        scheduler.shutdown(wait=False)


def test_a_worker_whose_database_is_away_leaves_without_a_fault(
    deps: Deps, scheduler: BackgroundScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taking itself off the list is best effort: a worker ends though the database is away."""
    timetable = Timetable(deps, scheduler)

    def away(*_more: object, **_named: object) -> None:
        raise ConnectionError("away")

    monkeypatch.setattr("receiver.timetable.leave", away)

    timetable.close()


def test_a_signal_lets_the_worker_read_its_settings_anew(deps: Deps, scheduler: BackgroundScheduler) -> None:
    """After SIGHUP the next batch goes by the new sources; settings with a fault change nothing."""
    timetable = Timetable(deps, scheduler)
    more = {**deps.settings.sources, "shop": deps.settings.sources["demo"]}

    _reread(timetable, lambda: replace(deps.settings, sources=more))
    assert "shop" in timetable.processor._deps.settings.sources

    def broken() -> Settings:
        raise SettingsError(["DATABASE_URL is not set"])

    _reread(timetable, broken)
    assert "shop" in timetable.processor._deps.settings.sources
