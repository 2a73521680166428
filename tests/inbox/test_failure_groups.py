"""Failures grouped by cause: how they are told apart, what people say of them, when they come back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.deps import Deps
from receiver.inbox import failure_groups, work_batch
from receiver.inbox.acknowledge import forget_event
from receiver.inbox.dead_letters import count_matching
from receiver.inbox.failure_groups import (
    GroupKey,
    GroupRefused,
    find_group,
    list_groups,
    notes_on,
    set_group,
)
from receiver.inbox.filter import Filter
from receiver.inbox.find_events import list_events
from tests.factories import NOW, make_event
from tests.inbox.gestures import event, register, row, store, work


def test_each_cause_is_a_group_of_its_own(session: Session) -> None:
    """Source, reason, type and place tell groups apart; the largest comes first, with its times."""
    make_event(session, state="failed")
    newest = make_event(session, state="failed", updated_at=NOW + timedelta(hours=1))
    make_event(session, state="failed", source="lesson")
    make_event(session, state="failed", event_type=None)
    make_event(session, state="failed", reason="currency")
    make_event(session, state="expired", reason="error:ValueError", failed_in="orders.load:load")
    make_event(session, state="expired", reason="error:ValueError", failed_in="orders.load:record")
    make_event(session, state="processed")
    make_event(session)

    groups = list_groups(session)

    assert [str(group.key) for group in groups] == [
        "demo/amount/payment.succeeded/-",
        "demo/amount/-/-",
        "demo/currency/payment.succeeded/-",
        "demo/error:ValueError/payment.succeeded/orders.load:load",
        "demo/error:ValueError/payment.succeeded/orders.load:record",
        "lesson/amount/payment.succeeded/-",
    ]
    first = groups[0]
    assert (first.count.number, first.first_at, first.last_at) == (2, NOW, NOW + timedelta(hours=1))
    assert (first.example, first.state, first.note) == (newest.id, "open", "")
    assert [group.key.source for group in list_groups(session, source="lesson")] == ["lesson"]
    assert list_groups(session, source="nobody") == []
    assert len(list_groups(session, limit=2)) == 2


def test_a_groups_filter_selects_its_rows_alone(session: Session) -> None:
    """Replay, list and count by a group's filter take exactly the rows that the group counts."""
    for type_ in (None, "payment.succeeded"):
        for place in (None, "orders.load:load"):
            make_event(session, state="failed", event_type=type_, failed_in=place)
            make_event(session, state="processed", event_type=type_, failed_in=place)

    for group in list_groups(session):
        asked = Filter.parse(group.key.filter().as_query())
        assert asked == group.key.filter()
        assert [found.id for found in list_events(session, asked).rows] == [group.example]
        assert count_matching(session, asked).number == group.count.number == 1


def test_what_was_taken_out_of_the_list_is_in_no_group(session: Session) -> None:
    """A forgotten dead letter leaves its group, and an empty group is gone."""
    dead = make_event(session, state="failed")
    key = list_groups(session)[0].key
    forget_event(session, dead.id, actor="ada", reason="known")

    assert list_groups(session) == []
    assert find_group(session, key) is None


def test_counts_stop_at_a_bound(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound a count says that there are more."""
    monkeypatch.setattr(failure_groups, "LOOK_AT", 2)
    for _ in range(3):
        make_event(session, state="failed")

    assert str(list_groups(session)[0].count) == "2+"


def test_people_say_how_a_group_stands(session: Session) -> None:
    """State and note are kept, a state alone keeps the note, and each word leaves an audit row."""
    make_event(session, state="failed")
    key = list_groups(session)[0].key
    set_group(
        session, key, state="acknowledged", note=" asked the shop ", actor="ada", reason="seen", now=NOW
    )
    set_group(session, key, state="open", actor="bob", reason="still there", now=NOW)

    group = find_group(session, key)
    assert group is not None
    assert (group.state, group.note, group.by, group.at) == ("open", "asked the shop", "bob", NOW)
    assert list_groups(session, state="acknowledged") == []
    newest, oldest = list_actions(session)
    assert (newest.actor, newest.action, newest.reason) == ("bob", "group.set", "still there")
    assert oldest.criteria == {
        "source": "demo",
        "reason": "amount",
        "event_type": "payment.succeeded",
        "place": "",
        "state": "acknowledged",
        "note": "asked the shop",
    }
    assert notes_on(session, [key, GroupKey("x", "y")])[key].note == "asked the shop"


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"state": "gone"}, "unknown_group_state"),
        ({"note": "x" * 2001}, "bad_note"),
        ({"note": "a\0b"}, "bad_note"),
        ({"reason": ""}, "no_reason"),
    ],
)
def test_a_word_that_cannot_be_kept_is_refused(session: Session, values: dict[str, str], code: str) -> None:
    """Unknown states, over-long notes and missing reasons are refused by name."""
    with pytest.raises(GroupRefused) as refused:
        set_group(
            session, GroupKey("demo", "amount"), **{"state": "open", "actor": "a", "reason": "r", **values}
        )

    assert refused.value.code == code


def test_a_resolved_group_opens_again_when_it_comes_back(session: Session) -> None:
    """Resolved stays resolved for what was dead before, and opens by the next row that ends dead."""
    make_event(session, state="failed", at=NOW)
    key = list_groups(session)[0].key
    set_group(session, key, state="resolved", actor="ada", reason="fixed", now=NOW + timedelta(hours=1))
    assert list_groups(session)[0].state == "resolved"

    make_event(session, state="failed", at=NOW + timedelta(hours=2))

    group = list_groups(session)[0]
    assert (group.state, group.reopened, group.by) == ("open", True, "ada")


def test_a_fault_of_ours_names_its_place(deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last frame of our own code is kept with the failed attempt, and cleared when it goes well."""
    register(deps)
    (poison,) = store(deps, event("succeeded"))

    def break_down(*_: object) -> None:
        raise ZeroDivisionError("poison")

    with monkeypatch.context() as patch:
        patch.setattr(work_batch, "_settlement", break_down)
        work(deps)
    assert row(deps, poison).failed_in == "inbox.work_batch:_work_one"
    deps.clock.move(timedelta(hours=73))  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setattr(work_batch, "_settlement", break_down)
        work(deps)

    with deps.sessions() as session:
        (group,) = list_groups(session)
    assert group.key == GroupKey(
        "demo", "error:ZeroDivisionError", "payment.succeeded", "inbox.work_batch:_work_one"
    )


def test_a_refusal_has_no_place(deps: Deps) -> None:
    """Refused by the rules after a broken attempt, the row names no place of ours any more."""
    register(deps, amount_minor=100)
    (refused,) = store(deps, event("succeeded"), failed_in="orders.load:load")

    work(deps)

    assert (row(deps, refused).state, row(deps, refused).failed_in) == ("failed", None)
