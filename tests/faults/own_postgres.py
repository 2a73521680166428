"""A PostgreSQL of a test's own, to be stopped and frozen without harm to other tests."""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg

from receiver.db import make_engine
from receiver.embedded import EmbeddedPostgres
from receiver.schema import upgrade
from tests.running import wait_for


class OwnPostgres:
    """One server with one migrated database, ``url``."""

    def __init__(self, folder: Path) -> None:
        self._server = EmbeddedPostgres(folder / "pg")
        self._server.start()
        with psycopg.connect(self._server.url(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE receiver")
        self.url = self._server.url("receiver")
        engine = make_engine(self.url)
        upgrade(engine)
        engine.dispose()

    def crash(self) -> None:
        """End the server at once, with every connection, and wait until it is gone."""
        postmaster = psutil.Process(self._server.pid())
        self._server.kill()
        with contextlib.suppress(psutil.NoSuchProcess):
            wait_for(lambda: not postmaster.is_running() or postmaster.status() == psutil.STATUS_ZOMBIE, 15)

    def restart(self) -> None:
        """Start again after `crash`."""
        self._server.restart()

    def freeze(self) -> None:
        """Stop every process of the server where it stands: sockets stay open and nothing answers."""
        for process in self._processes():
            process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        for process in self._processes():
            process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it for good."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self.thaw()
        self._server.stop()

    def _processes(self) -> list[psutil.Process]:
        postmaster = psutil.Process(self._server.pid())
        # The postmaster first, so that no child is born behind our back.
        return [postmaster, *postmaster.children(recursive=True)]


@contextlib.contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    """A server for the block."""
    folder = Path(tempfile.mkdtemp(prefix="receiver-fault-"))
    server = OwnPostgres(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
