"""What is worth an alert: readings in, verdicts out. No database, no clock, no Flask.

A verdict holds as long as ``judge`` gives it; that it is told once, and its end once, is for ``turns`` to
decide. Rules over a source serve subscriptions as well: they know a name and counts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any

from receiver.alert_settings import AlertSettings
from receiver.alerts.readings import Readings, SourceReading, WorkersReading

PAGE, WARN = "page", "warn"
"""Levels: what cannot wait until the morning, and what can."""

KINDS = (
    "no_worker",
    "backlog",
    "dead_rate",
    "dead_letters",
    "source_failing",
    "expiring",
    "silence",
    "rejections",
    "clock_skew",
    "conflict",
    "secret_ends",
    "channel_down",
    "drift",
)
"""Every kind of alert. ``drift`` is judged by reconciliation and handed in."""

FAILING_STEPS = (timedelta(hours=1), timedelta(hours=24))
"""How long a source fails before it is told, and told again as worse."""

TICK_STALE = timedelta(minutes=5)
"""A tick drains for half a minute at most; a worker that lives and ticked longer ago hangs."""

SKEWED_POSTS = 5
CHANNEL_TRIES = 3
ROTATE_STEP = timedelta(days=3)

MONEY_BACK = frozenset({"second_payment", "order_cancelled", "refund_exceeds_captured"})
"""Reasons that mean that money was taken and must be given back, or left and was not expected to."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Something is wrong: kind and key name it, a larger step says that it became worse.

    ``since`` is when it began, None: now. It is told once it has held for ``hold``. ``facts`` are counts,
    times and codes for its text, never a payload or a secret.
    """

    kind: str
    key: str = ""
    level: str = WARN
    step: int = 1
    since: datetime | None = None
    hold: timedelta = timedelta(0)
    facts: Mapping[str, Any] = field(default_factory=dict)


def judge(readings: Readings, limits: AlertSettings) -> list[Verdict]:
    """Every verdict that holds, at most one of each kind and key."""
    found = [*judge_workers(readings.workers, readings.now), *_whole(readings, limits)]
    for source in readings.sources:
        found += _source(source, readings.now, limits)
    for channel in readings.channels:
        if channel.attempts >= CHANNEL_TRIES:
            facts = {"waiting": channel.waiting, "attempts": channel.attempts, "error": channel.error}
            found.append(Verdict("channel_down", channel.name, WARN, since=channel.since, facts=facts))
    return found


def judge_workers(workers: WorkersReading, now: datetime) -> Iterator[Verdict]:
    """Nobody works, or those that live stopped ticking. The web process asks this too.

    Workers are replaced at every deployment: none is told once it has held for as long again as a worker may
    be silent.
    """
    if not workers.alive:
        yield Verdict("no_worker", level=PAGE, since=workers.last_seen_at, hold=workers.stale)
    elif workers.last_tick_at is not None and now - workers.last_tick_at > TICK_STALE:
        facts = {"alive": workers.alive}
        yield Verdict("no_worker", level=PAGE, since=workers.last_tick_at, facts=facts)


def _whole(readings: Readings, limits: AlertSettings) -> Iterator[Verdict]:
    if readings.due_since is not None and readings.now - readings.due_since > limits.backlog:
        yield Verdict("backlog", level=PAGE, since=readings.due_since)
    dying = {name: number for name, number in readings.recent_dead.items() if number}
    if len(dying) >= limits.dead_sources and sum(dying.values()) >= limits.dead_count:
        yield Verdict("dead_rate", level=PAGE, facts={"sources": dict(sorted(dying.items()))})
    if abs(readings.clock_off_seconds) > limits.skew.total_seconds():
        yield Verdict("clock_skew", facts={"seconds": round(readings.clock_off_seconds)})


def _source(source: SourceReading, now: datetime, limits: AlertSettings) -> Iterator[Verdict]:
    name = source.name
    if any(source.dead.values()):
        step = 2 if MONEY_BACK & {reason for reason, number in source.dead.items() if number} else 1
        facts = {"reasons": dict(source.dead), "expired": source.expired}
        yield Verdict("dead_letters", name, step=step, facts=facts)
    yield from _failing(source, now, limits)
    if source.expiring:
        facts = {"count": source.expiring, "first": _text(source.first_expiry)}
        yield Verdict("expiring", name, facts=facts)
    if source.silence is not None:
        facts = {"expected": source.silence.expected, "last": _text(source.silence.since)}
        level = WARN if source.live is False else PAGE
        yield Verdict("silence", name, level, since=source.silence.since, facts=facts)
    if sum(source.rejected.values()) >= limits.rejections:
        facts = {"reasons": dict(source.rejected)}
        yield Verdict("rejections", name, since=source.rejected_since, facts=facts)
    if source.skewed >= SKEWED_POSTS:
        facts = {"count": source.skewed, "seconds": source.skew_seconds}
        yield Verdict("clock_skew", name, since=source.rejected_since, facts=facts)
    if source.conflicts:
        yield Verdict("conflict", name, facts={"count": source.conflicts})
    yield from _ending(source, now, limits)


def _failing(source: SourceReading, now: datetime, limits: AlertSettings) -> Iterator[Verdict]:
    """Nothing of the source succeeded since, and several of its rows failed or are tried again."""
    if source.failing_since is None:
        return
    number = source.failed_since_success + source.retrying
    step = sum(now - source.failing_since >= length for length in FAILING_STEPS)
    if step and number >= limits.failing_count:
        facts = {
            "dead": source.failed_since_success,
            "retrying": source.retrying,
            "last_success": _text(source.last_success_at),
        }
        level = PAGE if step > 1 else WARN
        yield Verdict("source_failing", source.name, level, step, source.failing_since, facts=facts)


def _ending(source: SourceReading, now: datetime, limits: AlertSettings) -> Iterator[Verdict]:
    if source.rotate_by is None:
        return
    left = datetime.combine(source.rotate_by, time(), UTC) - now
    if left <= limits.rotate:
        step = 3 if left <= timedelta(0) else 2 if left <= ROTATE_STEP else 1
        level = PAGE if step == 3 else WARN
        facts = {"rotate_by": source.rotate_by.isoformat()}
        yield Verdict("secret_ends", source.name, level, step, facts=facts)


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
