"""Pause and resume: a pause holds, it never drops, and nothing held runs out of time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.duties import end_pauses
from receiver.inbox.table import INBOX, LATE_ENDS
from receiver.queue.pauses import list_pauses, pause, resume, resume_due
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


def test_a_great_backlog_is_resumed_whole(session: Session) -> None:
    """Resume has no time limit of its own: a backlog that takes longer than a page's statement comes back."""
    make_event(session)
    hold(session)

    resume(session, INBOX, "demo", now=NOW + timedelta(hours=1))

    assert session.connection().exec_driver_sql("SHOW statement_timeout").scalar_one() == "0"
    session.commit()
    assert session.connection().exec_driver_sql("SHOW statement_timeout").scalar_one() == "30s"
