"""The shell as a whole: help, refusals in one sentence, and which database a command means."""

from __future__ import annotations

from pathlib import Path

import pytest

from receiver.cli import processes
from receiver.cli.home import write_env
from receiver.cli.main import COMMANDS
from receiver.embedded import EmbeddedPostgres
from tests.cli.conftest import Shell, answered


def test_every_command_has_help(shell: Shell) -> None:
    """Each name of the list leads to a command that explains itself."""
    listed = shell("--help").stdout
    for name in COMMANDS:
        assert name in listed
        assert shell(name, "--help").exit_code == 0


@pytest.mark.parametrize("words", [["orders", "list"], ["check"], ["inbox", "failed"], ["users", "list"]])
def test_without_a_database_a_command_says_so(shell: Shell, words: list[str]) -> None:
    """No DATABASE_URL and no home of `receiver up`: one sentence, code 1."""
    result = shell(*words, env={"DATABASE_URL": None})

    assert result.exit_code == 1
    assert "DATABASE_URL is not set" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("words", [["serve"], ["worker"], ["migrate"]])
def test_production_never_falls_back_to_the_trial_database(
    shell: Shell, environ: dict[str, str], words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """serve, worker and migrate without DATABASE_URL refuse, though `receiver up` keeps a database here."""
    ran: list[object] = []
    monkeypatch.setattr(processes, "_become", lambda *line: ran.append(line))
    home = Path(environ["RECEIVER_HOME"])
    home.mkdir()
    kept = {"RECEIVER_UP_DATABASE_URL": environ["DATABASE_URL"], "DATABASE_URL": environ["DATABASE_URL"]}
    write_env(home, kept)

    for missing in (None, ""):
        result = shell(*words, env={"DATABASE_URL": missing})
        assert result.exit_code == 1
        assert "DATABASE_URL is not set" in result.stderr
    assert ran == []
    assert answered(shell("orders", "list", "--json", env={"DATABASE_URL": None})) == []


def test_serve_needs_a_secret_key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SECRET_KEY the web process is not started."""
    ran: list[object] = []
    monkeypatch.setattr(processes, "_become", lambda *line: ran.append(line))

    assert "SECRET_KEY" in shell("serve", env={"SECRET_KEY": None}).stderr
    assert ran == []
    assert shell("serve").exit_code == 0
    assert len(ran) == 1


def test_serve_and_worker_run_the_lines_of_the_procfile() -> None:
    """What the commands run is what the Procfile says."""
    lines = dict(line.split(": ", 1) for line in Path("Procfile").read_text().splitlines())

    assert lines["release"] == "receiver migrate"
    assert lines["web"].replace("'", "").split()[1:] == list(processes.WEB[3:])
    assert lines["worker"].split()[1] == Path(processes.WORKER[1]).name


@pytest.mark.field_case(135)
def test_a_database_that_is_away_is_a_sentence_without_its_password(shell: Shell) -> None:
    """The host is named, the password never."""
    result = shell("orders", "list", env={"DATABASE_URL": "postgresql://ada:s3cr3t-pw@127.0.0.1:1/x"})

    assert result.exit_code == 1
    assert "the database does not answer" in result.stderr
    assert "127.0.0.1" in result.stderr
    assert "s3cr3t-pw" not in result.output


def test_a_database_without_the_schema_names_the_repair(shell: Shell, server: EmbeddedPostgres) -> None:
    """An empty database: the sentence says `receiver migrate`."""
    result = shell("orders", "list", env={"DATABASE_URL": server.url("template1")})

    assert result.exit_code == 1
    assert "receiver migrate" in result.stderr


def test_migrate_brings_the_schema_and_says_where_it_is(shell: Shell) -> None:
    """On a migrated database nothing changes."""
    said = answered(shell("migrate", "--json"))

    assert said["from"] == said["to"]
    assert "already" in shell("migrate").stdout


@pytest.mark.field_case(135)
def test_psql_hides_the_password_from_the_process_list(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The password goes by the environment, and the user's arguments by the command line."""
    ran: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(processes, "_become", lambda line, environ: ran.append((list(line), dict(environ))))

    url = "postgres://ada:s3cr3t@db.example/pay?sslmode=require"
    assert shell("psql", "-c", "SELECT 1", env={"DATABASE_URL": url}).exit_code == 0
    ((program, conninfo, *rest), environ) = ran[0]
    assert program.endswith("psql")
    assert conninfo == "postgresql://ada@db.example/pay?sslmode=require"
    assert rest == ["-c", "SELECT 1"]
    assert environ["PGPASSWORD"] == "s3cr3t"


def test_every_fault_of_the_settings_is_named(shell: Shell) -> None:
    """Several faults come in one go, and no value that may be a secret."""
    result = shell("orders", "list", env={"PORT": "eighty", "LEASE_SECONDS": "-1"})

    assert result.exit_code == 1
    assert "PORT" in result.stderr
    assert "LEASE_SECONDS" in result.stderr
