"""The migrations make the schema of the models, and every revision goes down and up."""

from __future__ import annotations

import re
import subprocess

import psycopg
from sqlalchemy import inspect

from receiver.db import make_engine
from receiver.embedded import EmbeddedPostgres, binaries
from receiver.schema import alembic_config, current_revision, downgrade, head_revision, metadata, upgrade


def _dump(url: str) -> str:
    text = subprocess.run(
        [binaries() / "pg_dump", "--schema-only", "--no-owner", "--exclude-table=alembic_version", url],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return re.sub(r"^\\(un)?restrict .*$", "", text, flags=re.MULTILINE)


def test_the_migrations_schema_is_the_models(server: EmbeddedPostgres, database_url: str) -> None:
    """pg_dump of the migrated database equals pg_dump of the models, checks and indexes included."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS from_models WITH (FORCE)")
        connection.execute("CREATE DATABASE from_models")
    engine = make_engine(server.url("from_models"))
    metadata.create_all(engine)
    engine.dispose()

    assert _dump(database_url) == _dump(server.url("from_models"))


def test_every_revision_goes_down_and_up(database_url: str) -> None:
    """Down to nothing leaves no table, and up again gives the same schema."""
    before = _dump(database_url)
    engine = make_engine(database_url)

    downgrade(engine, "base")
    assert inspect(engine).get_table_names() == ["alembic_version"]
    upgrade(engine)

    assert before == _dump(database_url)
    with engine.connect() as connection:
        assert current_revision(connection) == head_revision()
    engine.dispose()


def test_the_newest_revision_is_alembics() -> None:
    """What is read off the files is what Alembic itself calls the head."""
    from alembic.script import ScriptDirectory

    assert head_revision() == ScriptDirectory.from_config(alembic_config()).get_current_head()
