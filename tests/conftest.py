"""The ground of all tests: one real PostgreSQL a run, databases cloned from a migrated template."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import structlog
from sqlalchemy.orm import Session

from receiver.clock import FixedClock
from receiver.db import make_engine
from receiver.deps import Deps
from receiver.dice import LoadedDice
from receiver.embedded import EmbeddedPostgres
from receiver.schema import upgrade
from receiver.settings import Secret, Settings, Source
from tests.databases import TEMPLATE, Databases

if TYPE_CHECKING:
    from tests.doors import Door
    from tests.running import Web

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
"""Where the clocks of tests stand."""

DEMO_SECRET = "dsec_test_0123456789abcdef"
LESSON_SECRET = "lsec_test_0123456789abcdef"
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--field-cases", action="store_true", help="print which field cases are covered")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """With --field-cases: say which cases from the field the collected tests cover, and run none."""
    if not session.config.option.field_cases or session.testsfailed:
        return None
    covered = {mark.args[0] for item in session.items for mark in item.iter_markers("field_case")}
    cases = json.loads((Path(__file__).parent / "cases" / "field_cases.json").read_text(encoding="utf-8"))
    print("\n".join(["", *_report(cases, covered)]))
    return True


def _report(cases: list[dict[str, Any]], covered: set[int]) -> Iterator[str]:
    for kind in dict.fromkeys(case["kind"] for case in cases):
        numbers = [case["number"] for case in cases if case["kind"] == kind and case["number"] in covered]
        yield f"{kind}: covered {', '.join(map(str, numbers)) or 'none'}"
        for case in cases:
            if case["kind"] == kind and case["number"] not in covered:
                later = f" ({case['later']})" if "later" in case else ""
                yield f"  open {case['number']}: {case['title']}{later}"
    known = {case["number"] for case in cases}
    yield f"covered {len(covered & known)} of {len(known)}"
    if covered - known:
        yield f"marked, but not in the list: {', '.join(map(str, sorted(covered - known)))}"


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    """The server of this run, on a Unix socket in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="receiver-test-"))
    postgres = EmbeddedPostgres(folder / "pg")
    url = postgres.start()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    engine = make_engine(postgres.url(TEMPLATE))
    upgrade(engine)
    engine.dispose()
    yield postgres
    postgres.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def databases(server: EmbeddedPostgres) -> Iterator[Databases]:
    """The databases of this run."""
    databases = Databases(server)
    yield databases
    databases.close()


@pytest.fixture
def database_url(server: EmbeddedPostgres, databases: Databases) -> Iterator[str]:
    """A migrated database of the test's own."""
    name = databases.take()
    yield server.url(name)
    databases.give_back(name)


@pytest.fixture
def clock() -> FixedClock:
    """A clock that stands at NOW until the test moves it."""
    return FixedClock(NOW)


def sources() -> dict[str, Source]:
    """The sources of tests: demo, lesson and standard, each with one secret."""
    return {
        "demo": Source("demo", "demo", (Secret("env:DEMO_SECRET", DEMO_SECRET),)),
        "lesson": Source("lesson", "lesson", (Secret("env:LESSON_SECRET", LESSON_SECRET),)),
        "standard": Source("standard", "standard", (Secret("env:STANDARD_SECRET", STANDARD_SECRET),)),
    }


MakeDeps = Callable[..., Deps]


@pytest.fixture
def make_deps(database_url: str, clock: FixedClock) -> Iterator[MakeDeps]:
    """Build Deps on the test's database; keyword arguments override settings."""
    made: list[Deps] = []

    def make(**overrides: object) -> Deps:
        values: dict[str, object] = {
            "database_url": database_url,
            "sources": sources(),
            "secret_key": "test-secret-key",
            "cookie_secure": False,
            **overrides,
        }
        deps = Deps.build(Settings(**values), clock=clock, dice=LoadedDice(len(made) + 1))  # type: ignore[arg-type]
        made.append(deps)
        return deps

    yield make
    for deps in made:
        deps.dispose()


@pytest.fixture
def deps(make_deps: MakeDeps) -> Deps:
    """Deps of one process on the test's database."""
    return make_deps()


@pytest.fixture
def open_door(make_deps: MakeDeps) -> Iterator[Callable[..., Door]]:
    """Open the intake of one more web process on the test's database; keyword arguments are settings."""
    from tests.doors import Door, door_sources

    opened: list[Door] = []

    def open_one(**settings: object) -> Door:
        opened.append(Door(make_deps(**{"sources": door_sources(), **settings})))
        return opened[-1]

    yield open_one
    for door in opened:
        door.close()


@pytest.fixture
def door(open_door: Callable[..., Door]) -> Door:
    """The intake of one web process, with a clock that stands."""
    return open_door()


@pytest.fixture(scope="module")
def web(server: EmbeddedPostgres) -> Iterator[Web]:
    """The shipped web server as a process, on a database of the module's own."""
    from tests.running import new_database, run_web

    with new_database(server) as url, run_web(url) as running:
        yield running


@pytest.fixture
def session(deps: Deps) -> Iterator[Session]:
    """A session in a transaction that the test may commit."""
    with deps.sessions() as session:
        yield session


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the machine never reach a test."""
    for name in ("DATABASE_URL", "RECEIVER_SOURCES", "RECEIVER_HOME", "SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    os.environ.setdefault("COLUMNS", "120")


@pytest.fixture(autouse=True)
def _plain_logs() -> Iterator[None]:
    """Plain log lines: faults are made on purpose, and a coloured traceback of each takes seconds."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(),
        ],
        # Not standard output: what a command prints there is read by tests.
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    yield
    structlog.reset_defaults()
