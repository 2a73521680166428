"""Clocks: the database's decides what is due, and no zone, summer time or wrong clock of a host matters."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
import time_machine
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import text

from receiver.clock import Clock
from receiver.deps import Deps
from receiver.inbox.process import Processor
from receiver.timetable import Timetable
from tests.inbox.gestures import event, outcome, register, row, store

TURNS = [
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
]
"""Zones, and the instants at which their summer time begins or ends (one by half an hour)."""


@pytest.fixture
def zoned(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """This process in another zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("zoned", "turn"), TURNS, indirect=["zoned"])
@pytest.mark.usefixtures("zoned")
def test_duties_keep_their_step_when_the_hour_changes(deps: Deps, turn: datetime) -> None:
    """Across the change of an hour each duty runs as often as ever: none twice, none an hour late."""
    with time_machine.travel(turn - timedelta(minutes=5), tick=False):
        timetable = Timetable(deps, BackgroundScheduler(timezone=UTC))
        for job in timetable._scheduler.get_jobs():
            step = job.trigger.interval
            at = datetime.now(UTC)
            fires = []
            while at < turn + timedelta(minutes=5) and len(fires) < 2000:
                at = job.trigger.get_next_fire_time(at, at)
                fires.append(at)
            assert {later - earlier for earlier, later in pairwise(fires)} <= {step}
            assert all(fire.utcoffset() == timedelta(0) for fire in fires)


@pytest.mark.parametrize("off", [timedelta(hours=-30), timedelta(hours=30)], ids=["behind", "ahead"])
def test_a_hosts_wrong_clock_decides_nothing_in_the_database(deps: Deps, off: timedelta) -> None:
    """A worker whose clock is a day off works what the database says is due, and writes its times."""
    real = replace(deps, clock=Clock())
    with real.sessions.begin() as session:
        begun: datetime = session.execute(text("SELECT clock_timestamp()")).scalar_one()
    with time_machine.travel(datetime.now(UTC) + off):
        register(real)
        (due,) = store(real, event("succeeded"), received_at=begun, next_attempt_at=begun,
                       give_up_at=begun + timedelta(hours=72))  # fmt: skip
        (later,) = store(real, event("voided"), next_attempt_at=begun + timedelta(hours=1),
                         give_up_at=begun + timedelta(hours=72))  # fmt: skip
        Processor(real, "w1").tick()

    assert outcome(real, due) == ("processed", "applied", None)
    assert outcome(real, later)[0] == "pending"
    ended = row(real, due).finished_at
    assert ended is not None
    assert begun - timedelta(seconds=1) <= ended <= begun + timedelta(minutes=1)


def test_a_zone_of_the_session_changes_no_instant(deps: Deps) -> None:
    """An instant read in a session of Dhaka's zone is the same instant, and compares with an aware one."""
    (event_id,) = store(deps, event("succeeded"))
    with deps.sessions.begin() as session:
        session.execute(text("SET LOCAL TimeZone = 'Asia/Dhaka'"))
        found: datetime = session.execute(
            text("SELECT received_at FROM webhook_events WHERE id = :id"), {"id": event_id}
        ).scalar_one()
    assert found == row(deps, event_id).received_at
    assert found.astimezone(ZoneInfo("UTC")).utcoffset() == timedelta(0)
