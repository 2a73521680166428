"""Release and reject of refused events: who may, what is waived, what is left for the rules."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.deps import Deps
from receiver.inbox.cancel_order import cancel_order
from receiver.inbox.release import NotReleasable, check_release, reject_event, release_event
from receiver.inbox.replay import RowChanged, UnknownEvent, preview_replay, replay_event
from receiver.orders.models import LedgerEntry, OrderTransaction, OrderTransition
from tests.factories import make_event, make_order
from tests.inbox.gestures import (
    REFERENCE,
    event,
    ledger,
    order,
    outcome,
    receive,
    register,
    row,
    stands,
    store,
    work,
)


def release(deps: Deps, event_id: UUID, **more: Any) -> None:
    """Release as an admin."""
    values: dict[str, Any] = {"actor": "ada", "reason": "the bank confirmed", "admin": True, **more}
    with deps.sessions.begin() as session:
        release_event(session, event_id, now=deps.clock.now(), **values)


def strict(deps: Deps) -> Deps:
    """The same process, whose demo source states account and mode."""
    source = dataclasses.replace(deps.settings.sources["demo"], account="acct_1", live=True)
    sources = {**deps.settings.sources, "demo": source}
    return deps.with_settings(dataclasses.replace(deps.settings, sources=sources))


def by_of(deps: Deps) -> tuple[list[str], list[str]]:
    """Whose doing the ledger's lines and the transitions are."""
    with deps.sessions() as session:
        lines = session.scalars(select(LedgerEntry.by).order_by(LedgerEntry.id))
        return list(lines), list(session.scalars(select(OrderTransition.by).order_by(OrderTransition.id)))


def test_account_and_mode_are_released_one_by_one(deps: Deps) -> None:
    """Each release waives the check that refused; the second keeps the first."""
    deps = strict(deps)
    register(deps)
    (refused,) = receive(deps, event("succeeded", account="acct_2", live=False))
    assert outcome(deps, refused.id) == ("failed", "account", "account")

    release(deps, refused.id)
    work(deps)
    assert outcome(deps, refused.id) == ("failed", "mode", "mode")
    release(deps, refused.id)
    with deps.sessions() as session:
        assert "pending → paid" in preview_replay(session, deps.settings, refused.id)
    work(deps)

    assert outcome(deps, refused.id) == ("processed", "applied", None)
    assert stands(deps) == ("paid", 2500, 0)
    assert row(deps, refused.id).waived == ["account", "mode"]
    assert by_of(deps) == (["operator"], ["operator"])
    with deps.sessions() as session:
        acts = [(act.actor, act.action, act.criteria) for act in list_actions(session)]
    assert [act[:2] for act in acts] == [("ada", "event.release")] * 2
    assert acts[1][2] == {
        "waived": "account",
        "before": {"reason": "account", "detail": "source acct_1, event acct_2"},
    }


def test_money_for_a_cancelled_order_is_released_onto_it(deps: Deps) -> None:
    """The capture counts on the cancelled order, its mark goes, and its ignored refund goes round again."""
    register(deps)
    with deps.sessions.begin() as session:
        cancel_order(session, REFERENCE, actor="ada", reason="customer", now=deps.clock.now())
    refused, refund = receive(
        deps, event("succeeded"), event("refunded", effect_id="rf_1", amount_minor=1000)
    )
    assert outcome(deps, refused.id)[2] == "order_cancelled"
    assert outcome(deps, refund.id) == ("processed", "ignored", "surplus_returned")

    release(deps, refused.id)
    work(deps)

    assert outcome(deps, refused.id) == ("processed", "applied", None)
    assert outcome(deps, refund.id) == ("processed", "applied", None)
    assert stands(deps) == ("partially_refunded", 2500, 1000)
    assert order(deps).cancelled_at is not None
    with deps.sessions() as session:
        assert [t.refused for t in session.scalars(select(OrderTransaction))] == [False]
        states = session.execute(
            select(OrderTransition.from_state, OrderTransition.to_state, OrderTransition.by)
        )
        assert ("cancelled", "paid", "operator") in [tuple(each) for each in states]


def test_a_low_amount_is_released_as_a_part(deps: Deps) -> None:
    """2000 of 2500 leave the order partially paid; an ordinary replay afterwards is a repeat."""
    register(deps)
    (refused,) = receive(deps, event("succeeded", amount_minor=2000))
    release(deps, refused.id)
    work(deps)

    assert stands(deps) == ("partially_paid", 2000, 0)
    assert ledger(deps) == [("capture", 2000)]
    with deps.sessions.begin() as session:
        version = row(deps, refused.id).row_version
        now = deps.clock.now()
        replay_event(session, refused.id, row_version=version, actor="ada", reason="?", admin=True, now=now)
    work(deps)
    assert outcome(deps, refused.id) == ("processed", "repeat", None)
    assert ledger(deps) == [("capture", 2000)]


@pytest.mark.parametrize(
    ("facts", "columns", "code"),
    [
        ({"amount_minor": 2501}, {}, "amount_not_below"),
        ({"amount_minor": 2500}, {"kind": "authorized", "reason": "amount"}, "amount_not_below"),
        ({"currency": "USD"}, {"reason": "currency"}, "never_released"),
        ({}, {"reason": "transaction"}, "never_released"),
        ({}, {"reason": "effect"}, "never_released"),
        ({}, {"reason": "second_payment"}, "never_released"),
        ({}, {"reason": "worker_lost"}, "never_released"),
        ({}, {"state": "expired", "reason": "order_unknown"}, "not_refused"),
        ({}, {"state": "processed"}, "not_refused"),
    ],
)
def test_what_is_never_released(
    session: Session, facts: dict[str, Any], columns: dict[str, Any], code: str
) -> None:
    """Only account, mode, order_cancelled and a whole payment below the amount are released."""
    make_order(session, reference="o_1")
    stored = make_event(session, **{"state": "failed", "order_reference": "o_1", **facts, **columns})
    with pytest.raises(NotReleasable) as refused:
        check_release(session, stored)
    assert refused.value.code == code
    with pytest.raises(NotReleasable):
        release_event(session, stored.id, actor="ada", reason="r", admin=True)

    assert list_actions(session) == []
    assert stored.waived is None


def test_a_release_asks_for_an_admin_a_reason_and_what_was_seen(session: Session) -> None:
    """Without one of them nothing happens, and an unknown event is unknown."""
    stored = make_event(session, state="failed", reason="mode")
    for values, code in (({"admin": False}, "needs_admin"), ({"reason": " "}, "no_reason")):
        for act in (release_event, reject_event):
            with pytest.raises(NotReleasable) as refused:
                act(session, stored.id, **{"actor": "ada", "reason": "r", "admin": True, **values})
            assert refused.value.code == code
    for act in (release_event, reject_event):
        with pytest.raises(RowChanged):
            act(session, stored.id, actor="ada", reason="r", admin=True, row_version=stored.row_version + 1)
        with pytest.raises(UnknownEvent):
            act(session, UUID(int=7), actor="ada", reason="r", admin=True)


def test_rejected_stays_refused_and_leaves_the_list(deps: Deps) -> None:
    """A reject acknowledges the event and takes an earlier waiver back, with the audit row."""
    deps = strict(deps)
    register(deps)
    (refused,) = receive(deps, event("succeeded", account="acct_2", live=False))
    release(deps, refused.id)
    work(deps)
    with deps.sessions.begin() as session:
        rejected = reject_event(
            session, refused.id, actor="ada", reason="not our account", admin=True, now=deps.clock.now()
        )

    assert rejected.acknowledged_at == deps.clock.now()
    assert (rejected.state, rejected.reason, rejected.waived) == ("failed", "mode", None)
    with deps.sessions() as session:
        newest = list_actions(session)[0]
    assert (newest.action, newest.reason) == ("event.reject", "not our account")
    (other,) = store(deps, event("succeeded", account="acct_1", live=True))
    work(deps)
    with deps.sessions.begin() as session, pytest.raises(NotReleasable):
        reject_event(session, other, actor="ada", reason="r", admin=True)
