"""The two times that the service uses: the database's for rows, the host's for signatures.

Statements are written ``coalesce(:now, now())``. Doors and duties pass ``Clock.now()``, which is
None in production, so that the database decides what is due; tests pass a value.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """The clock of a running service."""

    def now(self) -> datetime | None:
        """The time for statements: None lets the database say it."""
        return None

    def unix(self) -> float:
        """Seconds since 1970 on this host, for the window of a signature's timestamp."""
        return time.time()

    def wall(self) -> datetime:
        """This host's time, for texts and ages shown to people."""
        return datetime.now(UTC)


class FixedClock(Clock):
    """A clock that stands still until it is moved; what simulated days are made of."""

    def __init__(self, at: datetime) -> None:
        if at.tzinfo is None:
            raise ValueError("a FixedClock needs an aware datetime")
        self.at = at

    def now(self) -> datetime:
        return self.at

    def unix(self) -> float:
        return self.at.timestamp()

    def wall(self) -> datetime:
        return self.at

    def move(self, by: timedelta) -> datetime:
        """Move the clock and return the new time."""
        self.at += by
        return self.at
