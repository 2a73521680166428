"""When a row is tried again: pure arithmetic, no clock and no database."""

from __future__ import annotations

from datetime import timedelta

SCHEDULE = (
    timedelta(seconds=5),
    timedelta(seconds=30),
    timedelta(minutes=2),
    timedelta(minutes=10),
    timedelta(minutes=30),
    timedelta(hours=1),
    timedelta(hours=2),
    timedelta(hours=4),
    timedelta(hours=6),
)
"""Waits after the first, second, … failure; the last one repeats until the row is given up."""

JITTER = 0.2
"""Share by which a wait is spread, so that rows that failed together do not return together."""

GIVE_UP = timedelta(hours=72)
"""How long a row is tried: three days outlast a long weekend without anyone on duty."""

PARK_STEPS = (
    (timedelta(seconds=5), timedelta(seconds=5)),
    (timedelta(seconds=35), timedelta(seconds=30)),
    (timedelta(seconds=155), timedelta(minutes=2)),
)
"""(age of the park below which, wait): 5 s, 30 s, 2 min, then PARK_LAST for ever."""

PARK_LAST = timedelta(minutes=5)

DEFER = timedelta(seconds=5)
"""Wait of a row whose order was locked by somebody else: not its fault, so soon and uncounted."""


def wait_after(attempts: int, jitter: float) -> timedelta:
    """The wait after ``attempts`` finished tries (1 or more); ``jitter`` from -1 to 1.

    >>> wait_after(1, 0.0)
    datetime.timedelta(seconds=5)
    >>> wait_after(99, 1.0) == timedelta(hours=6) * 1.2
    True
    """
    step = SCHEDULE[min(max(attempts, 1), len(SCHEDULE)) - 1]
    return step * (1 + JITTER * jitter)
