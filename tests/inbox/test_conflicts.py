"""Conflicting bodies of one id: shown against their event, released as an event of their own, or rejected."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from receiver.accounts.actions import list_actions
from receiver.inbox.conflicts import (
    UnknownConflict,
    find_conflict,
    list_conflicts,
    reject_conflict,
    release_conflict,
)
from receiver.inbox.models import WebhookConflict, WebhookEvent
from receiver.inbox.release import NotReleasable
from tests import posting
from tests.doors import Door


def conflict_of(door: Door, event_id: str = "e_1", **data: Any) -> int:
    """Post an event of order o_1 and another body under its id; returns the conflict's number."""
    door.demo(posting.payment(event_id, "o_1", data={"transaction_id": "tx_1"}))
    door.demo(posting.payment(event_id, "o_1", data={"transaction_id": "tx_1", **data}))
    with door.deps.sessions() as session:
        return session.scalars(select(WebhookConflict.id).order_by(WebhookConflict.id.desc())).first() or 0


def release(door: Door, conflict: int, **more: Any) -> UUID:
    """Release as an admin; returns the new event's id."""
    values: dict[str, Any] = {"actor": "ada", "reason": "the second is right", "admin": True, **more}
    with door.deps.sessions.begin() as session:
        new = door.deps.dice.new_id
        return release_conflict(
            session,
            door.deps.settings,
            conflict,
            event_id=new(),
            payload_id=new(),
            now=door.deps.clock.now(),
            **values,
        ).id


def test_a_released_conflict_is_an_event_of_its_own(door: Door) -> None:
    """It stands under <id>#<8 hex>, with the kept bytes and headers, and the worker decides about it."""
    door.order("o_1", 2500)
    conflict = conflict_of(door, order_id="o_2", transaction_id="tx_2", amount=700)
    door.order("o_2", 700)

    released = release(door, conflict)
    door.work()

    with door.deps.sessions() as session:
        stored = session.get_one(WebhookEvent, released)
        kept = session.get_one(WebhookConflict, conflict)
    suffix = kept.payload_sha256.hex()[:8]
    row = door.event(f"e_1#{suffix}")
    assert stored.provider_event_id == f"e_1#{suffix}"
    assert json.loads(row["payload"])["data"]["order_id"] == "o_2"
    assert "X-Signature" in dict(row["headers"])
    assert (row["order_reference"], row["amount_minor"], row["outcome"]) == ("o_2", 700, "applied")
    assert (door.state_of("o_1"), door.state_of("o_2")) == ("paid", "paid")
    assert (kept.state, kept.by, kept.reason) == ("released", "ada", "the second is right")
    with door.deps.sessions() as session:
        act = list_actions(session)[0]
    assert (act.action, act.target) == ("conflict.release", f"conflict:{conflict}")
    assert act.criteria == {
        "of": str(kept.event_id),
        "sha256": kept.payload_sha256.hex(),
        "event": str(released),
    }


def test_a_released_conflict_is_decided_by_the_rules(door: Door) -> None:
    """Another amount of the same payment is refused as ever: the ledger is not overwritten."""
    door.order("o_1", 2500)
    conflict = conflict_of(door, amount=2400)
    door.work()

    released = release(door, conflict)
    door.work()

    with door.deps.sessions() as session:
        assert session.get_one(WebhookEvent, released).reason == "effect_changed"


def test_a_conflict_is_settled_once(door: Door) -> None:
    """A second release, or a reject after it, is refused; the body comes again and stays released."""
    conflict = conflict_of(door, amount=700)
    release(door, conflict)
    for act in (release, reject):
        with pytest.raises(NotReleasable) as refused:
            act(door, conflict)
        assert refused.value.code == "not_open"

    conflict_of(door, amount=700)
    assert len(door.rows("SELECT * FROM webhook_events")) == 2
    assert [each["state"] for each in door.rows("SELECT * FROM webhook_conflicts")] == ["released"]


def reject(door: Door, conflict: int, **more: Any) -> WebhookConflict:
    """Reject as an admin."""
    values: dict[str, Any] = {"actor": "ada", "reason": "forged by us", "admin": True, **more}
    with door.deps.sessions.begin() as session:
        return reject_conflict(session, conflict, now=door.deps.clock.now(), **values)


def test_a_rejected_conflict_never_counts(door: Door) -> None:
    """It is settled with who and why, and no event comes of it."""
    conflict = conflict_of(door, amount=700)
    settled = reject(door, conflict)

    assert (settled.state, settled.by, settled.reason) == ("rejected", "ada", "forged by us")
    assert len(door.rows("SELECT * FROM webhook_events")) == 1
    with door.deps.sessions() as session:
        assert list_actions(session)[0].action == "conflict.reject"
        assert list_conflicts(session) == []
        assert [each.id for each, _ in list_conflicts(session, state=None)] == [conflict]


def test_who_may_and_what_may(door: Door) -> None:
    """No admin, no reason, a variant, an erased body, an unreadable one, an unknown number: all refused."""
    conflict = conflict_of(door, amount=700)
    for act in (release, reject):
        for values, code in (({"admin": False}, "needs_admin"), ({"reason": ""}, "no_reason")):
            with pytest.raises(NotReleasable) as refused:
                act(door, conflict, **values)
            assert refused.value.code == code
        with pytest.raises(UnknownConflict):
            act(door, 4711)
    for change, code in (
        ("payload = '{'", "unreadable"),
        ('payload = \'{"id": "other"}\'', "unreadable"),
        ("payload = NULL", "body_not_kept"),
        ("kind = 'variant'", "not_a_conflict"),
    ):
        door.run(f"UPDATE webhook_conflicts SET {change}")
        with pytest.raises(NotReleasable) as refused:
            release(door, conflict)
        assert refused.value.code == code
    assert len(door.rows("SELECT * FROM webhook_events")) == 1


def test_a_conflict_is_found_with_both_sides(door: Door) -> None:
    """Its detail holds the event, both bodies and what the other body says; lists go on after a number."""
    first = conflict_of(door, amount=700)
    second = conflict_of(door, "e_2", amount=800)
    with door.deps.sessions() as session:
        detail = find_conflict(session, door.deps.settings, first)
        assert detail.read is not None
        assert detail.payload is not None
        assert (detail.event.amount_minor, detail.read.facts.amount_minor) == (2500, 700)
        assert b"2500" in detail.payload.payload
        assert [each.id for each, _ in list_conflicts(session)] == [second, first]
        assert [each.id for each, _ in list_conflicts(session, before=second)] == [first]
        assert list_conflicts(session, source="lesson") == []
        with pytest.raises(UnknownConflict):
            find_conflict(session, door.deps.settings, 4711)


def test_a_longest_id_still_takes_the_suffix(door: Door) -> None:
    """128 characters and the suffix fit the column."""
    conflict = conflict_of(door, "x" * 128, amount=700)

    released = release(door, conflict)

    with door.deps.sessions() as session:
        assert len(session.get_one(WebhookEvent, released).provider_event_id) == 137
