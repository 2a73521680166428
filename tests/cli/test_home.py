"""The home of `receiver up`: what is kept in it, and who may read it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from receiver.cli import home as homes
from receiver.cli.home import desk_settings, environment, home_of, read_env, speaking_settings, write_env
from receiver.cli.trial import keep_secrets, keep_sources
from receiver.settings import Settings


def test_the_environment_wins_over_the_home(tmp_path: Path) -> None:
    """A line of `env` counts only for what the process's environment lacks."""
    write_env(tmp_path, {"A": "kept", "B": "kept=with=signs", "DATABASE_URL": "never"})
    merged = environment({"RECEIVER_HOME": str(tmp_path), "A": "given", "C": ""})

    assert merged == {"RECEIVER_HOME": str(tmp_path), "A": "given", "B": "kept=with=signs"}


def test_nobody_else_may_read_the_secrets(tmp_path: Path) -> None:
    """`env` has mode 0600 from its first byte on, also when it is written again."""
    for _ in range(2):
        write_env(tmp_path, {"A": "1"})
        assert stat.S_IMODE((tmp_path / "env").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["env"]


def test_a_second_start_keeps_what_the_first_one_made(tmp_path: Path) -> None:
    """Secrets stay, the count of runs grows, and a user's own sources are left alone."""
    first = keep_secrets({}, tmp_path)
    second = keep_secrets(first, tmp_path)
    keep_sources(tmp_path, "http://127.0.0.1:8000")
    (tmp_path / "sources.toml").write_text("# mine\n")
    keep_sources(tmp_path, "http://127.0.0.1:8000")

    assert {k: v for k, v in first.items() if k != "RECEIVER_UP_RUNS"} == {
        k: v for k, v in second.items() if k != "RECEIVER_UP_RUNS"
    }
    assert (first["RECEIVER_UP_RUNS"], second["RECEIVER_UP_RUNS"]) == ("1", "2")
    assert len({first["RECEIVER_DEMO_SECRET"], first["RECEIVER_LESSON_SECRET"], first["SECRET_KEY"]}) == 3
    assert (tmp_path / "sources.toml").read_text() == "# mine\n"


def test_what_up_writes_can_be_read_as_settings(tmp_path: Path) -> None:
    """The two sources have their secrets, and the desk finds the database of `up`."""
    keep_sources(tmp_path, "http://127.0.0.1:8000")
    kept = keep_secrets({}, tmp_path)
    write_env(tmp_path, {**kept, homes.UP_DATABASE_URL: "postgresql:///receiver?host=/tmp"})
    settings = desk_settings({"RECEIVER_HOME": str(tmp_path)})

    assert settings.database_url == "postgresql:///receiver?host=/tmp"
    assert {name: len(source.secrets) for name, source in settings.sources.items()} == {
        "demo": 1,
        "lesson": 1,
    }


def test_trigger_needs_no_database(tmp_path: Path) -> None:
    """Commands that speak HTTP alone read sources without any DATABASE_URL."""
    assert isinstance(speaking_settings({"RECEIVER_HOME": str(tmp_path)}), Settings)


@pytest.mark.parametrize("content", [b"", b"\n\n# note\nno sign\n=\n", "ключ=значение\n".encode()])
def test_a_strange_env_file_is_read_for_what_it_has(tmp_path: Path, content: bytes) -> None:
    """Lines without a sign are skipped, none of them is an error."""
    (tmp_path / "env").write_bytes(content)

    assert isinstance(read_env(tmp_path), dict)


def test_the_home_depends_on_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RECEIVER_HOME, else root's place, else the checkout's own folder, else the user's data."""
    assert home_of({"RECEIVER_HOME": str(tmp_path)}) == tmp_path
    monkeypatch.setattr(homes.os, "geteuid", lambda: 0)
    assert home_of({}) == Path("/var/lib/receiver")
    monkeypatch.setattr(homes.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(homes, "CHECKOUT", tmp_path)
    assert home_of({"XDG_DATA_HOME": "/data"}) == Path("/data/receiver")
    (tmp_path / "pyproject.toml").touch()
    assert home_of({"XDG_DATA_HOME": "/data"}) == tmp_path / ".receiver"
