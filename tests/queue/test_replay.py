"""Replay: an ended row goes round again, compared with the version that was seen."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from receiver.inbox.table import INBOX
from receiver.queue.replay import replay
from receiver.queue.settle import fail, finish
from receiver.queue.table import DEAD_LETTERS
from tests.factories import NOW, make_event

from .gestures import attempts_of, end, read, take

LATER = NOW + timedelta(days=30)


@pytest.mark.parametrize("state", DEAD_LETTERS)
def test_a_dead_letter_goes_round_again(session: Session, state: str) -> None:
    """Failed or expired → pending and due: counts at 0, a fresh deadline, no outcome, one replay more."""
    event = make_event(
        session, state=state, attempts=9, lost=3, last_error="why", acknowledged_at=NOW, row_version=7
    )

    assert replay(session, INBOX, event.id, row_version=7, from_states=DEAD_LETTERS, now=LATER)

    row = read(session, event.id)
    assert (row.state, row.attempts, row.lost, row.replays, row.row_version) == ("pending", 0, 0, 1, 8)
    assert (row.outcome, row.reason, row.last_error_code, row.last_error) == (None, None, None, None)
    assert (row.finished_at, row.acknowledged_at) == (None, None)
    assert (row.next_attempt_at, row.give_up_at) == (LATER, LATER + timedelta(hours=72))


@pytest.mark.parametrize("state", ["pending", "in_flight", "processed"])
def test_other_states_do_not(session: Session, state: str) -> None:
    """A row that is not in one of the allowed states is refused, even at the right version."""
    event = make_event(session, state=state)

    assert not replay(session, INBOX, event.id, row_version=1, from_states=DEAD_LETTERS, now=LATER)
    assert read(session, event.id).state == state


def test_an_older_version_does_not(session: Session) -> None:
    """A row that changed since it was looked at is refused."""
    event = make_event(session, state="failed", row_version=3)

    assert not replay(session, INBOX, event.id, row_version=2, from_states=DEAD_LETTERS, now=LATER)


def test_the_history_stays(session: Session) -> None:
    """The attempts of each round stand side by side, told apart by the replay."""
    event = make_event(session)
    end(session, take(session), fail(event.id, "amount", "order 25.00 EUR, event 26.00 EUR"))
    row = read(session, event.id)

    replay(session, INBOX, event.id, row_version=row.row_version, from_states=DEAD_LETTERS, now=LATER)
    end(session, take(session, now=LATER), finish(INBOX, event.id, "applied"), now=LATER)

    history = [(one.replay, one.attempt, one.outcome) for one in attempts_of(session, event.id)]
    assert history == [(0, 1, "failed"), (1, 1, "applied")]
