"""`receiver check`: the doctor finds what is wrong, and says what is worth knowing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from receiver.cli.doctor import examine
from receiver.deps import Deps
from receiver.embedded import EmbeddedPostgres
from tests.cli.conftest import Shell
from tests.factories import make_pause, make_worker


def verdicts(deps: Deps, **options: Any) -> dict[str, set[str]]:
    """The verdicts by what they are about."""
    found: dict[str, set[str]] = {}
    for finding in examine(deps, **options):
        found.setdefault(finding.about, set()).add(finding.verdict)
    return found


@pytest.fixture
def worker(deps: Deps) -> None:
    """A worker that was seen just now."""
    with deps.sessions.begin() as session:
        now = session.execute(text("SELECT now()")).scalar_one()
        make_worker(session, last_seen_at=now)


@pytest.mark.usefixtures("worker")
def test_a_sound_installation_has_no_fault(shell: Shell) -> None:
    """Code 0, and every promise's setting stands in the list."""
    result = shell("check")

    assert result.exit_code == 0, result.output
    for setting in ("fsync", "synchronous_commit", "full_page_writes", "read committed", "0 faults"):
        assert setting in result.stdout


def test_no_worker_is_a_fault(shell: Shell, deps: Deps) -> None:
    """Events would be stored and orders would not move: code 1."""
    assert verdicts(deps)["workers"] == {"fault"}
    assert shell("check", "--json").exit_code == 1


@pytest.mark.usefixtures("worker")
def test_a_source_without_a_secret_or_provider_is_a_fault(shell: Shell, environ: dict[str, str]) -> None:
    """The source is named, its variable too, the secret never."""
    sources = Path(environ["RECEIVER_SOURCES"])
    sources.write_text(
        sources.read_text() + '\n[sources.odd]\nprovider = "nobody"\nsecrets = ["env:DEMO_SECRET"]\n'
    )
    result = shell("check", env={"LESSON_SECRET": None})

    assert result.exit_code == 1
    assert "env:LESSON_SECRET is not set" in result.stdout
    assert "'nobody' is not known" in result.stdout
    assert environ["DEMO_SECRET"] not in result.stdout


@pytest.mark.usefixtures("worker")
def test_what_is_not_compared_is_said(make_deps: Any) -> None:
    """An account that is not stated, an optional timestamp, facts that a protocol never carries."""
    texts = [f"{f.about}: {f.text}" for f in examine(make_deps())]

    assert any(t.startswith("source demo: does not state `account`") for t in texts)
    assert any("lesson: its timestamp is optional" in t for t in texts)
    assert any("standard never carries account, live, sequence" in t for t in texts)


def test_a_pause_is_worth_knowing(deps: Deps) -> None:
    """A held source is a note with its reason, not a fault."""
    with deps.sessions.begin() as session:
        make_pause(session, "demo", reason="provider drill")

    assert verdicts(deps)["pause demo"] == {"note"}


@pytest.mark.parametrize(
    ("skew", "verdict"), [(0.0, "ok"), (20.0, "note"), (-20.0, "note"), (120.0, "fault")]
)
def test_a_host_off_the_databases_clock_is_noticed(deps: Deps, skew: float, verdict: str) -> None:
    """A little off is worth knowing; far off refuses sound signatures."""
    assert verdicts(deps, unix=lambda: time.time() + skew)["clock"] == {verdict}


def test_a_setting_that_breaks_the_first_promise_is_a_fault(
    deps: Deps, server: EmbeddedPostgres, database_url: str
) -> None:
    """synchronous_commit off on this database: an acknowledged event could be lost."""
    name = database_url.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")

    assert verdicts(deps)["synchronous_commit"] == {"fault"}


def test_a_schema_that_is_behind_is_a_fault(shell: Shell, server: EmbeddedPostgres) -> None:
    """Nothing was migrated: the repair is named, and nothing else is asked of that schema."""
    result = shell("check", env={"DATABASE_URL": server.url("template1")})

    assert result.exit_code == 1
    assert "run `receiver migrate`" in result.stdout


def test_a_database_that_is_away_is_a_finding(shell: Shell) -> None:
    """The rest is examined all the same."""
    result = shell("check", env={"DATABASE_URL": "postgresql://ada:s3cr3t@127.0.0.1:1/x"})

    assert result.exit_code == 1
    assert "does not answer" in result.stdout
    assert "source lesson" in result.stdout
    assert "s3cr3t" not in result.output


def test_channels_of_alerts_are_looked_at(shell: Shell) -> None:
    """Nobody to tell is a note; a channel that cannot be told over is a fault, without its URL."""
    assert "nobody is told" in shell("check").stdout
    result = shell("check", env={"ALERT_URLS": "env:CHAT_URL env:UNSET", "CHAT_URL": "nosuch://t0ken"})

    assert result.exit_code == 1
    assert "its URL is none that apprise knows" in result.stdout
    assert "the variable UNSET is not set" in result.stdout
    assert "t0ken" not in result.output
