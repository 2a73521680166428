"""The times of pages: the database's own, since it is the one that due times are compared with."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.db import at
from receiver.web.current import statement_time

RESUME_SPREAD = timedelta(seconds=30)
"""Held rows come back spread over this, so that a resume is no wave."""


def database_time(session: Session) -> datetime:
    """Now, as statements see it."""
    instant: datetime = session.execute(select(at(statement_time()))).scalar_one()
    return instant


def hour_before(now: datetime) -> datetime:
    """The beginning of the last hour."""
    return now - timedelta(hours=1)
