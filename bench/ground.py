"""The ground of the benchmarks: one PostgreSQL of our own, databases, web servers, memory, medians."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import psycopg

from receiver.db import make_engine
from receiver.embedded import EmbeddedPostgres
from receiver.schema import upgrade

ROOT = Path(__file__).resolve().parent.parent

SECRET = "dsec_bench_0123456789abcdef0123456789"

SOURCES = '[sources.demo]\nprovider = "demo"\nsecrets = ["env:BENCH_SECRET"]\n'

ENDS_WITHIN_SECONDS = 30


class Ground:
    """One server with its defaults (fsync and synchronous_commit on) in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._postgres = EmbeddedPostgres(folder / "pg")
        self._url = self._postgres.start()
        (folder / "sources.toml").write_text(SOURCES)

    def database(self, name: str, *, migrated: bool = False) -> str:
        """A fresh database; returns its URL."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {name}")
        url = self._postgres.url(name)
        if migrated:
            engine = make_engine(url)
            upgrade(engine)
            engine.dispose()
        return url

    def checkpoint(self) -> None:
        """Write out what earlier rounds left, so that no round pays for another."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")

    def environment(self, url: str, **more: str) -> dict[str, str]:
        """The environment of a process of ours on a database; everything else at its default."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "DATABASE_URL": url,
            "RECEIVER_SOURCES": str(self.folder / "sources.toml"),
            "BENCH_SECRET": SECRET,
            "SECRET_KEY": "bench",
            "COOKIE_SECURE": "0",
            "PYTHONPATH": str(ROOT),
            **more,
        }

    @contextlib.contextmanager
    def process(
        self, name: str, arguments: Sequence[str], environment: dict[str, str]
    ) -> Iterator[psutil.Process]:
        """Run a Python process until the block ends; its output goes to a file, as under systemd."""
        with (self.folder / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=log, stderr=log
            )
            try:
                yield psutil.Process(child.pid)
            finally:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(ENDS_WITHIN_SECONDS)
                except subprocess.TimeoutExpired:
                    child.kill()

    @contextlib.contextmanager
    def web(
        self, name: str, arguments: Sequence[str], environment: dict[str, str]
    ) -> Iterator[tuple[int, psutil.Process]]:
        """Run gunicorn with these arguments on a free port; yields port and master."""
        port = free_port()
        line = ["-m", "gunicorn", *arguments, "--bind", f"127.0.0.1:{port}"]
        with self.process(name, line, environment) as master:
            if not wait_for_port(port, master):
                log = (self.folder / f"{name}.log").read_text()
                raise SystemExit(f"{name} does not answer:\n{log[-3000:]}")
            yield port, master

    def postgres_cpu_seconds(self) -> float:
        """CPU time of the database server so far, ended backends included."""
        postmaster = psutil.Process(self._postgres.pid())
        own = postmaster.cpu_times()
        ended = own.children_user + own.children_system
        return cpu_seconds(postmaster) + ended

    def stop(self) -> None:
        """Stop the server and take the folder away."""
        self._postgres.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def ground() -> Iterator[Ground]:
    """A ground that is gone afterwards."""
    made = Ground(Path(tempfile.mkdtemp(prefix="receiver-bench-")))
    try:
        yield made
    finally:
        made.stop()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for_port(port: int, master: psutil.Process, seconds: float = 60) -> bool:
    """Wait until the server answers, and a moment more for the worker that starts beside the first."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and master.is_running() and master.status() != psutil.STATUS_ZOMBIE:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            if connection.recv(12).startswith(b"HTTP/1.1"):
                _wait_until_idle(master)
                return True
        time.sleep(0.1)
    return False


def _wait_until_idle(master: psutil.Process, seconds: float = 30) -> None:
    # The second worker may still be importing, and would be measured doing so.
    ends = time.monotonic() + seconds
    before = cpu_seconds(master)
    while time.monotonic() < ends:
        time.sleep(1)
        now = cpu_seconds(master)
        if now - before < 0.05:
            return
        before = now


def pss_mib(master: psutil.Process) -> float:
    """Proportional set size of a process and all below it, in MiB."""
    total = 0
    for process in (master, *master.children(recursive=True)):
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def cpu_seconds(master: psutil.Process) -> float:
    """CPU time of a process and all below it."""
    times = [process.cpu_times() for process in (master, *master.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def spread(values: Sequence[float], form: str = ".0f") -> str:
    """Median (least to greatest) of the rounds."""
    if not values:
        return "–"
    middle = f"{statistics.median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}}–{max(values):{form}})"


def ratio(ours: Sequence[float], theirs: Sequence[float], form: str = ".2f") -> str:
    """Ratio of the medians, with the least and greatest ratio of one round."""
    middle = f"{statistics.median(ours) / statistics.median(theirs):{form}}"
    rounds = [a / b for a, b in zip(ours, theirs, strict=True)]
    return middle if len(rounds) == 1 else f"{middle} ({min(rounds):{form}}–{max(rounds):{form}})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def machine() -> str:
    """One line on what the figures were measured with."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "unknown CPU",
    )
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores ({model}), Python {sys.version.split()[0]}, load {load:.1f} at the start"
