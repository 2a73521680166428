"""The inbox over time: counts, percentiles and levels by step, and the duty that notes the levels."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox.history import SPANS, read_history, two_hours
from receiver.inbox.hours import roll_up_hours
from receiver.inbox.levels import ALL, KEEP, note_levels
from receiver.inbox.minutes import BOUNDS_MS
from receiver.inbox.models import InboxHour, InboxLevel
from tests.factories import NOW, make_event, make_minute, make_pause

AGO = timedelta


def _level(session: Session, minutes: int, source: str = "demo", **columns: int) -> None:
    values = {"waiting": 0, "parked": 0, "held": 0, "dead": 0, **columns}
    session.add(InboxLevel(source=source, minute=NOW - AGO(minutes=minutes), **values))
    session.flush()


@pytest.mark.parametrize("name, steps", [("1h", 60), ("24h", 96)])
def test_a_span_has_its_steps_up_to_now(session: Session, name: str, steps: int) -> None:
    """Every step is there, with or without rows; this minute's row stands in the last one."""
    make_minute(session, result="applied", count=5)
    make_minute(session, result="applied", count=7, minute=NOW - SPANS[name].length)

    found = read_history(session, SPANS[name], now=NOW + AGO(seconds=30))

    assert len(found) == steps
    assert found[-1].counts == {"applied": 5}
    assert sum(step.counts.get("applied", 0) for step in found) == 5
    assert found[0].at == NOW + AGO(minutes=1) - SPANS[name].length


def test_a_week_reads_the_hours_and_the_minutes_that_are_not_summed_up_yet(
    deps: Deps, session: Session, clock: FixedClock
) -> None:
    """The pictures of a week are the same before the hours are summed up, midway, and after."""
    for hours, number in ((0, 1), (1, 2), (2, 4), (3, 8), (30, 16), (7 * 24 - 1, 32), (7 * 24, 64)):
        width = len(BOUNDS_MS) + 1
        buckets = [0, number, *[0] * (width - 2)]
        make_minute(session, result="applied", minute=NOW - AGO(hours=hours), count=number, buckets=buckets)
    session.commit()
    clock.move(AGO(minutes=30))

    before = read_history(session, SPANS["7d"], now=clock.at)
    assert (len(before), before[0].at) == (84, NOW - AGO(hours=7 * 24 - 1))
    assert [step.counts["applied"] for step in before if step.counts] == [32, 16, 8 + 4, 2 + 1]
    session.rollback()
    while roll_up_hours(deps):
        assert read_history(session, SPANS["7d"], now=clock.at) == before
        session.rollback()
    session.execute(text("DELETE FROM inbox_minutes WHERE minute < :until"), {"until": NOW})
    assert read_history(session, SPANS["7d"], now=clock.at) == before


def test_hours_are_summed_up_once_over_and_late_counts_are_added(
    deps: Deps, session: Session, clock: FixedClock
) -> None:
    """An hour is there two minutes after its end, what comes late is added, another run changes nothing."""
    make_minute(session, result="new", minute=NOW - AGO(minutes=1), count=5)
    make_minute(session, result="new", minute=NOW, count=7)
    session.commit()
    clock.move(AGO(minutes=1))
    assert roll_up_hours(deps) == 0
    clock.move(AGO(minutes=1))
    assert roll_up_hours(deps) == 1
    make_minute(session, result="new", minute=NOW - AGO(minutes=2), count=3)
    session.commit()

    assert [roll_up_hours(deps) for _ in range(2)] == [1, 0]
    (hour,) = session.scalars(select(InboxHour))
    assert (hour.hour, hour.count, hour.buckets) == (NOW - AGO(hours=1), 8, None)


def test_a_long_silence_does_not_stop_the_summing_up(deps: Deps, session: Session, clock: FixedClock) -> None:
    """After weeks without an event the next hours are found."""
    for days in (40, 39, 20, 1):
        make_minute(session, result="new", minute=NOW - AGO(days=days), count=days)
    session.commit()
    while roll_up_hours(deps):
        pass

    assert session.scalars(select(InboxHour.count).order_by(InboxHour.hour)).all() == [40, 39, 20, 1]


def test_results_stand_in_their_groups(session: Session) -> None:
    """What changed nothing together, failed and expired together, what was received apart."""
    for result, count in (("repeat", 1), ("stale", 2), ("ignored", 4), ("failed", 8), ("expired", 16)):
        make_minute(session, result=result, count=count)
    make_minute(session, result="new", count=32)
    make_minute(session, result="rejected", count=64, source="lesson")

    step = read_history(session, SPANS["1h"], now=NOW)[-1]

    assert step.counts == {"unchanged": 7, "dead": 24, "received": 32, "rejected": 64}


def test_percentiles_are_of_all_sources_of_a_step(session: Session) -> None:
    """Buckets are added bucket by bucket; results that are not applied say nothing of it."""
    width = len(BOUNDS_MS) + 1
    make_minute(session, result="applied", count=90, buckets=[90, *[0] * (width - 1)])
    make_minute(session, result="applied", count=10, source="lesson", buckets=[0, 0, 10, *[0] * (width - 3)])
    make_minute(session, result="failed", count=99, buckets=[*[0] * (width - 1), 99])

    step = read_history(session, SPANS["1h"], now=NOW)[-1]

    assert step.percentiles == {0.5: 50, 0.95: 250, 0.99: 250}


def test_levels_are_the_highest_of_a_step_over_all_sources(session: Session) -> None:
    """Minutes of a step are compared, of the sums of all sources; no row means that nobody looked."""
    _level(session, 0, ALL, waiting=12, held=2, oldest_seconds=30)
    _level(session, 0, waiting=99, held=99)
    _level(session, 1, ALL, waiting=40, parked=3, oldest_seconds=9)

    found = read_history(session, SPANS["24h"], now=NOW)

    assert (found[-1].waiting, found[-1].parked, found[-1].held) == (40, 3, 2)
    assert found[-1].oldest_seconds == 30
    assert found[-2].waiting is None


def test_the_last_two_hours_are_told_apart(session: Session) -> None:
    """What changed is this hour against the one before."""
    make_minute(session, result="new", count=3, minute=NOW - AGO(minutes=59))
    make_minute(session, result="new", count=5, minute=NOW - AGO(minutes=60))
    make_minute(session, result="new", count=9, minute=NOW - AGO(minutes=120))
    last, before = two_hours(session, now=NOW)
    assert (last.of("received"), before.of("received"), last.of("dead")) == (3, 5, 0)


def test_levels_are_noted_once_a_minute(deps: Deps, clock: FixedClock, session: Session) -> None:
    """Each configured source, empty ones too; a second worker of the minute writes nothing."""
    make_event(session, at=NOW - AGO(seconds=90))
    make_event(session, attempts=2)
    make_event(session, parked_reason="order_unknown")
    make_event(session, source="standard")
    make_event(session, state="failed")
    make_pause(session, "standard")
    session.commit()

    assert (note_levels(deps), note_levels(deps)) == (3, 0)
    clock.move(AGO(minutes=1))
    assert note_levels(deps) == 3

    demo = session.get_one(InboxLevel, ("demo", NOW))
    assert (demo.waiting, demo.parked, demo.held, demo.dead, demo.oldest_seconds) == (2, 1, 0, 1, 90)
    standard = session.get_one(InboxLevel, ("standard", NOW))
    assert (standard.waiting, standard.held, standard.oldest_seconds) == (0, 1, None)
    assert session.get_one(InboxLevel, ("lesson", NOW)).waiting == 0
    together = session.get_one(InboxLevel, (ALL, NOW))
    assert (together.waiting, together.parked, together.held, together.dead) == (2, 1, 1, 1)
    assert together.oldest_seconds == 90


def test_old_levels_are_forgotten(deps: Deps, clock: FixedClock, session: Session) -> None:
    """The table stays as long as the longest picture and some weeks more."""
    note_levels(deps)
    clock.move(KEEP + AGO(minutes=2))
    note_levels(deps)
    assert session.scalar(select(func.count()).select_from(InboxLevel)) == 4
