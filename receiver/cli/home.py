"""RECEIVER_HOME: where `receiver up` keeps its database and secrets, and the environment of commands.

``<home>/env`` holds simple ``KEY=VALUE`` lines (mode 0600). Every command reads it for what its own
environment lacks; what the environment says always wins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from receiver.settings import Settings

CHECKOUT = Path(__file__).resolve().parent.parent.parent
"""The folder of the checkout that this code runs from: `worker.py` and `migrations/` stand there."""

UP_DATABASE_URL = "RECEIVER_UP_DATABASE_URL"
"""Where `receiver up` keeps the URL of its database: never read by serve, worker and migrate."""


def home_of(environ: Mapping[str, str]) -> Path:
    """RECEIVER_HOME, or: of root /var/lib/receiver, of a checkout its `.receiver`, else the user's data."""
    if environ.get("RECEIVER_HOME"):
        return Path(environ["RECEIVER_HOME"]).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/receiver")
    if (CHECKOUT / "pyproject.toml").exists() and os.access(CHECKOUT, os.W_OK):
        return CHECKOUT / ".receiver"
    data = environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "receiver"


def read_env(home: Path) -> dict[str, str]:
    """The lines of ``<home>/env``; empty when there is none or it is not ours to read."""
    try:
        lines = (home / "env").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value for key, _, value in pairs}


def write_env(home: Path, values: Mapping[str, str]) -> None:
    """Replace ``<home>/env`` in one step; nobody else may read it at any time."""
    draft = home / "env.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("# Made by `receiver up`. Secrets of the trial: keep it to yourself.\n")
        file.writelines(f"{key}={value}\n" for key, value in values.items())
    draft.replace(home / "env")


def environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: the process's, completed from the home's ``env``."""
    environ = os.environ if environ is None else environ
    kept = read_env(home_of(environ))
    kept.pop("DATABASE_URL", None)
    return {**kept, **{key: value for key, value in environ.items() if value}}


def production_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Settings of serve, worker and migrate: DATABASE_URL comes from the process's environment alone.

    A lost variable must never let them acknowledge payments into a private database. Raises
    SettingsError.
    """
    return Settings.from_env(environment(environ))


def desk_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Settings of the other commands: without DATABASE_URL the database of `receiver up` is meant.

    Raises SettingsError.
    """
    merged = environment(environ)
    if not merged.get("DATABASE_URL") and merged.get(UP_DATABASE_URL):
        merged["DATABASE_URL"] = merged[UP_DATABASE_URL]
    return Settings.from_env(merged)


def speaking_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Settings of commands that speak HTTP only (trigger): sources and secrets, no database."""
    merged = environment(environ)
    merged["DATABASE_URL"] = merged.get("DATABASE_URL") or merged.get(UP_DATABASE_URL) or "postgresql://"
    return Settings.from_env(merged)
