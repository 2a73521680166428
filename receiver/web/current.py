"""What a page may ask of the running request: the process's Deps, the person, the transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from flask import current_app
from flask_login import current_user
from sqlalchemy.orm import Session

from receiver.deps import Deps


def current_deps() -> Deps:
    """The Deps that the application was made with."""
    deps: Deps = current_app.extensions["receiver"]
    return deps


@contextmanager
def transaction() -> Iterator[Session]:
    """A transaction on the pages' pool, committed at the end of the block."""
    with current_deps().sessions.begin() as session:
        yield session


def statement_time() -> datetime | None:
    """The time for statements: None lets the database say it."""
    return current_deps().clock.now()


def actor() -> str:
    """Whom the record of acts names: the person who is signed in."""
    name: str = current_user.name
    return name
