"""Alembic's environment: one connection, handed in by `receiver migrate` (or by a test).

Plain Alembic rather than Flask-Migrate: the schema is migrated by the release command and by the
tests, neither of which needs a Flask application.
"""

from alembic import context

from receiver.schema import metadata

LOCK_TIMEOUT = "5s"
"""A migration waits this long for a lock, then gives up: it must not queue every write behind it."""

connection = context.config.attributes["connection"]
connection.exec_driver_sql(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
# Committed, so that each migration begins a transaction of its own and may step out of it.
connection.commit()
context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
