"""The record of what people did."""

from __future__ import annotations

import pytest

from receiver.accounts.actions import list_actions, record
from receiver.deps import Deps
from tests.conftest import NOW


def test_the_newest_act_comes_first_and_pages_follow(deps: Deps) -> None:
    """Acts are listed newest first; the last id of a page continues the list."""
    with deps.sessions.begin() as session:
        for number in range(5):
            record(
                session,
                actor="cli:ada",
                action="pause",
                target=f"source:{number}",
                reason="maintenance",
                now=NOW,
            )
    with deps.sessions() as session:
        first = list_actions(session, limit=2)
        second = list_actions(session, before_id=first[-1].id, limit=10)

    assert [action.target for action in first] == ["source:4", "source:3"]
    assert [action.target for action in second] == ["source:2", "source:1", "source:0"]
    assert (first[0].actor, first[0].reason, first[0].at, first[0].count) == (
        "cli:ada",
        "maintenance",
        NOW,
        1,
    )


def test_an_act_that_fails_leaves_no_record(deps: Deps) -> None:
    """The row stands in the act's transaction: what rolls back was not done."""

    def fail() -> None:
        with deps.sessions.begin() as session:
            record(
                session, actor="ada", action="replay", target="event:1", criteria={"state": "failed"}, count=3
            )
            raise RuntimeError("the act failed")

    with pytest.raises(RuntimeError):
        fail()
    with deps.sessions() as session:
        assert list_actions(session) == []
