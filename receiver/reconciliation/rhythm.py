"""When an order is asked for again: 5 minutes and an hour after it was registered, then daily. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

SECOND = timedelta(hours=1)
DAILY = timedelta(days=1)
SOON = timedelta(minutes=1)
"""After something was posted: has it been applied, and does the provider know still more?"""

WAITING = timedelta(minutes=5)

_BACKOFF = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=3),
    timedelta(hours=6),
)


def next_check(
    result: str,
    *,
    created_at: datetime,
    now: datetime,
    unpaid: bool,
    failures: int,
    longest: timedelta,
    retry_after: timedelta | None = None,
    jitter: float = 0.0,
) -> datetime | None:
    """The next time, or None: asked no more. ``failures`` in a row, this one counted.

    ``unpaid`` orders are asked for until they are older than ``longest``. Questions without an answer have
    a budget of their own and come again sooner, but never before what the API asked for.
    """
    if result == "unavailable":
        wait = _BACKOFF[min(failures, len(_BACKOFF)) - 1]
        return now + max(wait * (1 + 0.2 * jitter), retry_after or wait * 0)
    if result == "posted":
        return now + SOON
    if result == "waiting":
        return now + WAITING
    if not unpaid:
        return None
    due = created_at + SECOND if now < created_at + SECOND else now + DAILY * (1 + 0.05 * jitter)
    return due if due <= created_at + longest else None
