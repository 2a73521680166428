"""The schema as a whole: the models' metadata, and Alembic over the top-level `migrations/`.

Migrations are plain Alembic: the release command and the tests run them, and neither has a Flask
application. The service is deployed from a checkout, so that `migrations/` stands beside the package.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, text

import receiver.accounts.models
import receiver.alerts.models
import receiver.inbox.models
import receiver.inbox.view
import receiver.orders.models
import receiver.reconciliation.models
import receiver.retention.models  # noqa: F401 (the imports fill the metadata)
from receiver.db import Base

if TYPE_CHECKING:
    from alembic.config import Config

metadata = Base.metadata

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration, with the connection that the environment shall use."""
    # Alembic is loaded by those who migrate: it would cost each web worker 7 MiB.
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the database to a revision; each migration in a transaction of its own."""
    from alembic import command

    with engine.connect() as connection:
        command.upgrade(alembic_config(connection), revision)
        connection.commit()


def downgrade(engine: Engine, revision: str) -> None:
    """Take the database back to a revision."""
    from alembic import command

    with engine.connect() as connection:
        command.downgrade(alembic_config(connection), revision)
        connection.commit()


_REVISION = re.compile(r"^(down_)?revision\b[^=]*=\s*(?:[\"']([^\"']+)[\"']|None)", re.MULTILINE)


@cache
def head_revision() -> str:
    """The newest revision that this code knows, read off the files of `migrations/` themselves."""
    known: set[str] = set()
    followed: set[str] = set()
    for path in (MIGRATIONS / "versions").glob("*.py"):
        for down, revision in _REVISION.findall(path.read_text(encoding="utf-8")):
            (followed if down else known).add(revision)
    heads = known - followed
    if len(heads) != 1:
        raise RuntimeError(f"migrations/ has {len(heads)} newest revisions, not one")
    return heads.pop()


def current_revision(connection: Connection) -> str | None:
    """The revision of a database, or None where nothing was migrated."""
    if connection.execute(text("SELECT to_regclass('alembic_version')")).scalar() is None:
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision
