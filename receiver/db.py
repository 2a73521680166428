"""The database: the declarative base, the two engines and what every connection asks for.

Two engines of one database. ``make_engine`` serves pages, acts and the worker: transactions, read
committed. ``make_intake_engine`` serves the one statement of the intake, in AUTOCOMMIT, so that a
post costs one round trip; it is an engine of its own because autocommit set by hand on a shared
pool leaks into the next session, whose rollback then does nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, DateTime, Engine, MetaData, bindparam, create_engine, event, func
from sqlalchemy.engine import URL, make_url
from sqlalchemy.orm import DeclarativeBase, Session, sessionmaker
from sqlalchemy.sql.elements import ColumnElement

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
"""Names of constraints: the models' and the migrations' schema must be equal to the letter."""

CONNECT_TIMEOUT_SECONDS = 3
"""A database that does not answer in this time is away; with the pool's wait the 503 comes in 5 s."""

POOL_TIMEOUT_SECONDS = 2
"""How long a request waits for a connection of the pool before it gives up."""

Sessions = sessionmaker[Session]

Instant = DateTime(timezone=True)
"""The type of every `…_at` and `…_until` column: timestamptz."""


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMES)


def database_url(text: str) -> URL:
    """The SQLAlchemy URL for psycopg 3 of any common spelling (``postgres://`` included)."""
    url = make_url(text)
    if url.get_backend_name() in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    raise ValueError(f"DATABASE_URL must name a PostgreSQL database, not {url.get_backend_name()!r}")


def at(now: datetime | None) -> ColumnElement[datetime]:
    """The time of a statement: the given one, or the database's own."""
    return func.coalesce(_time_parameter(now), func.now())


def _time_parameter(now: datetime | None) -> BindParameter[datetime]:
    return bindparam(None, now, type_=DateTime(timezone=True))


def _set_up(engine: Engine, statement_timeout_ms: int, lock_timeout_ms: int = 0) -> Engine:
    # Asked for on every connection: a server whose default is serializable would otherwise turn
    # plain races into errors, and a session zone other than UTC would shift what people read.
    settings = (
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; "
        "SET TIME ZONE 'UTC'; "
        f"SET statement_timeout = {statement_timeout_ms}; "
        f"SET lock_timeout = {lock_timeout_ms}; "
        "SET idle_in_transaction_session_timeout = 60000"
    )

    @event.listens_for(engine, "connect")
    def ask(connection: Any, _record: Any) -> None:
        before = connection.autocommit
        connection.autocommit = True
        connection.execute(settings)
        connection.autocommit = before

    return engine


def connect_arguments(application: str) -> dict[str, Any]:
    """What libpq is told: a short connect timeout and keepalives that notice a dead peer."""
    return {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "application_name": application,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
    }


WORKER_LOCK_MS = 5_000
"""How long a duty waits for somebody's lock before it is put off until its next turn."""


def engine_options(*, pool_size: int = 5, application: str = "receiver") -> dict[str, Any]:
    """Options of the engine of pages, acts and the worker (Flask-SQLAlchemy is handed them)."""
    return {
        "pool_size": pool_size,
        "max_overflow": 5,
        "pool_timeout": POOL_TIMEOUT_SECONDS,
        "pool_pre_ping": True,
        # An error's text goes to logs and pages: it must not repeat what a stranger sent.
        "hide_parameters": True,
        "connect_args": connect_arguments(application),
    }


def set_up(engine: Engine) -> Engine:
    """Let every connection of the pages' engine ask for what the acts rely on."""
    return _set_up(engine, statement_timeout_ms=30_000)


def make_engine(url: str, *, pool_size: int = 5, application: str = "receiver") -> Engine:
    """The engine of pages and acts."""
    options = engine_options(pool_size=pool_size, application=application)
    return set_up(create_engine(database_url(url), **options))


def make_worker_engine(url: str) -> Engine:
    """The worker's: a connection for each duty, none of which waits for a lock so long that the others, or
    the worker's end, wait for it.
    """
    options = engine_options(pool_size=12, application="receiver-worker")
    engine = create_engine(database_url(url), **options)
    return _set_up(engine, statement_timeout_ms=30_000, lock_timeout_ms=WORKER_LOCK_MS)


def make_intake_engine(url: str, *, pool_size: int = 4) -> Engine:
    """The engine of the intake's one statement (AUTOCOMMIT, no ping: a dead one is retried)."""
    engine = create_engine(
        database_url(url),
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_TIMEOUT_SECONDS,
        connect_args=connect_arguments("receiver-intake"),
    )
    # A row that somebody holds must not keep the whole group of its statement waiting.
    return _set_up(engine, statement_timeout_ms=4_000, lock_timeout_ms=500)


def make_sessions(engine: Engine) -> Sessions:
    """Sessions whose rows stay readable after commit (pages show what an act returned)."""
    return sessionmaker(engine, expire_on_commit=False)
