"""What is said of an attempt that broke: a reason code, a sentence, and the place in our own code."""

from __future__ import annotations

from psycopg import errors
from sqlalchemy.exc import DBAPIError

from receiver.logs import scrub

_TIMED_OUT = (errors.QueryCanceled,)


def _cause(error: Exception) -> BaseException:
    # SQLAlchemy's own text repeats the statement and its parameters: customers' facts.
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def code_of(error: Exception) -> str:
    """A reason code for a fault of ours: the database's own error name, or the exception's class."""
    cause = _cause(error)
    return "timed_out" if isinstance(cause, _TIMED_OUT) else f"error:{type(cause).__name__}"


def place_of(error: Exception) -> str | None:
    """Where in our own code it broke (``module:function``): one cause breaks at one place."""
    place = None
    trace = error.__traceback__
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith("receiver."):
            place = f"{module.removeprefix('receiver.')}:{trace.tb_frame.f_code.co_name}"
        trace = trace.tb_next
    return place


def told_of(error: Exception) -> str:
    """The fault in words that a row may keep."""
    cause = _cause(error)
    return scrub(f"{type(cause).__name__}: {cause}")
