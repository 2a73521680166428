"""`receiver up`: everything on this machine, for trying out. Ctrl-C leaves no process behind.

Signals set a flag that is looked at between steps, never an exception: a start of PostgreSQL that was
cut short would leave a server behind.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import click
import psycopg
import requests
from sqlalchemy.exc import OperationalError

from receiver.cli import trial
from receiver.cli.children import Backoff, Child, stop_all
from receiver.cli.home import CHECKOUT, UP_DATABASE_URL, environment, home_of, read_env, write_env
from receiver.cli.output import Refused
from receiver.cli.processes import WEB, WORKER
from receiver.db import make_engine, make_sessions
from receiver.dice import Dice
from receiver.embedded import EmbeddedPostgres, EmbeddedUnavailable
from receiver.schema import upgrade
from receiver.settings import Settings

WEB_START_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.3
DATABASE = "receiver"


@dataclass(slots=True)
class Stop:
    """Set by SIGINT, SIGTERM and SIGHUP; a second one hurries."""

    signals: int = 0

    def listen(self) -> None:
        """Take the signals from now on."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: object) -> None:
        self.signals += 1

    def __bool__(self) -> bool:
        return self.signals > 0

    def hurry(self) -> bool:
        """Whether the user asked twice."""
        return self.signals > 1


@dataclass(slots=True)
class Stack:
    """What runs: the embedded server unless the user has one, and the children."""

    stop: Stop
    postgres: EmbeddedPostgres | None = None
    children: list[Child] = field(default_factory=list)
    backoff: Backoff = field(default_factory=Backoff)
    postgres_started: float = 0.0
    postgres_due: float = 0.0

    def watch(self) -> None:
        """Keep everything running until a signal comes."""
        while not self.stop:
            self._look_at_postgres()
            for child in self.children:
                said = child.look()
                if said:
                    say(said)
            time.sleep(LOOK_EVERY_SECONDS)

    def _look_at_postgres(self) -> None:
        if self.postgres is None or self.postgres.alive() or time.monotonic() < self.postgres_due:
            return
        say("PostgreSQL ended; starting it again")
        try:
            self.postgres.restart()
        except Exception as error:
            wait = self.backoff.after(time.monotonic() - self.postgres_started)
            self.postgres_due = time.monotonic() + wait
            say(f"PostgreSQL did not start ({type(error).__name__}); again in {wait:.0f} s")
            return
        self.postgres_started = time.monotonic()
        say("PostgreSQL is back")

    def end(self) -> None:
        """Stop the children, then the server."""
        stop_all(self.children, self.stop.hurry)
        if self.postgres is not None:
            self.postgres.stop()


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--home", "home_option", type=click.Path(path_type=Path), help="Where to keep everything.")
def up(port: int, home_option: Path | None) -> None:
    """Try it out: PostgreSQL, web, worker and two sources on this machine, until Ctrl-C."""
    default_home = home_of({key: value for key, value in os.environ.items() if key != "RECEIVER_HOME"})
    home = (home_option or home_of(os.environ)).expanduser().absolute()
    os.environ["RECEIVER_HOME"] = str(home)
    home.mkdir(parents=True, exist_ok=True)
    lock = _only_one(home)
    stack = Stack(Stop())
    stack.stop.listen()
    try:
        _start(stack, home, default_home, port)
        stack.watch()
        say("stopping")
    finally:
        stack.end()
        lock.close()


def say(text: str) -> None:
    """Print a line now, also into a pipe."""
    click.echo(text)
    sys.stdout.flush()


def _only_one(home: Path) -> IO[str]:
    lock = (home / "up.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "another process"
        raise Refused(
            f"`receiver up` runs in {home} already ({owner}): stop it first, or give --home"
        ) from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()}")
    lock.flush()
    return lock


def _start(stack: Stack, home: Path, default_home: Path, wanted_port: int) -> None:
    kept = trial.keep_secrets(read_env(home), home)
    host = os.environ.get("HOST") or "127.0.0.1"
    try:
        port = trial.free_port(host, wanted_port)
    except OSError as error:
        raise Refused(f"no port is free on {host} from {wanted_port} on ({error.strerror})") from error
    if wanted_port not in (0, port):
        say(f"port {wanted_port} is busy: taking {port}")
    kept[UP_DATABASE_URL] = os.environ.get("DATABASE_URL") or _embedded(stack, home)
    kept["RECEIVER_URL"] = url = f"http://{_shown(host)}:{port}"
    if stack.stop:
        return
    trial.keep_sources(home, f"http://{_loopback(host)}:{port}")
    write_env(home, kept)
    environ = {**environment(), "RECEIVER_HOME": str(home), "DATABASE_URL": kept[UP_DATABASE_URL]}
    environ |= {"HOST": host, "PORT": str(port), "COOKIE_SECURE": environ.get("COOKIE_SECURE", "0")}
    environ |= {"RECEIVER_DEMO_BOOK": str(home / trial.DEMO_BOOK)}
    settings = Settings.from_env(environ)
    kept["RECEIVER_API_TOKEN"], link = _prepare(settings, kept.get("RECEIVER_API_TOKEN", ""))
    write_env(home, kept)
    for name, line in (("web", WEB), ("worker", WORKER)):
        child = Child(name, line, environ, home / f"{name}.log", CHECKOUT)
        stack.children.append(child)
        child.start()
    if _answers(stack, url):
        _print(kept, url, link, home, default_home)


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 (shown, not bound)
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _loopback(host: str) -> str:
    """Where the worker reaches the demo's API: plain http is for this machine alone."""
    return _shown(host) if host in ("localhost", "::1") else "127.0.0.1"


def _embedded(stack: Stack, home: Path) -> str:
    say(f"starting PostgreSQL in {home / 'pg'}")
    postgres = EmbeddedPostgres(home / "pg")
    try:
        url = postgres.start()
    except EmbeddedUnavailable as error:
        raise Refused(f"{error}, or set DATABASE_URL") from error
    stack.postgres, stack.postgres_started = postgres, time.monotonic()
    with psycopg.connect(url, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
        if known is None:
            connection.execute(f"CREATE DATABASE {DATABASE}")
    return postgres.url(DATABASE)


def _prepare(settings: Settings, api_token: str) -> tuple[str, str | None]:
    """Migrate, and let the admin in; returns the API token and the sign-in token."""
    engine = make_engine(settings.database_url, application="receiver-up")
    try:
        upgrade(engine)
        with make_sessions(engine).begin() as session:
            return trial.let_in(session, Dice(), api_token)
    except OperationalError as error:
        raise Refused(f"the database does not answer: {type(error.orig).__name__}") from error
    finally:
        engine.dispose()


def _answers(stack: Stack, url: str) -> bool:
    """Wait until the web process answers; False when the user stopped us first. Raises Refused."""
    deadline = time.monotonic() + WEB_START_SECONDS
    web = stack.children[0]
    while not stack.stop:
        try:
            requests.get(f"{url}/healthz", timeout=2)
            return True
        except requests.RequestException:
            pass
        ended = web.process is None or web.process.poll() is not None
        if ended or time.monotonic() > deadline:
            last = web.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
            raise Refused(f"the web process did not come up, see {web.log}: {''.join(last)[:300]}")
        time.sleep(0.1)
    return False


def _print(kept: dict[str, str], url: str, link: str | None, home: Path, default_home: Path) -> None:
    run = int(kept["RECEIVER_UP_RUNS"])
    command = trial.register_command(run, home, default_home)
    say("")
    say(f"receiver is up: {url}")
    if link is None:
        say(f"the user {trial.ADMIN} is disabled: sign in at {url}/login")
    else:
        say(f"sign in (once, within the hour): {url}/sign-in/{link}")
    say("")
    say("Send a signed event of the source demo (paste it twice: the same receipt):")
    say(trial.demo_line(url, kept["RECEIVER_DEMO_SECRET"], run))
    say("")
    say("Then register the order that it pays, and see it paid:")
    say(command)
    say("")
    say("Send an event of the source lesson:")
    say(trial.lesson_line(url, kept["RECEIVER_LESSON_SECRET"], run))
    say("")
    say(f"More events: {command.partition(' orders ')[0]} trigger demo payment.succeeded --count 100")
    say(f"Logs and data are in {home}. Ctrl-C stops everything.")
