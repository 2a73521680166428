"""Databases of tests: cloned from the migrated template, and cleaned for the next test where that is safe.

A clone costs a good part of a second, a cleaning a few milliseconds. One that a test changed beyond its
rows (tables, settings, statistics, large files) is dropped instead, so that no test sees another's traces.
"""

from __future__ import annotations

import contextlib
from uuid import uuid4

import psycopg

from receiver.embedded import EmbeddedPostgres

TEMPLATE = "receiver_template"

LARGE = 1024 * 1024
"""Bytes of a table's or index's file above which the database is dropped: its plans would differ."""

_SHAPE = """\
SELECT md5(string_agg(line, '\n' ORDER BY line)) FROM (
  SELECT format('%s %s %s', relname, relkind, reloptions) AS line
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
  UNION ALL SELECT format('%s %s %s %s %s', attrelid::regclass, attname, atttypid, attnotnull, attisdropped)
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')
  UNION ALL SELECT format('%s %s', conname, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT format('%s %s', tgname, tgenabled) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT setconfig::text FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
    WHERE datname = current_database()
  UNION ALL SELECT format('%s %s', nspname, nspacl) FROM pg_namespace WHERE nspname !~ '^pg_'
  UNION ALL SELECT format('at %s', version_num) FROM alembic_version
  UNION ALL SELECT format('analysed %s', starelid) FROM pg_statistic WHERE starelid >= 16384
) AS lines"""

_LARGE = """\
SELECT count(*) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i') AND pg_relation_size(oid) > %s"""

_TABLES = """\
SELECT relname FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'alembic_version'
  AND pg_relation_size(oid) > 0"""

_SEQUENCES = """\
SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL"""

_OTHERS = """\
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""


class Databases:
    """The databases of one server: taken by tests, given back clean or dropped."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._free: list[str] = []
        self._admin = psycopg.connect(server.url(), autocommit=True)
        with psycopg.connect(server.url(TEMPLATE), autocommit=True) as connection:
            self._shape = connection.execute(_SHAPE).fetchone()

    def take(self) -> str:
        """The name of a migrated database without rows."""
        if self._free:
            return self._free.pop()
        name = f"test_{uuid4().hex[:12]}"
        self._admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        return name

    def give_back(self, name: str) -> None:
        """Clean the database for the next test, or drop it where more than rows has changed."""
        with contextlib.suppress(psycopg.Error):
            if self._cleaned(name):
                self._free.append(name)
                return
        self._admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def close(self) -> None:
        """End the connection of its own."""
        self._admin.close()

    def _cleaned(self, name: str) -> bool:
        with psycopg.connect(self._server.url(name), autocommit=True) as connection:
            connection.execute(_OTHERS)
            large = connection.execute(_LARGE, (LARGE,)).fetchone()
            if connection.execute(_SHAPE).fetchone() != self._shape or large != (0,):
                return False
            # Foreign keys and guards of append-only tables are for the service, not for the broom.
            connection.execute("SET session_replication_role = replica")
            with connection.transaction():
                for (table,) in connection.execute(_TABLES).fetchall():
                    connection.execute(f"DELETE FROM {table}")
                for (sequence,) in connection.execute(_SEQUENCES).fetchall():
                    connection.execute(f"ALTER SEQUENCE {sequence} RESTART")
        return True
