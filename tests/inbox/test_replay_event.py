"""Replay of one event by hand: what it may send round, what it tells beforehand, what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.accounts.models import OperatorAction
from receiver.deps import Deps
from receiver.inbox.replay import (
    NotReplayable,
    RowChanged,
    UnknownEvent,
    facts_of,
    preview_replay,
    replay_event,
)
from tests.factories import NOW, make_event, make_pause

from .gestures import attempts, event, ledger, outcome, receive, register, row, store, work

BY: dict[str, Any] = {"actor": "olga", "reason": "the shop sent the wrong sum"}


def actions(session: Session) -> Sequence[OperatorAction]:
    """What operators did, oldest first."""
    return session.scalars(select(OperatorAction).order_by(OperatorAction.id)).all()


def again(deps: Deps, row_id: Any, version: int, *, admin: bool = False) -> None:
    """Replay an event in a transaction of its own."""
    with deps.sessions.begin() as session:
        replay_event(session, row_id, row_version=version, **BY, admin=admin, now=deps.clock.now())


def preview(deps: Deps, row_id: Any) -> str:
    """What replay would do now."""
    with deps.sessions() as session:
        return preview_replay(session, deps.settings, row_id)


@pytest.mark.field_case(106)
def test_a_stale_page_cannot_replay(deps: Deps) -> None:
    """The row was worked since the page was loaded: replay is refused, `row changed`, and nothing runs."""
    register(deps, amount_minor=2600)
    (refused,) = receive(deps, event("succeeded"))
    seen = refused.row_version
    again(deps, refused.id, seen)
    work(deps)

    with pytest.raises(RowChanged) as stale:
        again(deps, refused.id, seen)

    assert stale.value.code == "row_changed"
    assert row(deps, refused.id).replays == 1
    with deps.sessions() as session:
        assert len(actions(session)) == 1


@pytest.mark.parametrize("state", ["pending", "in_flight"])
def test_an_event_that_goes_round_by_itself_is_not_replayed(deps: Deps, state: str) -> None:
    """Replay is for ends: what is pending or in flight is refused."""
    with deps.sessions.begin() as session:
        made = make_event(session, state=state)

    with pytest.raises(NotReplayable) as refused:
        again(deps, made.id, 1, admin=True)

    assert refused.value.code == "not_ended"


def test_a_processed_event_needs_an_admin(deps: Deps) -> None:
    """Only an admin replays a processed event: it becomes a repeat; its first outcome stays on record."""
    register(deps)
    (paid,) = receive(deps, event("succeeded"))
    with pytest.raises(NotReplayable) as refused:
        again(deps, paid.id, paid.row_version)
    assert refused.value.code == "processed_needs_admin"

    assert preview(deps, paid.id).startswith("It would be a repeat")
    again(deps, paid.id, paid.row_version, admin=True)
    work(deps)

    assert outcome(deps, paid.id) == ("processed", "repeat", None)
    assert attempts(deps, paid.id) == [(1, "applied"), (1, "repeat")]
    assert ledger(deps) == [("capture", 2500)]


def test_an_unknown_event_is_not_replayed(deps: Deps) -> None:
    """Replay and preview of an event that is not there say so."""
    with pytest.raises(UnknownEvent):
        again(deps, uuid4(), 1)
    with pytest.raises(UnknownEvent):
        preview(deps, uuid4())


def test_a_replay_leaves_a_trace(deps: Deps) -> None:
    """The audit row says who replayed which event, why, and what it was before."""
    (refused,) = receive(deps, event("succeeded", facts_error="unreadable_amount"))

    again(deps, refused.id, refused.row_version)

    with deps.sessions() as session:
        (action,) = actions(session)
    assert (action.action, action.target, action.reason) == (
        "event.replay",
        f"event:{refused.id}",
        BY["reason"],
    )
    assert action.criteria == {
        "before": {"state": "failed", "outcome": "unreadable_amount", "reason": "unreadable_amount"}
    }


def test_a_replay_under_a_pause_waits_for_its_end(deps: Deps) -> None:
    """A replayed event of a paused source is held like any other."""
    register(deps)
    (refused,) = receive(deps, event("succeeded", amount_minor=1))
    with deps.sessions.begin() as session:
        make_pause(session)

    again(deps, refused.id, refused.row_version)

    assert work(deps) == 0


PREVIEWS = {
    "It would wait (order_unknown): no order o_9.": event("succeeded", order_reference="o_9"),
    "It would be ignored (no_money_meaning).": event("other"),
    "It would wait (before_capture)": event("refunded", effect_id="rf_1"),
    "It would be refused again (currency)": event("succeeded", currency="USD"),
    "It would be applied: order o_1 stays pending.": event("voided"),
    "It would be applied: order o_1 pending → failed.": event("failed"),
}


@pytest.mark.parametrize("sentence", PREVIEWS)
def test_a_preview_tells_what_replay_would_do(deps: Deps, sentence: str) -> None:
    """The preview is a sentence by the same rules, and changes nothing."""
    register(deps)
    (row_id,) = store(deps, PREVIEWS[sentence])

    assert preview(deps, row_id).startswith(sentence)
    with deps.sessions() as session:
        assert session.execute(text("SELECT count(*) FROM ledger_entries")).scalar_one() == 0
    assert row(deps, row_id).row_version == 1


def test_the_facts_of_a_stored_event_are_its_meaning(deps: Deps) -> None:
    """A stored event gives the same facts that were stored."""
    facts = event("refunded", effect_id="rf_1", sequence=7, account="acct", live=True, occurred_at=NOW)
    (row_id,) = store(deps, facts)

    assert facts_of(row(deps, row_id)) == facts
