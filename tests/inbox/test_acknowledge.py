"""Forget, flush and prune: failed events leave the list, payloads are erased, a key never goes."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.accounts.models import OperatorAction
from receiver.deps import Deps
from receiver.inbox.acknowledge import flush_failed, forget_event, prune_payloads
from receiver.inbox.models import WebhookEvent, WebhookPayload
from receiver.inbox.replay import NotReplayable, UnknownEvent, replay_event
from tests.factories import NOW, make_event

from .gestures import event, receive, row, work

BY = {"actor": "olga", "reason": "known to the provider"}


def again(session: Session, made: WebhookEvent) -> WebhookEvent:
    """The event as it stands."""
    return session.get_one(WebhookEvent, made.id, populate_existing=True)


@pytest.mark.parametrize("state", ["failed", "expired"])
@pytest.mark.parametrize("erase", [False, True])
def test_forget(session: Session, state: str, erase: bool) -> None:
    """A dead letter is acknowledged with its audit row; the key stays, the payload goes if asked."""
    made = make_event(session, state=state)

    forget_event(session, made.id, **BY, erase=erase, now=NOW)

    kept = again(session, made)
    assert (kept.state, kept.acknowledged_at, kept.payload_id is None) == (state, NOW, erase)
    (action,) = session.scalars(select(OperatorAction)).all()
    assert (action.action, action.target, action.criteria) == (
        "event.forget",
        f"event:{made.id}",
        {"erase": erase},
    )


@pytest.mark.parametrize("state", ["pending", "in_flight", "processed"])
def test_only_dead_letters_are_forgotten(session: Session, state: str) -> None:
    """An event that did not fail is not forgotten."""
    made = make_event(session, state=state)

    with pytest.raises(NotReplayable) as refused:
        forget_event(session, made.id, **BY, now=NOW)

    assert refused.value.code == "not_failed"
    assert again(session, made).acknowledged_at is None


def test_an_unknown_event_is_not_forgotten(session: Session) -> None:
    """Forgetting what is not there says so."""
    with pytest.raises(UnknownEvent):
        forget_event(session, uuid4(), **BY, now=NOW)


def test_a_forgotten_event_that_is_replayed_and_fails_is_seen_again(deps: Deps) -> None:
    """Acknowledged, replayed, failed once more: it stands in the list of failures again."""
    (failed,) = receive(deps, event("succeeded", facts_error="unreadable_amount"))
    with deps.sessions.begin() as session:
        forget_event(session, failed.id, **BY, now=NOW)
    with deps.sessions.begin() as session:
        version = row(deps, failed.id).row_version
        replay_event(session, failed.id, row_version=version, **BY, now=NOW)
    work(deps)

    seen = row(deps, failed.id)
    assert (seen.state, seen.acknowledged_at) == ("failed", None)


def test_events_of_one_request_share_their_payload(session: Session) -> None:
    """Erasing one event's payload keeps it while another event of the request is not forgotten."""
    first = make_event(session, state="failed")
    second = make_event(session, state="failed", payload=None, payload_id=first.payload_id, item=1)

    forget_event(session, first.id, **BY, erase=True, now=NOW)
    assert again(session, second).payload_id is not None
    forget_event(session, second.id, **BY, erase=True, now=NOW)

    assert again(session, second).payload_id is None
    assert session.scalars(select(WebhookPayload)).all() == []


def test_flush_takes_old_dead_letters_in_steps(session: Session) -> None:
    """Flush acknowledges the oldest first, up to its limit, and only those that ended long enough ago."""
    for hours in (1, 30, 40, 50):
        make_event(session, state="failed", at=NOW - timedelta(hours=hours))
    make_event(session, state="pending", at=NOW - timedelta(hours=60))
    day = timedelta(hours=24)

    assert flush_failed(session, older_than=day, **BY, limit=2, now=NOW) == 2
    assert flush_failed(session, older_than=day, **BY, limit=2, now=NOW) == 1
    assert flush_failed(session, older_than=day, **BY, limit=2, now=NOW) == 0
    counts = [(one.action, one.count) for one in session.scalars(select(OperatorAction))]
    assert counts == [("event.flush", 2), ("event.flush", 1)]


def test_flush_erases_if_asked(session: Session) -> None:
    """With `erase` the payloads of what is flushed go too."""
    make_event(session, state="expired", at=NOW - timedelta(days=9))

    flush_failed(session, older_than=timedelta(days=1), **BY, erase=True, now=NOW)

    assert session.scalars(select(WebhookPayload)).all() == []


def test_prune_erases_old_payloads_of_ended_events(session: Session) -> None:
    """Payloads of ended events go when they are old enough; keys, hashes and outcomes stay."""
    old = NOW - timedelta(days=91)
    ended = make_event(session, state="processed", at=old)
    make_event(session, state="failed", at=NOW - timedelta(days=89))
    waiting = make_event(session, at=old)
    shared = make_event(session, state="processed", at=old)
    make_event(session, at=old, payload=None, payload_id=shared.payload_id, item=1)

    assert prune_payloads(session, older_than=timedelta(days=90), now=NOW) == 1

    kept = again(session, ended)
    assert (kept.payload_id, kept.outcome, len(kept.payload_sha256)) == (None, "applied", 32)
    assert again(session, waiting).payload_id is not None
    assert again(session, shared).payload_id is not None


def test_prune_works_in_steps(session: Session) -> None:
    """Prune erases up to its limit at a time."""
    for _ in range(3):
        make_event(session, state="processed", at=NOW - timedelta(days=100))

    counts = [prune_payloads(session, older_than=timedelta(days=90), limit=2, now=NOW) for _ in range(3)]

    assert counts == [2, 1, 0]
