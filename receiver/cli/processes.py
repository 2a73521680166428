"""serve, worker, migrate, psql: the processes of the Procfile, and the way into the database.

serve, worker and migrate take DATABASE_URL from the process's environment alone, so that a lost
variable never lets them acknowledge payments into a private database.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence

import click
from sqlalchemy.engine import URL

from receiver.cli.home import CHECKOUT, desk_settings, environment, production_settings
from receiver.cli.output import Refused, json_option, print_json
from receiver.db import database_url, make_engine
from receiver.embedded import EmbeddedUnavailable, binaries
from receiver.schema import current_revision, head_revision, upgrade

WEB = (sys.executable, "-m", "gunicorn", "-c", "python:receiver.web.gunicorn", "receiver.app:create_app()")
"""The Procfile's web line."""

WORKER = (sys.executable, str(CHECKOUT / "worker.py"))
"""The Procfile's worker line."""


@click.command()
def serve() -> None:
    """Run the web process: the Procfile's gunicorn line, on HOST and PORT."""
    settings = production_settings()
    if not settings.secret_key:
        raise Refused("SECRET_KEY is not set: give a long random text, the same on every machine")
    _become(WEB, environment())


@click.command()
def worker() -> None:
    """Run the worker: what worker.py runs."""
    production_settings()
    _become(WORKER, environment())


@click.command()
@json_option
def migrate(as_json: bool) -> None:
    """Bring the database's schema up to date."""
    engine = make_engine(production_settings().database_url, application="receiver-migrate")
    try:
        with engine.connect() as connection:
            before = current_revision(connection)
        upgrade(engine)
    finally:
        engine.dispose()
    head = head_revision()
    if as_json:
        print_json({"from": before, "to": head})
    else:
        click.echo(f"the schema is at {head}" + ("" if before != head else " already"))


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql on the database; ARGUMENTS go to psql (such as -c 'SELECT …')."""
    url = database_url(desk_settings().database_url)
    program = shutil.which("psql") or _embedded_psql()
    if program is None:
        raise Refused("there is no psql on this machine: install the PostgreSQL client")
    line, password = _conninfo(url)
    extra = {"PGPASSWORD": password} if password else {}
    _become((program, line, *arguments), {**os.environ, **extra})


def _embedded_psql() -> str | None:
    try:
        return str(binaries() / "psql")
    except EmbeddedUnavailable:
        return None


def _conninfo(url: URL) -> tuple[str, str]:
    """The URL as libpq reads it without its password (others may read a command line), and that."""
    # URL.set() takes None for "leave it as it is".
    plain = URL.create("postgresql", url.username, None, url.host, url.port, url.database, url.query)
    return plain.render_as_string(), url.password or ""


def _become(line: Sequence[str], environ: Mapping[str, str]) -> None:
    # The process itself, not a child: signals and exit codes are then its own.
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(line[0], list(line), dict(environ))  # noqa: S606 (a fixed program, no shell)
