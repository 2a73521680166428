"""The schema as a whole: the models' metadata, and Alembic over the top-level `migrations/`.

Migrations are plain Alembic: the release command and the tests run them, and neither has a Flask
application. The service is deployed from a checkout, so that `migrations/` stands beside the package.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

import receiver.accounts.models
import receiver.inbox.models
import receiver.inbox.view
import receiver.orders.models
from receiver.db import Base

metadata = Base.metadata

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration, with the connection that the environment shall use."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the database to a revision; each migration in a transaction of its own."""
    with engine.connect() as connection:
        command.upgrade(alembic_config(connection), revision)
        connection.commit()


def downgrade(engine: Engine, revision: str) -> None:
    """Take the database back to a revision."""
    with engine.connect() as connection:
        command.downgrade(alembic_config(connection), revision)
        connection.commit()


def head_revision() -> str:
    """The newest revision that this code knows."""
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    if head is None:
        raise RuntimeError("migrations/ holds no revision")
    return head


def current_revision(connection: Connection) -> str | None:
    """The revision of a database, or None where nothing was migrated."""
    if connection.execute(text("SELECT to_regclass('alembic_version')")).scalar() is None:
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision
