"""When an alert opens, becomes worse, is told again and ends: pure, one kind and key at a time.

One alert stands open for a kind and key, whatever the order of verdicts; it is told once when it opens,
once a step, once a window after that until a person acknowledges it, and once when it is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from receiver.alerts.verdicts import Verdict


class Turn(StrEnum):
    """What becomes of an alert now. OPENED, WORSE, REMINDER and RECOVERED are told."""

    NOTHING = "nothing"
    BEGUN = "begun"
    OPENED = "opened"
    WORSE = "worse"
    REMINDER = "reminder"
    BACK = "back"
    FADING = "fading"
    RECOVERED = "recovered"
    FORGOTTEN = "forgotten"


TOLD = frozenset({Turn.OPENED, Turn.WORSE, Turn.REMINDER, Turn.RECOVERED})


@dataclass(frozen=True, slots=True)
class Standing:
    """An alert that is not closed. ``opened_at`` None: it has not held for long enough yet.

    ``absent_since`` is since when its verdict is gone, ``noticed_at`` when it last was to be told.
    """

    step: int
    seen_at: datetime
    opened_at: datetime | None = None
    absent_since: datetime | None = None
    noticed_at: datetime | None = None
    acknowledged: bool = False


def turn(
    standing: Standing | None,
    verdict: Verdict | None,
    now: datetime,
    *,
    remind: timedelta,
    recovery: timedelta,
) -> Turn:
    """What to do with how an alert stands and with the verdict of now (None: it does not hold)."""
    if verdict is None:
        return _without(standing, now, recovery)
    if standing is None:
        return Turn.BEGUN if verdict.hold else Turn.OPENED
    if standing.opened_at is None:
        return Turn.OPENED if now - standing.seen_at >= verdict.hold else Turn.NOTHING
    if verdict.step > standing.step:
        return Turn.WORSE
    if not standing.acknowledged and now - (standing.noticed_at or standing.opened_at) >= remind:
        return Turn.REMINDER
    return Turn.NOTHING if standing.absent_since is None else Turn.BACK


def _without(standing: Standing | None, now: datetime, recovery: timedelta) -> Turn:
    if standing is None:
        return Turn.NOTHING
    if standing.opened_at is None:
        return Turn.FORGOTTEN
    if now - (standing.absent_since or now) >= recovery:
        return Turn.RECOVERED
    return Turn.FADING if standing.absent_since is None else Turn.NOTHING
