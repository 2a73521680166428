"""The shell in this process: `receiver …` on the test's database."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from receiver.cli.main import main
from tests.conftest import DEMO_SECRET, LESSON_SECRET

SOURCES = """\
[sources.demo]
provider = "demo"
secrets = ["env:DEMO_SECRET"]

[sources.lesson]
provider = "lesson"
secrets = ["env:LESSON_SECRET"]
"""

Shell = Callable[..., Result]


@pytest.fixture
def environ(tmp_path: Path, database_url: str) -> dict[str, str]:
    """The environment of a desk: a database, two sources, an empty home."""
    path = tmp_path / "sources.toml"
    path.write_text(SOURCES, encoding="utf-8")
    return {
        "DATABASE_URL": database_url,
        "RECEIVER_SOURCES": str(path),
        "RECEIVER_HOME": str(tmp_path / "home"),
        "SECRET_KEY": "a test's secret key, thirty-two long",
        "DEMO_SECRET": DEMO_SECRET,
        "LESSON_SECRET": LESSON_SECRET,
    }


@pytest.fixture
def shell(environ: dict[str, str]) -> Shell:
    """Run one command; keyword ``env`` adds to its environment, None takes a variable away."""

    def run(*words: str, env: dict[str, str | None] | None = None, **options: Any) -> Result:
        return CliRunner().invoke(main, list(words), env={**environ, **(env or {})}, **options)

    return run


def answered(result: Result) -> Any:
    """The JSON of a command that went well."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
