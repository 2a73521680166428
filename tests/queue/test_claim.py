"""Claim: pending, due and not paused rows become this worker's, each once, keys served fairly."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.models import WebhookEvent
from tests.factories import NOW, make_event, make_pause

from .gestures import LEASE, read, take, take_lost


def ago(seconds: float) -> dict[str, object]:
    """Columns of a row that became due some seconds ago."""
    return {"next_attempt_at": NOW - timedelta(seconds=seconds)}


def test_a_claim_takes_a_due_row(session: Session) -> None:
    """A due row becomes in flight: attempts + 1, a claim, a lease, the worker's name, a new version."""
    event = make_event(session)

    taken = take(session)

    row = read(session, event.id)
    assert taken.rows == [event.id]
    assert (row.state, row.attempts, row.claim_id, row.claimed_by) == ("in_flight", 1, taken.id, "w1")
    assert (row.claimed_at, row.claimed_until) == (NOW, NOW + LEASE)
    assert row.row_version == 2


@pytest.mark.parametrize("state", ["in_flight", "processed", "failed", "expired"])
def test_only_pending_rows_are_taken(session: Session, state: str) -> None:
    """A row in any other state is nobody's to claim."""
    make_event(session, state=state)

    assert take(session).rows == []


def test_a_row_is_not_taken_before_its_time(session: Session) -> None:
    """A row is due at `next_attempt_at`, not a moment earlier."""
    event = make_event(session, next_attempt_at=NOW + timedelta(seconds=1))

    assert take(session, now=NOW + timedelta(seconds=0.999)).rows == []
    assert take(session, now=NOW + timedelta(seconds=1)).rows == [event.id]


def test_the_oldest_due_rows_go_first(session: Session) -> None:
    """Within a key the rows due longest are taken first, whatever their ids."""
    events = [make_event(session, **ago(seconds)) for seconds in (1, 30, 20, 10)]

    taken = take(session, batch=2)

    assert set(taken.rows) == {events[1].id, events[2].id}


def test_keys_are_served_fairly(session: Session) -> None:
    """A source with a long backlog leaves the others their share of each batch."""
    for _ in range(40):
        make_event(session, source="busy", **ago(3600))
    quiet = [make_event(session, source="quiet").id for _ in range(3)]

    taken = take(session, batch=10)

    assert set(quiet) <= set(taken.rows)
    assert len(taken.rows) == 8


def test_a_key_without_due_rows_takes_no_share(session: Session) -> None:
    """Sources that only wait leave the whole batch to the one that has work."""
    for source in ("a", "b", "c", "d"):
        make_event(session, source=source, next_attempt_at=NOW + timedelta(minutes=5))
    for _ in range(20):
        make_event(session, source="busy")

    assert len(take(session, batch=20).rows) == 20


def test_more_keys_than_a_batch_holds_are_served_in_turn(session: Session) -> None:
    """With more busy sources than places in a batch, each source comes up within a few claims."""
    for source in range(12):
        for _ in range(30):
            make_event(session, source=f"s{source:02}", payload=None)

    served: Counter[str] = Counter()
    for _ in range(40):
        served.update(read(session, row).source for row in take(session, batch=4).rows)

    assert len(served) == 12


def test_a_paused_key_is_held(session: Session) -> None:
    """A paused source's rows stay pending; the others go on."""
    held, free = make_event(session, source="demo"), make_event(session, source="lesson")
    make_pause(session, "demo")

    assert take(session).rows == [free.id]
    assert read(session, held.id).state == "pending"


def test_a_pause_of_another_queue_holds_nothing(session: Session) -> None:
    """A pause names its queue: one of the deliveries does not hold the inbox."""
    event = make_event(session)
    make_pause(session, "demo", queue="deliveries")

    assert take(session).rows == [event.id]


def test_a_row_once_lost_is_claimed_alone(session: Session) -> None:
    """Rows that a worker vanished with are left out of batches, and then taken one by one."""
    lost = [make_event(session, lost=1, attempts=1, **ago(60 - n)) for n in range(2)]
    fresh = make_event(session)

    assert take(session).rows == [fresh.id]
    assert take_lost(session).rows == [lost[0].id]
    assert take_lost(session).rows == [lost[1].id]
    assert take_lost(session).rows == []


def test_a_lost_row_of_a_paused_key_is_held(session: Session) -> None:
    """A pause holds the rows that were lost too."""
    make_event(session, lost=1, attempts=1)
    make_pause(session)

    assert take_lost(session).rows == []


def test_a_locked_row_is_passed_over(deps: Deps, session: Session) -> None:
    """A row that another transaction holds is skipped, not waited for."""
    first, second = make_event(session, **ago(9)), make_event(session)
    session.commit()
    with deps.sessions() as other:
        other.execute(text("SELECT 1 FROM webhook_events WHERE id = :id FOR UPDATE"), {"id": first.id})

        assert take(session).rows == [second.id]


@pytest.mark.field_case(93)
def test_no_row_is_claimed_twice_and_none_is_left(deps: Deps, session: Session) -> None:
    """1,000 pending rows and eight workers at once: each row is claimed by one of them, none is left."""
    ids = {make_event(session, payload=None).id for _ in range(1000)}
    session.commit()
    claimed: list[list[UUID]] = [[] for _ in range(8)]
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        while True:
            with deps.sessions.begin() as own:
                rows = take(own, batch=7, worker=f"w{number}").rows
            claimed[number] += rows
            # Rows that another worker holds at this moment are passed over: look again until none is left.
            if not rows:
                with deps.sessions() as own:
                    if not own.query(WebhookEvent).filter_by(state="pending").count():
                        return

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)

    every = [row for rows in claimed for row in rows]
    assert len(every) == 1000
    assert set(every) == ids


def test_eight_workers_do_each_row_once(deps: Deps, session: Session) -> None:
    """The attempts of 200 rows claimed by eight workers sum to 200."""
    for _ in range(200):
        make_event(session, payload=None)
    session.commit()

    def work() -> None:
        for _ in range(20):
            with deps.sessions.begin() as own:
                take(own, batch=5)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)

    assert session.scalar(text("SELECT sum(attempts) FROM webhook_events")) == 200
