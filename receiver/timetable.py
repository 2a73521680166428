"""The worker's timetable: which duty runs how often, and the watch over a jumping clock.

APScheduler keeps the jobs in memory; the database keeps the truth, so that any number of workers may
run this at once. Each job runs once at a time; a missed run is made up for by one, however late.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from types import FrameType
from typing import Any

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MAX_INSTANCES, JobExecutionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.base import BaseScheduler
from apscheduler.schedulers.blocking import BlockingScheduler
from psycopg import errors
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from receiver.alerts.keep import Turned
from receiver.alerts.look import look_and_tell
from receiver.alerts.turns import Turn
from receiver.alerts.verdicts import Verdict
from receiver.deps import Deps
from receiver.inbox.bulk_replay import advance
from receiver.inbox.duties import end_pauses, expire_events, reclaim_events
from receiver.inbox.hours import roll_up_hours
from receiver.inbox.levels import note_levels
from receiver.inbox.process import Processor
from receiver.logs import logger
from receiver.queue.workers import beat, leave
from receiver.reconciliation.duty import Reconciler
from receiver.reconciliation.report import drift_counts
from receiver.retention.turn import run_due
from receiver.settings import Settings, SettingsError

RECLAIM_SECONDS = 5
EXPIRE_SECONDS = 30
PAUSES_SECONDS = 5
BULK_REPLAY_SECONDS = 1
BEAT_SECONDS = 5
LEVELS_SECONDS = 20
HOURS_SECONDS = 60
RECONCILE_SECONDS = 5
RETENTION_SECONDS = 300
WATCH_SECONDS = 1

THREADS = 16
"""More than duties: one that waits must not keep the heartbeat from being heard."""

CLOCK_JUMP = timedelta(seconds=5)
"""Difference between the steps of wall and monotonic time that counts as a jump of the clock."""

log = logger("worker")


class Timetable:
    """The duties of one worker process over a scheduler that is handed in."""

    def __init__(self, deps: Deps, scheduler: BaseScheduler) -> None:
        self._deps = deps
        self._scheduler = scheduler
        self.worker_id = deps.dice.new_id()
        self.name = deps.settings.worker_name or f"{socket.gethostname()}-{os.getpid()}"
        self.processor = Processor(deps, self.name)
        self.reconciler = Reconciler(deps)
        self._ticks = 0
        self._skipped = 0
        self._wall = time.time()
        self._monotonic = time.monotonic()
        self._add_jobs()

    def _add_jobs(self) -> None:
        poll = self._deps.settings.poll.total_seconds()
        for name, duty, seconds in (
            ("heartbeat", self.heartbeat, BEAT_SECONDS),
            ("process", self.process, poll),
            ("reclaim", lambda: reclaim_events(self._deps), RECLAIM_SECONDS),
            ("expire", lambda: expire_events(self._deps), EXPIRE_SECONDS),
            ("pauses", lambda: end_pauses(self._deps), PAUSES_SECONDS),
            ("bulk_replay", lambda: advance(self._deps), BULK_REPLAY_SECONDS),
            ("levels", lambda: note_levels(self._deps), LEVELS_SECONDS),
            ("hours", lambda: roll_up_hours(self._deps), HOURS_SECONDS),
            ("alert", self.alert, self._deps.settings.alerts.look.total_seconds()),
            ("reconcile", self.reconciler.tick, RECONCILE_SECONDS),
            ("retention", lambda: run_due(self._deps), RETENTION_SECONDS),
        ):
            self._scheduler.add_job(
                partial(_unless_locked, name, duty),
                "interval",
                id=name,
                seconds=seconds,
                next_run_time=datetime.now(UTC),
                max_instances=1,
                coalesce=True,
                misfire_grace_time=None,
            )
        self._scheduler.add_listener(self._job_failed, EVENT_JOB_ERROR)
        self._scheduler.add_listener(self._job_skipped, EVENT_JOB_MAX_INSTANCES)

    def process(self) -> None:
        """Drain what is due."""
        self.processor.tick()
        self._ticks += 1

    def alert(self) -> None:
        """Look for what is wrong, and tell it."""
        look_and_tell(self._deps, [("drift", _judge_drift)], self._look_after)

    def _look_after(self, session: Session, one: Turned) -> None:
        if one.kind == "silence" and one.turn is Turn.OPENED:
            self.reconciler.look_after_silent(session, one.key, one.since)

    def heartbeat(self) -> None:
        """Say that this worker lives."""
        with self._deps.sessions.begin() as session:
            beat(
                session,
                self.worker_id,
                name=self.name,
                host=socket.gethostname(),
                pid=os.getpid(),
                ticks=self._ticks,
                skipped_ticks=self._skipped,
                now=self._deps.clock.now(),
            )

    def watch_clock(self) -> None:
        """After a jump of the clock make every job due: the scheduler would sleep through one set back."""
        wall, monotonic = time.time(), time.monotonic()
        jumped = (wall - self._wall) - (monotonic - self._monotonic)
        self._wall, self._monotonic = wall, monotonic
        if abs(jumped) > CLOCK_JUMP.total_seconds():
            log.warning("clock.jumped", seconds=round(jumped, 1))
            now = datetime.now(UTC)
            for job in self._scheduler.get_jobs():
                job.modify(next_run_time=now)

    def use(self, settings: Settings) -> None:
        """Work by settings that were read anew; the database stays the one of the start."""
        self._deps = self._deps.with_settings(settings)
        self.processor.use(settings)
        self.reconciler.use(self._deps)

    def close(self) -> None:
        """Take this worker off the list."""
        try:
            with self._deps.sessions.begin() as session:
                leave(session, self.worker_id)
        except Exception as error:
            log.warning("worker.not_taken_off", error=type(error).__name__)

    def _job_failed(self, event: JobExecutionEvent) -> None:
        log.error("duty.failed", duty=event.job_id, error=type(event.exception).__name__)

    def _job_skipped(self, event: Any) -> None:
        # Ticks are skipped while a long one runs; that is the plan, and counted so that it can be seen.
        if event.job_id == "process":
            self._skipped += 1


def _judge_drift(session: Session, now: datetime) -> list[Verdict]:
    """Differences between the providers' records and ours that stand for a while."""
    return [
        Verdict("drift", one.source, since=one.since, facts={"count": one.count})
        for one in drift_counts(session, now)
    ]


def _unless_locked(name: str, duty: Callable[[], object]) -> None:
    """Run a duty; one that meets somebody's long lock is put off until its next turn."""
    try:
        duty()
    except DBAPIError as error:
        if not isinstance(error.orig, errors.LockNotAvailable):
            raise
        log.warning("duty.put_off", duty=name, reason="somebody holds what it needs locked")


def run(deps: Deps, reread: Callable[[], Settings] | None = None) -> None:
    """Run a worker in this process until SIGTERM or SIGINT; then hand back what was not started.

    ``reread`` is asked for the settings at each SIGHUP; with a fault in them the old ones stay.
    """
    scheduler = BlockingScheduler(
        timezone=UTC,
        executors={"default": ThreadPoolExecutor(THREADS, pool_kwargs={"thread_name_prefix": "duty"})},
    )
    timetable = Timetable(deps, scheduler)

    stopping = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        first = not stopping.is_set()
        stopping.set()
        timetable.processor.stop()
        if scheduler.running:
            scheduler.shutdown(wait=False)
        elif first:
            # Not started yet: nothing is claimed. A second signal, during the end, changes nothing.
            raise SystemExit(0)

    # Its warnings of skipped ticks would come twice a second during a long one; they are counted.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if reread is not None:
        signal.signal(signal.SIGHUP, lambda _signal, _frame: _reread(timetable, reread))
    log.info("worker.started", worker=timetable.name)
    watched = threading.Event()
    threading.Thread(target=_watch, args=(timetable, watched), name="clock-watch", daemon=True).start()
    try:
        scheduler.start()
    finally:
        watched.set()
        timetable.processor.wait_idle(deps.settings.lease.total_seconds())
        timetable.close()
        deps.dispose()
        log.info("worker.stopped", worker=timetable.name)


def _reread(timetable: Timetable, reread: Callable[[], Settings]) -> None:
    try:
        timetable.use(reread())
    except SettingsError as error:
        log.warning("settings.kept", faults=error.faults)
    else:
        log.info("settings.read_anew")


def _watch(timetable: Timetable, done: threading.Event) -> None:
    # A thread of its own, on monotonic time: a job of the scheduler would sleep with it.
    while not done.wait(WATCH_SECONDS):
        timetable.watch_clock()
