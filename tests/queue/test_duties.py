"""Renew, reclaim, expire: leases and deadlines, on both sides of each instant."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.table import INBOX, LATE_ENDS
from receiver.queue.reclaim import MAX_LOST, expire, reclaim
from receiver.queue.renew import renew
from receiver.queue.settle import park, release
from tests.factories import NOW, make_event, make_pause

from .gestures import LEASE, attempts_of, end, read, take, take_lost

GIVE_UP = NOW + timedelta(hours=72)
SECOND = timedelta(seconds=1)


def test_renew_moves_the_lease_of_own_rows(session: Session) -> None:
    """A claim that goes on moves its own end, and hears which rows are still its own."""
    mine = make_event(session)
    taken = take(session)
    foreign = make_event(session, state="in_flight")
    before = read(session, foreign.id).claimed_until

    kept = renew(session, INBOX, taken.id, [mine.id, foreign.id], lease=LEASE, now=NOW + 30 * SECOND)

    assert kept == {mine.id}
    assert read(session, mine.id).claimed_until == NOW + 30 * SECOND + LEASE
    assert read(session, foreign.id).claimed_until == before


def test_a_lease_is_not_over_before_its_end(session: Session) -> None:
    """A row in flight is left alone until its lease is over."""
    make_event(session)
    take(session)

    assert reclaim(session, INBOX, now=NOW + LEASE) == []


@pytest.mark.field_case(99)
def test_a_lost_row_is_due_again(session: Session) -> None:
    """Lease over: pending, due at once, the attempt counts and stands in the history as lost."""
    event = make_event(session)
    take(session, worker="w9")
    late = NOW + LEASE + SECOND

    ended = reclaim(session, INBOX, now=late)

    row = read(session, event.id)
    assert [(one.row_id, one.state) for one in ended] == [(event.id, "pending")]
    assert (row.state, row.lost, row.attempts, row.next_attempt_at) == ("pending", 1, 1, late)
    assert (row.claim_id, row.claimed_until) == (None, None)
    attempt = attempts_of(session, event.id)[0]
    assert (attempt.attempt, attempt.outcome, attempt.error_code, attempt.worker) == (
        1,
        "lost",
        "worker_lost",
        "w9",
    )
    assert attempt.duration_ms == 61_000


def test_a_lost_row_keeps_what_it_waits_for(session: Session) -> None:
    """A parked row whose look was lost is still parked since then."""
    parked_at = NOW - timedelta(minutes=3)
    event = make_event(session, parked_reason="order_unknown", parked_at=parked_at, attempts=1)
    take(session)

    reclaim(session, INBOX, now=NOW + LEASE + SECOND)

    row = read(session, event.id)
    assert (row.parked_reason, row.parked_at) == ("order_unknown", parked_at)


def test_poison_dies_after_three_lost_workers(session: Session) -> None:
    """A row that took three workers along fails as `worker_lost`, with three attempts in its history."""
    event = make_event(session, parked_reason="order_unknown", attempts=0)
    now = NOW
    take(session, now=now)
    for lost in range(1, MAX_LOST + 1):
        now += LEASE + SECOND
        reclaim(session, INBOX, now=now)
        row = read(session, event.id)
        assert row.lost == lost
        if lost < MAX_LOST:
            assert take(session, now=now).rows == []
            assert take_lost(session, now=now).rows == [event.id]

    assert (row.state, row.outcome, row.reason) == ("failed", "worker_lost", "worker_lost")
    assert (row.finished_at, row.parked_reason) == (now, None)
    assert [one.outcome for one in attempts_of(session, event.id)] == ["lost"] * 3


def test_lost_workers_are_counted_across_other_ends(session: Session) -> None:
    """An attempt that failed in another way in between does not make poison innocent."""
    event = make_event(session, lost=2, attempts=2)
    taken = take_lost(session)
    end(session, taken, release(event.id, 3, 0.0, "error:Boom", "it broke"))
    later = NOW + timedelta(minutes=5)
    take_lost(session, now=later)

    reclaim(session, INBOX, now=later + LEASE + SECOND)

    assert read(session, event.id).reason == "worker_lost"


def test_reclaim_never_waits_for_a_row(deps: Deps, session: Session) -> None:
    """A row in flight that a slow worker holds locked is passed over: its effect may still commit."""
    held, lost = make_event(session), make_event(session)
    take(session)
    session.commit()
    with deps.sessions() as worker:
        worker.execute(text("SELECT 1 FROM webhook_events WHERE id = :id FOR UPDATE"), {"id": held.id})

        ended = reclaim(session, INBOX, now=NOW + LEASE + SECOND)

    assert [one.row_id for one in ended] == [lost.id]


def test_two_sweeps_reclaim_a_row_once(deps: Deps, session: Session) -> None:
    """Two workers that sweep at once count one loss."""
    event = make_event(session)
    take(session)
    session.commit()
    start = threading.Barrier(2)

    def sweep() -> None:
        with deps.sessions.begin() as own:
            own.execute(text("SELECT 1"))
            start.wait()
            reclaim(own, INBOX, now=NOW + LEASE + SECOND)

    sweeps = [threading.Thread(target=sweep) for _ in range(2)]
    for one in sweeps:
        one.start()
    for one in sweeps:
        one.join(30)

    assert read(session, event.id).lost == 1


def test_a_row_past_its_deadline_gets_a_last_look_first(session: Session) -> None:
    """At `give_up_at` the claim looks once more; expire takes only what got no look for a minute."""
    event = make_event(session, attempts=3, next_attempt_at=GIVE_UP)

    assert expire(session, INBOX, LATE_ENDS, now=GIVE_UP + 59 * SECOND) == []
    assert [one.row_id for one in expire(session, INBOX, LATE_ENDS, now=GIVE_UP + 60 * SECOND)] == [event.id]
    row = read(session, event.id)
    assert (row.state, row.outcome) == ("expired", "expired")


@pytest.mark.parametrize(
    ("parked", "state", "outcome", "reason"),
    [
        ("order_unknown", "expired", "order_unknown", "order_unknown"),
        ("transaction_unknown", "processed", "ignored", "not_ours"),
        ("refund_exceeds_captured", "failed", "refund_exceeds_captured", "refund_exceeds_captured"),
    ],
)
def test_expire_ends_a_parked_row_by_what_it_waits_for(
    session: Session, parked: str, state: str, outcome: str, reason: str
) -> None:
    """The duty ends a parked row as its last look would."""
    event = make_event(
        session, attempts=1, next_attempt_at=GIVE_UP, parked_reason=parked, last_error_code=parked
    )

    expire(session, INBOX, LATE_ENDS, now=GIVE_UP + timedelta(hours=1))

    row = read(session, event.id)
    assert (row.state, row.outcome, row.reason) == (state, outcome, reason)
    assert row.parked_reason is None
    assert (row.last_error_code is None) == (state == "processed")


def test_a_row_never_tried_does_not_expire(session: Session) -> None:
    """An event that no worker ever looked at is worked late rather than given up unseen."""
    event = make_event(session, attempts=0, next_attempt_at=NOW)

    assert expire(session, INBOX, LATE_ENDS, now=GIVE_UP + timedelta(days=9)) == []
    assert take(session, now=GIVE_UP + timedelta(days=9)).rows == [event.id]


def test_a_held_row_does_not_expire(session: Session) -> None:
    """A pause holds: nothing of a paused source expires, however long it lasts."""
    make_event(session, attempts=3, next_attempt_at=GIVE_UP)
    make_pause(session)

    assert expire(session, INBOX, LATE_ENDS, now=GIVE_UP + timedelta(days=30)) == []


def test_duties_work_in_bounded_steps(session: Session) -> None:
    """Reclaim and expire take a batch at a time, so that a great crash is no great transaction."""
    for _ in range(5):
        make_event(session, state="in_flight")
        make_event(session, attempts=1, next_attempt_at=GIVE_UP)

    assert len(reclaim(session, INBOX, batch=2, now=GIVE_UP)) == 2
    assert len(expire(session, INBOX, LATE_ENDS, batch=3, now=GIVE_UP + timedelta(hours=1))) == 3


def test_the_schedule_runs_to_its_deadline(session: Session) -> None:
    """A row that always fails is tried through the whole schedule and ends expired at 72 hours exactly."""
    event = make_event(session)
    now, tries = NOW, 0
    while True:
        taken = take(session, now=now)
        assert taken.rows == [event.id]
        tries += 1
        row = read(session, event.id)
        end(session, taken, release(event.id, row.attempts, 0.0, "error:Boom", "it broke"), now=now)
        row = read(session, event.id)
        if row.state != "pending":
            break
        assert row.next_attempt_at <= row.give_up_at
        now = row.next_attempt_at

    assert (row.state, row.finished_at) == ("expired", GIVE_UP)
    assert row.attempts == tries == len(attempts_of(session, event.id))
    assert 15 <= tries <= 25


def test_a_parked_row_waits_to_its_deadline(session: Session) -> None:
    """A row whose order never comes is looked at every five minutes for three days, then ends expired."""
    event = make_event(session, give_up_at=NOW + timedelta(hours=2))
    now, looks = NOW, 0
    while read(session, event.id).state == "pending":
        taken = take(session, now=now)
        looks += 1
        end(session, taken, park(event.id, "order_unknown", "no order", again=looks > 1), now=now)
        now = read(session, event.id).next_attempt_at

    row = read(session, event.id)
    assert (row.state, row.reason, row.finished_at) == ("expired", "order_unknown", NOW + timedelta(hours=2))
    assert 25 <= looks <= 28
    assert [one.outcome for one in attempts_of(session, event.id)] == ["parked", "expired"]
