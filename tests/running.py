"""Real processes for tests: the shipped web server and the worker, over a database of the test.

Each is a child in a process group of its own, ended by that group; nothing here sleeps without a
bound.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
import requests

from receiver.embedded import EmbeddedPostgres
from tests.conftest import DEMO_SECRET, LESSON_SECRET, STANDARD_SECRET
from tests.databases import TEMPLATE

ROOT = Path(__file__).parent.parent

BETA_SECRET = "bsec_test_0123456789abcdef"
PREVIOUS_SECRET = "dsec_test_previous_one_0123"

SOURCES = """\
[sources.demo]
provider = "demo"
secrets = ["env:DEMO_SECRET", "env:DEMO_SECRET_PREVIOUS"]

[sources.beta]
provider = "demo"
secrets = ["env:BETA_SECRET"]

[sources.lesson]
provider = "lesson"
secrets = ["env:LESSON_SECRET"]

[sources.strict]
provider = "lesson"
secrets = ["env:LESSON_SECRET"]
timestamp = "required"

[sources.standard]
provider = "standard"
secrets = ["env:STANDARD_SECRET"]

[sources.bare]
provider = "demo"
secrets = ["env:NOBODY_SET_THIS"]
"""

SECRETS = {
    "DEMO_SECRET": DEMO_SECRET,
    "DEMO_SECRET_PREVIOUS": PREVIOUS_SECRET,
    "BETA_SECRET": BETA_SECRET,
    "LESSON_SECRET": LESSON_SECRET,
    "STANDARD_SECRET": STANDARD_SECRET,
}

T = TypeVar("T")


def wait_for(look: Callable[[], T], seconds: float = 15.0, what: str = "") -> T:
    """Look until it is true; the last thing seen is in the failure."""
    ends = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > ends:
            raise AssertionError(f"not within {seconds:g} s: {what or look} (last seen: {seen!r})")
        time.sleep(0.02)


@contextlib.contextmanager
def new_database(server: EmbeddedPostgres) -> Iterator[str]:
    """A migrated database, for fixtures that outlive one test."""
    name = f"test_{uuid4().hex[:12]}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    yield server.url(name)
    with contextlib.suppress(psycopg.Error), psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@dataclass
class Child:
    """One running process and its log."""

    process: subprocess.Popen[bytes]
    log_file: Path

    def log(self) -> str:
        """Everything that it wrote so far, on both channels."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """SIGKILL to the process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def end(self, seconds: float = 15.0) -> int:
        """SIGTERM, and SIGKILL to what is left of its group; returns the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL
        finally:
            self.kill()


@dataclass
class Web(Child):
    """A running web server."""

    host: str
    port: int
    database_url: str

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, for raw sockets."""
        return self.host, self.port

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{self.host}:{self.port}"

    def post(self, source: str, body: bytes, headers: Mapping[str, str], **more: Any) -> requests.Response:
        """Post to a source's door; redirects are not followed, so that one is seen.

        Each post closes its connection: kept ones would delay the end of the server.
        """
        return requests.post(
            f"{self.url}/webhooks/{source}",
            data=body,
            headers={"Connection": "close", **headers},
            timeout=more.pop("timeout", 10),
            allow_redirects=False,
            **more,
        )

    def rows(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Rows of the database, for looking."""
        return rows(self.database_url, statement, parameters)

    def workers(self) -> list[int]:
        """The ids of gunicorn's worker processes."""
        import psutil

        return [child.pid for child in psutil.Process(self.process.pid).children()]


def rows(url: str, statement: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """What a statement gives, as dicts, in a connection of its own."""
    with psycopg.connect(url, autocommit=True, row_factory=psycopg.rows.dict_row) as connection:
        cursor = connection.execute(statement, parameters or {})  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def waiting_on_locks(url: str) -> int:
    """How many statements of the database wait for somebody's lock right now."""
    statement = (
        "SELECT count(*) AS n FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return int(rows(url, statement)[0]["n"])


def free_port() -> int:
    """A port that nobody holds right now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _environment(database_url: str, sources: Path, more: Mapping[str, str] | None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        **SECRETS,
        "DATABASE_URL": database_url,
        "SECRET_KEY": "a-key-for-tests",
        "RECEIVER_SOURCES": str(sources),
        "PYTHONUNBUFFERED": "1",
        **(more or {}),
    }


@contextlib.contextmanager
def run_web(
    database_url: str,
    *,
    arguments: tuple[str, ...] = (),
    sources: str = SOURCES,
    environment: Mapping[str, str] | None = None,
    application: str = "receiver.app:create_app()",
) -> Iterator[Web]:
    """The Procfile's web line as a child, with the shipped settings; yields once it answers."""
    with tempfile.TemporaryDirectory(prefix="receiver-web-") as folder:
        toml, log = Path(folder, "sources.toml"), Path(folder, "log")
        toml.write_text(sources, encoding="utf-8")
        port = free_port()
        line = [
            sys.executable,
            "-m",
            "gunicorn",
            "-c",
            "python:receiver.web.gunicorn",
            *arguments,
            application,
        ]
        env = _environment(
            database_url, toml, {"HOST": "127.0.0.1", "PORT": str(port), **(environment or {})}
        )
        with log.open("wb") as out:
            process = subprocess.Popen(
                line, cwd=ROOT, env=env, stdout=out, stderr=out, start_new_session=True
            )
        web = Web(process, log, "127.0.0.1", port, database_url)
        try:
            wait_for(lambda: _answers(web), 30, "the web server answers")
            yield web
        finally:
            web.end()


def _answers(web: Web) -> bool:
    if web.process.poll() is not None:
        raise AssertionError(f"the web server ended:\n{web.log()[-3000:]}")
    with contextlib.suppress(requests.RequestException):
        return (
            requests.get(f"{web.url}/healthz", headers={"Connection": "close"}, timeout=2).status_code == 200
        )
    return False


@contextlib.contextmanager
def run_worker(
    database_url: str,
    *,
    sources: str = SOURCES,
    environment: Mapping[str, str] | None = None,
    program: tuple[str, ...] = ("worker.py",),
) -> Iterator[Child]:
    """`python worker.py` as a child; yields once it has said that it started."""
    with tempfile.TemporaryDirectory(prefix="receiver-worker-") as folder:
        toml, log = Path(folder, "sources.toml"), Path(folder, "log")
        toml.write_text(sources, encoding="utf-8")
        env = _environment(database_url, toml, {"POLL_SECONDS": "0.1", **(environment or {})})
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *program],
                cwd=ROOT,
                env=env,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        worker = Child(process, log)
        try:
            wait_for(lambda: _started(worker), 30, "the worker started")
            yield worker
        finally:
            worker.end()


def _started(worker: Child) -> bool:
    if worker.process.poll() is not None:
        raise AssertionError(f"the worker ended:\n{worker.log()[-3000:]}")
    return "worker.started" in worker.log()
