"""Settle: the arrows out of in flight, each guarded by the claim that owns the row."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.table import INBOX, LATE_ENDS
from receiver.queue.claim import claim
from receiver.queue.reclaim import reclaim
from receiver.queue.settle import Settlement, defer, fail, finish, hand_back, park, release
from tests.factories import NOW, make_event, make_order

from .gestures import LEASE, Taken, attempts_of, end, read, take, take_lost

GIVE_UP = NOW + timedelta(hours=72)


def claimed(session: Session, **columns: object) -> tuple[Taken, object]:
    """One row in flight under a claim, and its id."""
    event = make_event(session, **columns)  # type: ignore[arg-type]
    taken = take(session, now=max(NOW, event.next_attempt_at))
    assert taken.rows == [event.id]
    return taken, event.id


def test_finish(session: Session) -> None:
    """In flight → processed, with outcome, reason, time and one attempt row; no claim is left."""
    taken, row_id = claimed(session)

    settled = end(
        session, taken, finish(INBOX, row_id, "ignored", "not_ours"), now=NOW + timedelta(seconds=1)
    )

    row = read(session, row_id)
    assert [tuple(one) for one in settled] == [(row_id, "processed", "not_ours")]
    assert (row.state, row.outcome, row.reason) == ("processed", "ignored", "not_ours")
    assert row.finished_at == NOW + timedelta(seconds=1)
    assert (row.claim_id, row.claimed_until, row.claimed_at) == (None, None, None)
    assert [(one.attempt, one.outcome) for one in attempts_of(session, row_id)] == [(1, "ignored")]


def test_finish_clears_the_last_error(session: Session) -> None:
    """What went wrong before a good end stands in the attempts, no longer on the row."""
    taken, row_id = claimed(session)
    end(session, taken, release(row_id, 1, 0.0, "error:Boom", "it broke"))
    later = NOW + timedelta(seconds=5)
    taken = take(session, now=later)

    end(session, taken, finish(INBOX, row_id, "applied"), now=later)

    row = read(session, row_id)
    assert (row.attempts, row.last_error_code, row.last_error) == (2, None, None)
    assert [one.outcome for one in attempts_of(session, row_id)] == ["retry", "applied"]


def test_fail(session: Session) -> None:
    """In flight → failed: the reason is outcome and code, the sentence is kept."""
    taken, row_id = claimed(session)

    end(session, taken, fail(row_id, "amount", "order 25.00 EUR, event 26.00 EUR"))

    row = read(session, row_id)
    assert (row.state, row.outcome, row.reason) == ("failed", "amount", "amount")
    assert (row.last_error_code, row.last_error) == ("amount", "order 25.00 EUR, event 26.00 EUR")
    assert row.finished_at == NOW
    assert [(one.outcome, one.error_code) for one in attempts_of(session, row_id)] == [("failed", "amount")]


def test_release(session: Session) -> None:
    """In flight → pending by backoff: the attempt counts and is written, the error is shown."""
    taken, row_id = claimed(session)

    end(session, taken, release(row_id, 1, 0.5, "error:Boom", "it broke"))

    row = read(session, row_id)
    assert (row.state, row.attempts, row.outcome, row.reason) == ("pending", 1, None, None)
    assert row.next_attempt_at == NOW + timedelta(seconds=5.5)
    assert (row.last_error_code, row.last_error) == ("error:Boom", "it broke")
    assert [(one.outcome, one.error) for one in attempts_of(session, row_id)] == [("retry", "it broke")]


def test_a_release_never_waits_beyond_the_deadline(session: Session) -> None:
    """The next attempt is at the latest at `give_up_at`, so that there is a last look at the deadline."""
    taken, row_id = claimed(session, next_attempt_at=GIVE_UP - timedelta(seconds=1))

    end(session, taken, release(row_id, 9, 1.0, "error:Boom", "it broke"), now=GIVE_UP - timedelta(seconds=1))

    assert read(session, row_id).next_attempt_at == GIVE_UP


def test_a_release_past_the_deadline_expires(session: Session) -> None:
    """The last look failed: expired, with the error's code as outcome and a last attempt that says so."""
    taken, row_id = claimed(session, next_attempt_at=GIVE_UP)

    end(session, taken, release(row_id, 9, 0.0, "error:Boom", "it broke"), now=GIVE_UP)

    row = read(session, row_id)
    assert (row.state, row.outcome, row.reason) == ("expired", "error:Boom", "error:Boom")
    assert row.finished_at == GIVE_UP
    assert [one.outcome for one in attempts_of(session, row_id)] == ["expired"]


def test_a_park_looks_again_ever_more_slowly(session: Session) -> None:
    """After 5 s, 30 s, 2 min, then every 5 min by the age of the park; only the first look counts."""
    taken, row_id = claimed(session)
    now, waits = NOW, []
    for look in range(6):
        end(session, taken, park(row_id, "order_unknown", "no order", again=look > 0), now=now)
        row = read(session, row_id)
        assert (row.state, row.parked_reason, row.parked_at) == ("pending", "order_unknown", NOW)
        waits.append(int((row.next_attempt_at - now).total_seconds()))
        now = row.next_attempt_at
        taken = take(session, now=now)

    assert waits == [5, 30, 120, 300, 300, 300]
    assert [one.outcome for one in attempts_of(session, row_id)] == ["parked"]
    assert read(session, row_id).attempts == 2  # the claim that is held now is counted until it parks again


def test_a_park_for_another_reason_starts_anew(session: Session) -> None:
    """What waits for something else now is a new park: counted, and looked at soon."""
    taken, row_id = claimed(session)
    end(session, taken, park(row_id, "order_unknown", "no order", again=False))
    later = NOW + timedelta(hours=1)
    taken = take(session, now=later)

    end(session, taken, park(row_id, "before_capture", "nothing captured", again=False), now=later)

    row = read(session, row_id)
    assert (row.parked_reason, row.parked_at, row.attempts) == ("before_capture", later, 2)
    assert row.next_attempt_at == later + timedelta(seconds=5)


@pytest.mark.parametrize(
    ("reason", "state", "outcome", "ended"),
    [
        ("order_unknown", "expired", "order_unknown", "order_unknown"),
        ("before_capture", "expired", "before_capture", "before_capture"),
        ("transaction_unknown", "processed", "ignored", "not_ours"),
        ("refund_exceeds_captured", "failed", "refund_exceeds_captured", "refund_exceeds_captured"),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_the_last_look_of_a_parked_row(
    session: Session, reason: str, state: str, outcome: str, ended: str, again: bool
) -> None:
    """At the deadline a row that would wait ends by what it waits for; the last look is an attempt."""
    taken, row_id = claimed(session, next_attempt_at=GIVE_UP, parked_reason=reason, attempts=1)

    end(session, taken, park(row_id, reason, "waits", again=again, late=LATE_ENDS.get(reason)), now=GIVE_UP)

    row = read(session, row_id)
    assert (row.state, row.outcome, row.reason) == (state, outcome, ended)
    assert (row.parked_reason, row.parked_at, row.finished_at) == (None, None, GIVE_UP)
    assert (row.last_error_code is None) == (state == "processed")
    assert row.attempts == 2
    assert [(one.attempt, one.outcome) for one in attempts_of(session, row_id)] == [
        (2, "ignored" if state == "processed" else state)
    ]


def test_defer(session: Session) -> None:
    """In flight → pending for 5 s: not the row's fault, so neither counted nor an attempt row."""
    taken, row_id = claimed(session)

    end(session, taken, defer(row_id, "order_locked", "locked"))

    row = read(session, row_id)
    assert (row.state, row.attempts, row.last_error_code) == ("pending", 0, "order_locked")
    assert row.next_attempt_at == NOW + timedelta(seconds=5)
    assert attempts_of(session, row_id) == []


def test_hand_back(session: Session) -> None:
    """In flight → pending as it was, the attempt taken back: what it waits for and until when stays."""
    parked_at = NOW - timedelta(minutes=1)
    taken, row_id = claimed(session, parked_reason="order_unknown", parked_at=parked_at, attempts=1)

    end(session, taken, hand_back(row_id))

    row = read(session, row_id)
    assert (row.state, row.attempts, row.next_attempt_at) == ("pending", 1, NOW)
    assert (row.parked_reason, row.parked_at) == ("order_unknown", parked_at)
    assert attempts_of(session, row_id) == []


@pytest.mark.parametrize("settlement", [release, defer, park, hand_back])
def test_a_row_once_lost_stays_marked(session: Session, settlement: object) -> None:
    """However a later attempt ends, the row that took a worker along is claimed alone until replayed."""
    event = make_event(session, lost=2, attempts=2)
    taken = take_lost(session)
    ends = {
        release: lambda: release(event.id, 3, 0.0, "error:Boom", "it broke"),
        defer: lambda: defer(event.id, "order_locked", "locked"),
        park: lambda: park(event.id, "order_unknown", "no order", again=False),
        hand_back: lambda: hand_back(event.id),
    }

    end(session, taken, ends[settlement]())

    assert read(session, event.id).lost == 2


ENDS = (
    finish(INBOX, uuid4(), "applied"),
    fail(uuid4(), "amount", "no"),
    release(uuid4(), 1, 0.0, "error:Boom", "it broke"),
    park(uuid4(), "order_unknown", "no order", again=False),
    defer(uuid4(), "order_locked", "locked"),
    hand_back(uuid4()),
)


@pytest.mark.parametrize("settlement", ENDS, ids=["finish", "fail", "release", "park", "defer", "hand_back"])
def test_every_verb_compares_the_claim(session: Session, settlement: Settlement) -> None:
    """A settlement under another claim, or of a row no longer in flight, writes nothing."""
    foreign = make_event(session, state="in_flight")
    ended = make_event(session, state="processed")
    stale = Taken(uuid4(), [])
    before = [(read(session, row.id).row_version) for row in (foreign, ended)]
    for row in (foreign, ended):
        values = {name: getattr(settlement, name) for name in settlement.__slots__}

        assert end(session, stale, Settlement(**{**values, "row_id": row.id})) == []

    assert [(read(session, row.id).row_version) for row in (foreign, ended)] == before
    assert attempts_of(session, foreign.id) == []


def test_a_stale_worker_cannot_finish(deps: Deps, session: Session) -> None:
    """A worker whose row was reclaimed under it settles nothing, and its effect goes with it."""
    event = make_event(session)
    order = make_order(session, reference="ord_1")
    session.commit()
    with deps.sessions.begin() as slow:
        stale = take(slow, now=NOW)
    late = NOW + LEASE + timedelta(seconds=1)
    with deps.sessions.begin() as duty:
        reclaim(duty, INBOX, now=late)
    with deps.sessions.begin() as other:
        fresh = take_lost(other, now=late)

    with deps.sessions() as slow:
        slow.get_one(type(order), order.id).state = "paid"
        slow.flush()
        settled = end(slow, stale, finish(INBOX, event.id, "applied"), now=late)
        assert settled == []
        slow.rollback()

    row = read(session, event.id)
    assert (row.state, row.claim_id) == ("in_flight", fresh.id)
    session.refresh(order)
    assert order.state == "pending"


def test_a_batch_settles_as_one_statement(session: Session) -> None:
    """Rows of one claim end differently in one statement, and only the claim's own are answered."""
    events = [make_event(session, payload=None) for _ in range(3)]
    taken = Taken(uuid4(), [])
    rows = claim(session, INBOX, ("id",), claim_id=taken.id, worker="w1", batch=9, lease=LEASE, now=NOW)
    assert len(rows) == 3

    settled = end(
        session,
        taken,
        finish(INBOX, events[0].id, "applied"),
        fail(events[1].id, "amount", "no"),
        park(events[2].id, "order_unknown", "no order", again=False),
        finish(INBOX, uuid4(), "applied"),
    )

    assert {one.row_id: one.state for one in settled} == {
        events[0].id: "processed",
        events[1].id: "failed",
        events[2].id: "pending",
    }


def test_settling_nothing_is_no_statement(session: Session) -> None:
    """An empty batch settles nothing."""
    assert end(session, Taken(uuid4(), [])) == []


def test_an_error_text_is_cut_and_free_of_nul(session: Session) -> None:
    """Whatever an exception says can be stored: 2,000 characters, no NUL, no lone surrogate."""
    taken, row_id = claimed(session)

    end(session, taken, release(row_id, 1, 0.0, "error:Boom", "a\0b\ud800" + "x" * 5000))

    kept = read(session, row_id).last_error
    assert kept is not None
    assert len(kept) <= 2000
    assert "\0" not in kept
