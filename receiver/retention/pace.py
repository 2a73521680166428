"""The pace of retention: it is never urgent, and the intake shares its processors and its database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

REST = 6
"""How long it rests for each second of work."""

LONGEST_SECONDS = 10


@contextmanager
def paced() -> Iterator[None]:
    """Do a piece of work, then rest in proportion to the time that it took; outside of any transaction."""
    started = time.monotonic()
    yield
    time.sleep(min(REST * (time.monotonic() - started), LONGEST_SECONDS))
