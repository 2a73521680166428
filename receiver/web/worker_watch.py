"""The web's look at the workers: with none left, somebody has to say so, and no worker can.

Each web process looks by itself, in a thread that begins after the fork; the alert's row lets one of them
tell. Two short queries each time.
"""

from __future__ import annotations

import threading

from receiver.alerts.look import look_for_workers
from receiver.deps import Deps
from receiver.logs import logger

log = logger("alerts")


class WorkerWatch:
    """The look of one process."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look, in this process."""
        self._thread = threading.Thread(target=self._run, name="worker-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closed.set()

    def _run(self) -> None:
        # Processes that start together shall not look together.
        wait = self._deps.settings.alerts.look.total_seconds() * (1 + 0.2 * self._deps.dice.jitter())
        while not self._closed.wait(wait):
            try:
                look_for_workers(self._deps)
            except Exception as error:
                # The database is away, or not migrated yet: probes and logs of others say so.
                log.warning("workers.not_looked_at", error=type(error).__name__)
