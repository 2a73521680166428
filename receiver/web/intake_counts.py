"""What one web process saw at the intake, flushed once a second: results and rejections."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta

from receiver.deps import Deps
from receiver.inbox.minutes import Key, MinuteCount, add_minutes, minute_of
from receiver.inbox.rejections import Rejection, RejectionCounter, write_rejections
from receiver.logs import logger

FLUSH_SECONDS = 1.0

LATEST = timedelta(hours=1)
"""Counts that could not be written for longer count as an hour old: older minutes are summed up already, and
a counter that some processes saw grow and others not would run backward between two scrapes."""


class IntakeCounts:
    """Counts of one process; the flushing thread starts at the first count, so after any fork."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._lock = threading.Lock()
        self._minutes: dict[Key, MinuteCount] = {}
        self._rejections = RejectionCounter()
        self._pid = 0
        self._closed = threading.Event()

    def received(self, source: str, result: str, duration_ms: int | None = None) -> None:
        """Count one stored event: new, duplicate, variant or conflict; from its body's end to its commit."""
        key = (source, minute_of(self._wall()), result)
        with self._lock:
            self._minutes.setdefault(key, MinuteCount()).add(duration_ms)
        self._start()

    def rejected(self, rejection: Rejection) -> None:
        """Count one refused request."""
        self._rejections.add(rejection)
        key = (rejection.source, minute_of(rejection.at), "rejected")
        with self._lock:
            self._minutes.setdefault(key, MinuteCount()).add()
        self._start()

    def flush(self) -> None:
        """Write what was counted; what cannot be written is kept for the next time."""
        with self._lock:
            minutes, self._minutes = self._minutes, {}
        rejections = self._rejections.take()
        if not minutes and not rejections:
            return
        try:
            with self._deps.sessions.begin() as session:
                write_rejections(session, rejections)
                add_minutes(session, _not_too_late(minutes, minute_of(self._wall() - LATEST)))
        except Exception as error:
            logger("intake").warning("intake.counts_kept", error=type(error).__name__)
            self._rejections.put_back(rejections)
            with self._lock:
                for key, counted in minutes.items():
                    self._minutes.setdefault(key, MinuteCount()).add_all(counted)

    def close(self) -> None:
        """Flush for the last time."""
        self._closed.set()
        self.flush()

    def _wall(self) -> datetime:
        return self._deps.clock.wall().astimezone(UTC)

    def _start(self) -> None:
        if self._pid == os.getpid():
            return
        with self._lock:
            if self._pid == os.getpid():
                return
            self._pid = os.getpid()
        threading.Thread(target=self._run, name="intake-counts", daemon=True).start()

    def _run(self) -> None:
        while not self._closed.wait(FLUSH_SECONDS):
            self.flush()


def _not_too_late(minutes: dict[Key, MinuteCount], earliest: datetime) -> dict[Key, MinuteCount]:
    written: dict[Key, MinuteCount] = {}
    for (source, minute, result), counted in minutes.items():
        written.setdefault((source, max(minute, earliest), result), MinuteCount()).add_all(counted)
    return written
