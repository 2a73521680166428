"""The floor plan holds: a room knows only the floors below it, and nothing stands outside the plan."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TOP_LEVEL = {
    "pyproject.toml", "receiver", "migrations", "worker.py", "tests", "Procfile", "README.md",
    "constraints.txt", "CHANGELOG.md", "LICENSE", "SECURITY.md", "docs", "bench", "deploy",
    "sources.example.toml",
}  # fmt: skip

REFUSED_NAMES = re.compile(r"(^|_)(utils?|helpers?|common|base|managers?|services?|handlers?|core|misc)(_|$)")


def _tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    return listing.stdout.splitlines()


def test_a_room_knows_only_the_floors_below_it() -> None:
    """import-linter finds no import that goes up, and no room outside the contract."""
    checked = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_nothing_stands_at_the_top_but_the_plan() -> None:
    """The top level holds what the plan names, and dot files."""
    tops = {path.split("/", 1)[0] for path in _tracked()}

    assert {top for top in tops if not top.startswith(".")} <= TOP_LEVEL


def test_no_file_or_folder_has_a_name_that_says_nothing() -> None:
    """No file or folder is called utils, helpers, common, base, manager, service, handler, core or misc."""
    parts = {
        Path(part).stem for path in _tracked() if path.startswith("receiver/") for part in path.split("/")
    }

    assert [part for part in sorted(parts) if REFUSED_NAMES.search(part)] == []


def test_no_text_promises_what_nobody_can_hold() -> None:
    """No file promises delivery or processing that happens a single time and no more."""
    forbidden = "exactly" + " once"
    guilty = [
        path
        for path in _tracked()
        if path.endswith((".py", ".md", ".html", ".toml"))
        and forbidden in (ROOT / path).read_text("utf-8").lower()
    ]

    assert guilty == []
