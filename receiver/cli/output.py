"""How commands speak: tables for people, JSON for programs, one sentence for a refusal."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

Command = TypeVar("Command", bound=Callable[..., Any])

PIPE_WIDTH = 200
"""Columns of a table that goes to a file or a pipe, where no terminal says its width."""


class Refused(click.ClickException):
    """What was asked cannot be done; ends the command with code 1 and a sentence."""

    exit_code = 1


@contextmanager
def refusals(*expected: type[Exception]) -> Iterator[None]:
    """Turn the named exceptions of acts into a sentence and code 1."""
    try:
        yield
    except expected as error:
        raise Refused(sentence(error)) from error


def sentence(error: Exception) -> str:
    """The text of a refusal: its detail where it carries one."""
    detail = getattr(error, "detail", None)
    if isinstance(detail, str) and detail:
        return detail
    return str(error) or type(error).__name__


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def yes_option(command: Command) -> Command:
    """Add ``--yes``."""
    return click.option("--yes", is_flag=True, help="Do not ask for confirmation.")(command)


def reason_option(command: Command) -> Command:
    """Add the reason that the audit row keeps."""
    return click.option("--reason", required=True, help="Why; kept in the audit row.")(command)


def confirm(question: str, yes: bool) -> None:
    """Ask unless ``--yes``; anything but a clear yes ends the command with code 1."""
    if not yes:
        click.confirm(question, abort=True, err=True)


def actor() -> str:
    """Who acts, for audit rows: ``cli:<os user>``."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return f"cli:uid-{os.getuid()}"


def print_json(value: object) -> None:
    """Print plain values, times and ids as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Print a table; cells are texts from outside, so that nothing in them is markup or a control."""
    if not rows:
        click.echo(empty)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console().print(table)


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Print name and value a line."""
    width = max((len(name) for name, _ in facts), default=0)
    for name, value in facts:
        click.echo(f"{name.ljust(width)}  {_cell(value)}")


def console() -> Console:
    """A console on standard output, wide enough where that is no terminal."""
    terminal = Console()
    if terminal.is_terminal:
        return terminal
    return Console(width=PIPE_WIDTH, color_system=None, legacy_windows=False)


def when(at: datetime | None) -> str:
    """A time as people read it: UTC, to the second."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%SZ}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, list | tuple):
        return ", ".join(_cell(each) for each in value)
    text = str(value)
    # A reference from outside may hold terminal controls: show them, never send them.
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"{type(value).__name__} is no plain value")
