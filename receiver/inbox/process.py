"""Process: the inbox's worker in one process, batch after batch until nothing is due.

While more is due than one batch holds, two lanes work at once: the database writes for one while this
process decides for the other. Events of one order may then stand in both; the order's lock tells them
apart, as it does between processes.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

from receiver.deps import Deps
from receiver.inbox.confirm import Confirmer
from receiver.inbox.lane import Lane
from receiver.settings import Settings

LANES = 2
"""Batches in hand at once. Two keep this process and the database busy; more only wait for each other."""

LOST_EVERY = 10
"""Batches between two looks for a row that was lost with a worker, while there is other work."""


class Processor:
    """The inbox's worker in one process: ticks until nothing is due, stops between transactions."""

    def __init__(self, deps: Deps, worker: str) -> None:
        self._deps = deps
        self._stopping = False
        self._running = threading.Lock()
        confirmer = Confirmer(deps)
        self._lanes = [Lane(deps, worker, confirmer, lambda: self._stopping) for _ in range(LANES)]

    def use(self, settings: Settings) -> None:
        """Work by other settings from the next batch on."""
        self._deps = self._deps.with_settings(settings)
        confirmer = Confirmer(self._deps)
        for lane in self._lanes:
            lane.use(self._deps, confirmer)

    def stop(self) -> None:
        """Ask for the end: what was claimed and not started is handed back."""
        self._stopping = True

    def tick(self, limit_seconds: float = 30.0) -> int:
        """Process batch after batch until nothing is due or the time is over; returns the rows worked.

        Raises what a lane raised: the database is away, or a fault of ours.
        """
        ends = time.monotonic() + limit_seconds
        first, *others = self._lanes
        beside: list[Future[int]] = []
        # Leaving the block waits for the other lanes, whatever happened in the first.
        with self._running, ThreadPoolExecutor(len(others), "lane") as threads:
            total = 0
            for turn in count():
                if self._stopping or time.monotonic() >= ends:
                    break
                worked = first.batch()
                if not beside and worked >= self._deps.settings.batch_size:
                    beside = [threads.submit(self._drain, lane, ends) for lane in others]
                if not worked or turn % LOST_EVERY == 0:
                    worked += first.lost_row()
                total += worked
                if not worked:
                    break
        return total + sum(lane.result() for lane in beside)

    def _drain(self, lane: Lane, ends: float) -> int:
        total = 0
        while not self._stopping and time.monotonic() < ends:
            worked = lane.batch()
            total += worked
            if not worked:
                break
        return total

    def wait_idle(self, seconds: float) -> bool:
        """Wait until no tick runs (after `stop`); False when one still does."""
        idle = self._running.acquire(timeout=seconds)
        if idle:
            self._running.release()
        return idle
