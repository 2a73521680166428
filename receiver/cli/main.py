"""`receiver`: the shell's door. Commands are loaded when they are called, so that help is quick."""

from __future__ import annotations

import importlib
import logging
from typing import Any

import click
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from receiver.cli.output import Refused
from receiver.logs import scrub
from receiver.settings import SettingsError

COMMANDS = {
    "up": ("receiver.cli.up", "Try it out: everything on this machine, one command."),
    "serve": ("receiver.cli.processes", "Run the web process (the Procfile's gunicorn line)."),
    "worker": ("receiver.cli.processes", "Run the worker (what worker.py runs)."),
    "migrate": ("receiver.cli.processes", "Bring the database's schema up to date."),
    "psql": ("receiver.cli.processes", "Open psql on the database."),
    "check": ("receiver.cli.check", "Look for what is wrong: database, settings, sources, workers."),
    "trigger": ("receiver.cli.trigger", "Play a payment provider: send signed events, see their end."),
    "orders": ("receiver.cli.orders", "List, show, register, correct and cancel orders."),
    "reconcile": ("receiver.cli.reconcile", "Ask the providers' APIs; say where both sides differ."),
    "inbox": ("receiver.cli.inbox_release", "See, replay, release and clear events; pause sources."),
    "conflicts": ("receiver.cli.conflicts", "Other facts under a known event id: release or reject them."),
    "rejections": ("receiver.cli.rejections", "What was refused at the door, and why."),
    "alerts": ("receiver.cli.alerts", "What is wrong, how it was told; test the channels."),
    "retention": ("receiver.cli.retention", "The archive of payloads: run, verify, restore, erase."),
    "audit": ("receiver.cli.audit", "Who did what, and why."),
    "users": ("receiver.cli.users", "People who sign in."),
    "tokens": ("receiver.cli.tokens", "Bearer tokens of the API."),
}
"""Name → module and help; the module holds a command of the name."""


class Shell(click.Group):
    """The group of all commands; expected failures become one sentence and code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SettingsError as error:
            raise Refused("; ".join(error.faults)) from error
        except (OperationalError, InterfaceError, PoolTimeout) as error:
            raise Refused(f"the database does not answer: {_cause(error)}") from error
        except ProgrammingError as error:
            if getattr(error.orig, "sqlstate", None) == "42P01":
                raise Refused("the database's schema is not there: run `receiver migrate`") from error
            raise


def _cause(error: Exception) -> str:
    """The driver's first line, without credentials; its later lines repeat it for every address."""
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return scrub(text.strip().partition("\n")[0])


@click.group(cls=Shell, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="receiver")
def main() -> None:
    """A payment-webhook inbox: verify, store once, answer, then move the order by its rules."""
    # Commands speak for themselves; of the libraries only what went wrong is worth a line.
    logging.basicConfig(level=logging.ERROR)
