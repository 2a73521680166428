"""The documents say what the code does: settings, reasons, commands and links are compared with it."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from receiver.cli.main import main
from receiver.inbox.reasons import REFUSED, REJECTED
from receiver.settings import Settings, SettingsError

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
    source = "".join(
        (ROOT / "receiver" / name).read_text()
        for name in (
            "settings.py",
            "sources.py",
            "alert_settings.py",
            "retention_settings.py",
        )
    )
    read = set(re.findall(r'"([A-Z][A-Z_]+)"', source)) - {"DEBUG", "INFO", "WARNING", "ERROR"}
    described = set(re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))

    assert described == read


def test_every_reason_is_explained() -> None:
    """Each reason code that an operator may meet has a row in docs/operations.md."""
    explained = set(
        re.findall(r"^\| `([a-z0-9_]+)` \|", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    )

    assert (set(REFUSED) | set(REJECTED)) <= explained


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """A link to a file names a file that is there."""
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    dead = [link for link in links if "://" not in link and not (document.parent / link).exists()]

    assert dead == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_have_their_columns(document: Path) -> None:
    """Each row of a table has as many cells as its head: a bar within a cell is written with a backslash."""
    ragged = []
    for table in re.findall(
        r"(?:^\|.*\n)+", re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL), re.MULTILINE
    ):
        rows = table.splitlines()
        cells = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
        ragged += [row for row, number in zip(rows, cells, strict=True) if number != cells[0]]

    assert ragged == []


def _named_commands(text: str) -> list[str]:
    """The commands in a text: between backticks, and the lines of its code blocks that call receiver."""
    blocks = "\n".join(re.findall(r"```.*?\n(.*?)```", text, re.DOTALL))
    lines = re.findall(r"^\s*(?:\S+=\S+ )*(?:\.venv/bin/)?(receiver [a-z].*)$", blocks, re.MULTILINE)
    rest = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return lines + [" ".join(c.split()) for c in re.findall(r"`(?:\.venv/bin/)?(receiver [a-z][^`]*)`", rest)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_exist(document: Path) -> None:
    """A command that a document names is one that the shell knows, with the options that it is given."""
    unknown = []
    for line in _named_commands(document.read_text()):
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


def test_the_documents_name_commands() -> None:
    """The README's walk is among what the test above looks at."""
    named = _named_commands((ROOT / "README.md").read_text())

    assert {"receiver inbox retry", "receiver trigger demo", "receiver orders correct"} <= {
        " ".join(line.split()[:3]) for line in named
    }


SETTINGS = {
    name: (default, limits)
    for name, default, limits in re.findall(
        r"^\| `([A-Z_]+)` \|([^|]*)\|([^|]*)\|", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE
    )
}
"""Each setting's default and limits as docs/settings.md has them."""

LIMITS = {
    name: (float(found[1]), float(found[2]))
    for name, (_, limits) in SETTINGS.items()
    if (found := re.match(r" ([0-9.]+) to ([0-9.]+)", limits))
}


def _faults(tmp_path: Path, **environ: str) -> str:
    """What the settings say about an environment; the database is given, and no sources file is read."""
    sources = tmp_path / "sources.toml"
    sources.touch()
    try:
        Settings.from_env({"DATABASE_URL": "postgresql:///test", "RECEIVER_SOURCES": str(sources), **environ})
    except SettingsError as error:
        return "; ".join(error.faults)
    return ""


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_limits_are_the_documented_ones(name: str, tmp_path: Path) -> None:
    """A setting takes both its documented limits, and nothing beyond them."""
    low, high = LIMITS[name]
    beyond = [value for value in (low - 1, low * 0.9, high + 1) if value < low or value > high]
    refused = re.compile(rf"\b{name} must be (a whole number|seconds) from ")

    said = {value: _faults(tmp_path, **{name: f"{value:.15g}"}) for value in (low, high, *beyond)}

    assert {value for value, faults in said.items() if refused.search(faults)} == set(beyond)


def test_defaults_are_the_documented_ones(tmp_path: Path) -> None:
    """A setting that is given its documented default changes nothing."""
    given = {
        name: found[1]
        for name, (default, _) in SETTINGS.items()
        if name != "RECEIVER_SOURCES" and (found := re.match(r" `([^`]+)`", default))
    }
    sources = tmp_path / "sources.toml"
    sources.touch()
    environ = {"DATABASE_URL": "postgresql:///test", "RECEIVER_SOURCES": str(sources)}

    assert len(given) >= 15
    assert Settings.from_env({**environ, **given}) == Settings.from_env(environ)


def test_the_table_of_providers_is_complete_and_true() -> None:
    """README's table names every provider that is spoken, and what is always read back."""
    from receiver.providers.registry import names, provider

    section = (ROOT / "README.md").read_text().split("## Providers")[1].split("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    named = {
        name: row for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row[1]) if name != "provider"
    }

    assert set(named) == set(names())
    always = {name for name, row in named.items() if "**always**" in row[4]}
    assert always == {name for name in names() if provider(name).confirm_by_fetch}


def test_the_table_of_providers_says_what_each_can_mean() -> None:
    """Its kinds are those of the description; `mollie_classic` means what its API tells."""
    from receiver.providers.registry import names, provider

    section = (ROOT / "README.md").read_text().split("## Providers")[1].split("\n## ")[0]
    said = {
        name: row.split("|")[3]
        for row in section.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([a-z0-9_]+)`", row.split("|")[1])
    }
    words = {"payment": {"succeeded", "captured"}, "refund": {"refunded", "refund_total"}}
    words["dispute"] = {"dispute_opened", "dispute_lost"}
    untold = {"demo", "lesson", "hmac", "mollie_classic", "midtrans_snapbi"}
    wrong = []
    for name in set(names()) - untold:
        described = {m.kind.value for meanings in provider(name).body.several.values() for m in meanings}
        wrong += [
            f"{name}: {word}"
            for word, kinds in words.items()
            if bool(kinds & described) != (word in said[name])
        ]

    assert wrong == []


def test_each_providers_page_names_the_credentials_of_its_api() -> None:
    """Whoever wants a provider's API to be asked finds what to put into `sources.toml` on its page."""
    from receiver.providers.apis import description, names

    pages = {"mollie_classic": "mollie", "flutterwave_v3": "flutterwave", "demo": "README"}
    missing = []
    for name in names():
        known = description(name)
        assert known is not None
        page = (ROOT / "docs" / "providers" / f"{pages.get(name, name)}.md").read_text()
        missing += [
            f"{name}: {key}" for key in known.needs if f'{key} = "env:' not in page and f"`{key}`" not in page
        ]

    assert missing == []


PARTS = ("At the provider", "Verified", "Not signed", "What its events mean", "Read back", "Answers", "Rotat")


def test_each_providers_page_has_every_part() -> None:
    """Where to click, what is verified, what is not signed, what is read back, answers, rotation."""
    folder = ROOT / "docs" / "providers"
    ours = {"README.md", "demo.md", "lesson.md", "standard.md"}
    missing = [
        f"{page.name}: {part}"
        for page in sorted(folder.glob("*.md"))
        for part in (*PARTS, "In `sources.toml`")
        if page.name not in ours and f"**{part}" not in page.read_text()
    ]

    assert missing == []
