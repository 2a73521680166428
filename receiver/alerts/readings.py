"""What the verdicts look at: plain values, whoever read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from receiver.inbox.silence import Silence


@dataclass(frozen=True, slots=True)
class SourceReading:
    """One source (or subscription). Counts are bounded; mappings go from reason code to count.

    ``dead`` are unacknowledged dead letters, ``failed_since_success`` those that ended since the last
    success, with the minute of the first in ``failing_since`` (the oldest retrying row counts too).
    ``expiring`` pending rows end by their deadline soon, the first at ``first_expiry``. ``rejected`` and
    ``skewed`` are of the last minutes, ``skew_seconds`` the middle skew of the latter. ``live`` False: a
    sandbox.
    """

    name: str
    dead: Mapping[str, int] = field(default_factory=dict)
    expired: int = 0
    last_success_at: datetime | None = None
    failing_since: datetime | None = None
    failed_since_success: int = 0
    retrying: int = 0
    expiring: int = 0
    first_expiry: datetime | None = None
    silence: Silence | None = None
    rejected: Mapping[str, int] = field(default_factory=dict)
    rejected_since: datetime | None = None
    skewed: int = 0
    skew_seconds: int | None = None
    conflicts: int = 0
    rotate_by: date | None = None
    live: bool | None = None


@dataclass(frozen=True, slots=True)
class WorkersReading:
    """Workers seen within ``stale``; when any was last seen, and when one last ran through its tick."""

    alive: int
    last_seen_at: datetime | None = None
    last_tick_at: datetime | None = None
    stale: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class ChannelReading:
    """A channel with notices that it did not take: how many wait, since when, tries at the first."""

    name: str
    waiting: int
    since: datetime
    attempts: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Readings:
    """Everything, read at ``now``. ``recent_dead`` counts by source what died in the last minutes.

    ``clock_off_seconds`` is how far this host is ahead of the database. ``due_since`` is since when a row
    is due that nobody took.
    """

    now: datetime
    workers: WorkersReading
    sources: tuple[SourceReading, ...] = ()
    recent_dead: Mapping[str, int] = field(default_factory=dict)
    due_since: datetime | None = None
    clock_off_seconds: float = 0.0
    channels: tuple[ChannelReading, ...] = ()
