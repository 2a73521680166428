"""Pause and resume: a pause holds, it never drops, and nothing held runs out of time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.accounts.models import OperatorAction
from receiver.deps import Deps
from receiver.inbox.duties import end_pauses
from receiver.inbox.table import INBOX, LATE_ENDS
from receiver.queue import pauses
from receiver.queue.pauses import go_on, list_pauses, pause, resume, resume_due
from receiver.queue.reclaim import expire, reclaim
from receiver.queue.settle import hand_back, release
from tests.factories import NOW, make_event, make_pause

from .gestures import LEASE, end, read, take

GIVE_UP = NOW + timedelta(hours=72)
LONG = timedelta(hours=80)


def hold(session: Session, key: str = "demo", **more: object) -> bool:
    """Pause a source now."""
    return pause(session, INBOX, key, by="olga", reason="maintenance", now=NOW, **more)  # type: ignore[arg-type]


def test_the_first_pause_stands(session: Session) -> None:
    """A second pause of the same source changes nothing and says so."""
    assert hold(session) is True
    assert hold(session) is False
    assert [(one.key, one.by, one.paused_at) for one in list_pauses(session)] == [("demo", "olga", NOW)]


def test_resuming_what_was_not_paused_is_told(session: Session) -> None:
    """Resume of a source that was not paused does nothing and answers None."""
    assert resume(session, INBOX, "demo", now=NOW) is None


def test_eighty_hours_of_pause_cost_no_row_its_time(session: Session) -> None:
    """Fresh, retrying, parked and late-come rows held for 80 hours all still have their time after it."""
    fresh = make_event(session)
    retrying = make_event(session, attempts=8, next_attempt_at=NOW + timedelta(hours=4))
    parked = make_event(session, attempts=1, parked_reason="order_unknown")
    nearly = make_event(session, attempts=9, give_up_at=NOW + timedelta(minutes=1))
    hold(session)
    came_later = make_event(session, at=NOW + timedelta(hours=10))
    later = NOW + LONG

    assert take(session, now=later).rows == []
    assert expire(session, INBOX, LATE_ENDS, now=later) == []
    resumed = resume(session, INBOX, "demo", now=later)

    assert resumed is not None
    assert resumed.held == 5
    for event in (fresh, retrying, parked):
        assert read(session, event.id).give_up_at == GIVE_UP + LONG
    assert read(session, nearly.id).give_up_at == NOW + timedelta(minutes=1) + LONG
    assert read(session, came_later.id).give_up_at == later + timedelta(hours=72)
    assert set(take(session, now=later).rows) == {
        fresh.id,
        retrying.id,
        parked.id,
        nearly.id,
        came_later.id,
    }


def test_resume_keeps_waits_that_are_not_over(session: Session) -> None:
    """A row that waits for a later time goes on waiting for it."""
    event = make_event(session, attempts=8, next_attempt_at=NOW + timedelta(hours=4))
    hold(session)

    resume(session, INBOX, "demo", now=NOW + timedelta(hours=1))

    assert read(session, event.id).next_attempt_at == NOW + timedelta(hours=4)


def test_resume_spreads_what_was_held(session: Session) -> None:
    """Due rows come back over the spread by a hash of their id, none before now or after its end."""
    events = [make_event(session, payload=None) for _ in range(60)]
    hold(session)
    later, spread = NOW + timedelta(hours=1), timedelta(minutes=5)

    resume(session, INBOX, "demo", spread=spread, now=later)

    due = sorted(read(session, event.id).next_attempt_at for event in events)
    assert later <= due[0] < later + spread / 4
    assert later + spread * 3 / 4 < due[-1] < later + spread
    assert len(set(due)) > 40


def test_resume_leaves_other_keys_and_ended_rows_alone(session: Session) -> None:
    """Only pending rows of the resumed source get time."""
    other, ended = make_event(session, source="lesson"), make_event(session, state="failed")
    hold(session)

    resume(session, INBOX, "demo", now=NOW + LONG)

    assert read(session, other.id).row_version == read(session, ended.id).row_version == 1


def test_a_row_in_flight_at_the_pause_keeps_its_time(session: Session) -> None:
    """A row claimed before the pause and given back or lost during it gets the pause's length too."""
    back, lost = make_event(session, attempts=3), make_event(session, attempts=3)
    taken = take(session)
    hold(session)
    end(session, taken, hand_back(back.id))
    reclaim(session, INBOX, now=NOW + LEASE + timedelta(seconds=1))

    assert take(session, now=NOW + LONG).rows == []
    resume(session, INBOX, "demo", now=NOW + LONG)

    assert read(session, back.id).give_up_at == GIVE_UP + LONG
    assert read(session, lost.id).give_up_at == GIVE_UP + LONG


def test_a_row_in_flight_at_the_resume_keeps_its_time(session: Session) -> None:
    """A row that is still in flight when a short pause ends is not lost: it goes on with its own deadline."""
    event = make_event(session)
    taken = take(session)
    hold(session)
    resume(session, INBOX, "demo", now=NOW + timedelta(seconds=5))

    end(session, taken, release(event.id, 1, 0.0, "error:Boom", "it broke"), now=NOW + timedelta(seconds=6))

    row = read(session, event.id)
    assert (row.state, row.next_attempt_at) == ("pending", NOW + timedelta(seconds=11))


def test_pauses_with_an_end_resume_by_themselves(deps: Deps, session: Session) -> None:
    """A pause until a time is over at that time, not before; one without an end stays."""
    event = make_event(session)
    hold(session, until=NOW + timedelta(hours=1))
    hold(session, "lesson")

    assert resume_due(session, INBOX, now=NOW + timedelta(minutes=59)) == []
    assert resume_due(session, INBOX, now=NOW + timedelta(hours=1)) == ["demo"]
    assert [one.key for one in list_pauses(session, INBOX)] == ["lesson"]
    assert read(session, event.id).give_up_at == GIVE_UP + timedelta(hours=1)


def test_the_duty_ends_pauses(deps: Deps, session: Session) -> None:
    """The worker's duty resumes what is over, by the clock that it is handed."""
    make_pause(session, until=NOW)
    session.commit()

    assert end_pauses(deps) == 1
    assert list_pauses(session) == []


@pytest.mark.parametrize("zone", ["Asia/Dhaka", "America/New_York", "UTC"])
def test_a_pause_is_as_long_in_every_zone(session: Session, zone: str) -> None:
    """A day with a change of summer time is no longer or shorter for a deadline."""
    session.connection().exec_driver_sql(f"SET LOCAL TIME ZONE '{zone}'")
    event = make_event(session)
    hold(session)

    resume(session, INBOX, "demo", now=NOW + timedelta(days=14))

    assert read(session, event.id).give_up_at == GIVE_UP + timedelta(days=14)


def resumed_in_pieces(session: Session, until: timedelta, between: Callable[[], object]) -> list[int]:
    """Resume by pieces of two rows, a moment apart; the numbers of rows that had their time by then."""
    resumed = resume(session, INBOX, "demo", now=NOW + until)
    numbers = []
    while resumed is not None and not resumed.over:
        numbers.append(resumed.held)
        session.commit()
        between()
        until += timedelta(seconds=1)
        resumed = go_on(session, INBOX, "demo", now=NOW + until)
    assert resumed is not None
    session.commit()
    return [*numbers, resumed.held]


def test_a_great_backlog_is_resumed_in_pieces(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece is larger than told, each row gets its time once, and until then nothing is let go."""
    monkeypatch.setattr(pauses, "PIECE", 2)
    due = [make_event(session, payload=None) for _ in range(5)]
    hour = timedelta(hours=1)
    waiting = [make_event(session, attempts=8, next_attempt_at=NOW + 4 * hour) for _ in range(3)]
    overdue = make_event(
        session, attempts=9, give_up_at=NOW - hour / 2, next_attempt_at=NOW - hour, at=NOW - hour
    )
    hold(session)

    def nothing_goes() -> None:
        later = NOW + timedelta(hours=2)
        assert take(session, now=later).rows == []
        assert expire(session, INBOX, LATE_ENDS, now=later) == []
        session.commit()

    numbers = resumed_in_pieces(session, hour, nothing_goes)

    assert all(b - a <= 2 for a, b in pairwise([0, *numbers]))
    assert numbers[-1] == 9
    for event in (*due, *waiting):
        held = read(session, event.id).give_up_at - GIVE_UP
        assert hour <= held < hour + timedelta(seconds=len(numbers))
        assert read(session, event.id).row_version == 2
    assert {read(session, event.id).next_attempt_at for event in waiting} == {NOW + 4 * hour}
    assert read(session, overdue.id).give_up_at >= NOW + hour / 2
    assert list_pauses(session) == []
    assert set(take(session, now=NOW + 2 * hour).rows) == {overdue.id, *(event.id for event in due)}


def test_what_comes_or_is_woken_during_a_resume_has_its_time(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that arrive between two pieces, and parked ones that are woken then, lose and win nothing."""
    monkeypatch.setattr(pauses, "PIECE", 2)
    hour = timedelta(hours=1)
    parked = make_event(session, attempts=1, parked_reason="order_unknown", next_attempt_at=NOW + 2 * hour)
    for _ in range(4):
        make_event(session, payload=None)
    hold(session)
    came: list[UUID] = []

    def meanwhile() -> None:
        at = NOW + hour + timedelta(seconds=len(came))
        came.append(make_event(session, payload=None, at=at).id)
        read(session, parked.id).next_attempt_at = at
        session.commit()

    resumed_in_pieces(session, hour, meanwhile)

    taken = take(session, now=NOW + 2 * hour).rows
    assert len(taken) == 5 + len(came)
    assert set(came) <= set(taken)
    second = timedelta(seconds=1)
    assert hour <= read(session, parked.id).give_up_at - GIVE_UP < hour + second * 10
    for number, event_id in enumerate(came):
        own = NOW + hour + second * number + timedelta(hours=72)
        assert own <= read(session, event_id).give_up_at < own + second * 10


def test_the_duty_goes_on_with_a_resume(
    deps: Deps, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a page began the worker ends, and the record counts all; a pause meanwhile waits."""
    monkeypatch.setattr(pauses, "PIECE", 2)
    events = [make_event(session, payload=None) for _ in range(7)]
    hold(session)
    deps.clock.move(timedelta(hours=1))  # type: ignore[attr-defined]
    assert resume(session, INBOX, "demo", now=deps.clock.now()) == (2, False)
    assert hold(session) is False
    assert resume(session, INBOX, "demo", now=deps.clock.now()) == (4, False)
    session.commit()

    assert end_pauses(deps) == 1

    assert list_pauses(session) == []
    assert {read(session, event.id).give_up_at for event in events} == {GIVE_UP + timedelta(hours=1)}
    (act,) = session.scalars(select(OperatorAction)).all()
    assert (act.actor, act.action, act.target, act.count) == ("system", "source.resumed", "source:demo", 7)


def test_two_do_not_give_time_at_once(deps: Deps, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one process is at a piece, another leaves it alone and says how far it is."""
    monkeypatch.setattr(pauses, "PIECE", 2)
    for _ in range(5):
        make_event(session, payload=None)
    hold(session)
    resume(session, INBOX, "demo", now=NOW + LONG)
    session.commit()
    go_on(session, INBOX, "demo", now=NOW + LONG)
    with deps.sessions.begin() as other:
        assert go_on(other, INBOX, "demo", now=NOW + LONG) == (2, False)
    session.rollback()
