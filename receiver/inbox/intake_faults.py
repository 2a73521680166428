"""What a failed write of the intake means: the connection, the whole pool, or one request's row."""

from __future__ import annotations

import psycopg
from psycopg import errors
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

FAULTS = (psycopg.Error, DBAPIError, PoolTimeoutError, OSError)
"""What a write may raise for reasons outside this process."""

CLASHES = (errors.SerializationFailure, errors.DeadlockDetected)
"""Two writers met: once more, and it works."""

LOST_STATES = ("08", "57P", "25006")
"""SQLSTATEs of a connection that is good for nothing: lost, shut down, or led to a demoted primary."""


def is_stale(error: Exception) -> bool:
    """Whether the connection was dead, so that a fresh one may do."""
    cause = _cause(error)
    if isinstance(cause, psycopg.Error) and cause.sqlstate is not None:
        return cause.sqlstate.startswith(LOST_STATES)
    return isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError | OSError)


def is_lost(error: Exception) -> bool:
    """Whether the database cannot be reached at all, so that every request of the group is concerned."""
    return is_stale(error) or isinstance(error, PoolTimeoutError)


def is_canceled(error: Exception) -> bool:
    """Whether the statement ran into its time limit."""
    return isinstance(_cause(error), errors.QueryCanceled)


def name_of(error: Exception) -> str:
    """The error's class: its text may hold values of the row."""
    return type(_cause(error)).__name__


def _cause(error: Exception) -> object:
    return error.orig if isinstance(error, DBAPIError) else error
