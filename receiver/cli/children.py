"""Child processes of `receiver up`: started in groups of their own, started again when they die.

One thread, no callbacks: ``look`` is called again and again and returns what there is to say.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

STOP_SECONDS = 25.0
"""How long a child may take to end in order: gunicorn finishes requests, the worker hands back."""

STEADY_SECONDS = 30.0
"""A child that lived this long starts its back-off anew when it dies."""

BACKOFF_MAX_SECONDS = 30.0
LOG_MAX_BYTES = 10 * 1024 * 1024
PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class Backoff:
    """The pause before the next start: 0, 1, 2, 4 … 30 seconds, anew after a steady life."""

    failures: int = 0

    def after(self, lived_seconds: float) -> float:
        """Count one death and return how long to wait."""
        self.failures = 1 if lived_seconds >= STEADY_SECONDS else self.failures + 1
        return min(float(2 ** (self.failures - 2)), BACKOFF_MAX_SECONDS) if self.failures > 1 else 0.0


@dataclass(slots=True)
class Child:
    """One process that shall always run; its output goes to ``log``."""

    name: str
    line: Sequence[str]
    environ: Mapping[str, str]
    log: Path
    cwd: Path
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    due: float = 0.0
    backoff: Backoff = field(default_factory=Backoff)

    def start(self) -> None:
        """Start it, in a group of its own: a Ctrl-C at the terminal reaches the parent alone."""
        if self.log.exists() and self.log.stat().st_size > LOG_MAX_BYTES:
            self.log.replace(self.log.with_suffix(".log.old"))
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self.process = subprocess.Popen(
                list(self.line),
                env=dict(self.environ),
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
                # No other thread runs here, so that the call between fork and exec is safe.
                preexec_fn=_end_with(os.getpid()),
            )
        finally:
            os.close(descriptor)
        self.started = time.monotonic()

    def look(self) -> str | None:
        """Start it again when it died; returns a sentence when something happened."""
        now = time.monotonic()
        if self.process is None:
            if now < self.due:
                return None
            self.start()
            return f"{self.name} is back (process {self.process.pid if self.process else '?'})"
        code = self.process.poll()
        if code is None:
            return None
        _kill_group(self.process.pid)
        self.process = None
        wait = self.backoff.after(now - self.started)
        self.due = now + wait
        later = f"in {wait:.0f} s" if wait else "now"
        return f"{self.name} ended ({_ended(code)}); starting it again {later}, see {self.log}"

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()

    def wait_stopped(self, deadline: float, hurry: Callable[[], bool]) -> None:
        """Wait for its end until ``deadline`` (monotonic) or until ``hurry()``; then kill its group."""
        if self.process is None:
            return
        while self.process.poll() is None and time.monotonic() < deadline and not hurry():
            time.sleep(0.05)
        # What the leader left behind goes too.
        _kill_group(self.process.pid)
        self.process.wait()
        self.process = None


def stop_all(children: Sequence[Child], hurry: Callable[[], bool]) -> None:
    """Ask all to stop, then wait for each; none is left afterwards."""
    for child in children:
        child.ask_to_stop()
    deadline = time.monotonic() + STOP_SECONDS
    for child in children:
        child.wait_stopped(deadline, hurry)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _ended(code: int) -> str:
    if code >= 0:
        return f"code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _end_with(parent: int) -> Callable[[], None] | None:
    """On Linux: the child gets SIGTERM when the parent is killed, so that nothing is left behind."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def end_with_parent() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return end_with_parent
