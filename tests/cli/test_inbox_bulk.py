"""`receiver inbox groups|mark|replay-all|replays|…`: causes and replays of many at the shell."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from receiver.accounts.actions import list_actions
from receiver.cli import inbox_bulk
from receiver.deps import Deps
from receiver.inbox import bulk_replay
from receiver.inbox.bulk_replay import advance
from receiver.inbox.models import WebhookEvent
from tests.cli.conftest import Shell, answered
from tests.factories import make_event, make_order

WHY = ("--reason", "the order was registered wrongly")


def dead(deps: Deps, number: int, **columns: Any) -> None:
    """Dead letters of orders o1, o2, …"""
    with deps.sessions.begin() as session:
        for each in range(number):
            make_event(session, **{"state": "failed", "order_reference": f"o{each}", **columns})


def states(deps: Deps) -> list[str]:
    """The states of all events."""
    with deps.sessions() as session:
        return list(session.scalars(select(WebhookEvent.state).order_by(WebhookEvent.id)))


def test_groups_are_listed_and_marked(shell: Shell, deps: Deps) -> None:
    """A group's name, as it is printed, marks it and selects its rows."""
    dead(deps, 2)
    dead(deps, 1, source="lesson", event_type="a/b", failed_in="orders.load:load")
    found = answered(shell("inbox", "groups", "--json"))
    assert [(each["group"], each["count"], each["state"]) for each in found] == [
        ("demo/amount/payment.succeeded/-", 2, "open"),
        ("lesson/amount/a/b/orders.load:load", 1, "open"),
    ]
    name = found[1]["group"]
    answered(shell("inbox", "mark", name, "resolved", "--note", "a hot fix", *WHY, "--json"))

    (group,) = answered(shell("inbox", "groups", "--state", "resolved", "--json"))
    assert (group["group"], group["note"], group["place"]) == (name, "a hot fix", "orders.load:load")
    assert answered(shell("inbox", "groups", "--source", "nobody", "--json")) == []
    assert "a hot fix" in shell("inbox", "groups").stdout
    assert answered(shell("inbox", "list", "--place", "orders.load:load", "--json"))[0]["source"] == "lesson"
    started = answered(
        shell("inbox", "replay-all", "--group", name, "--spread", "0", "--yes", *WHY, "--json")
    )
    assert (started["counted"], started["filter"]["event_type"]) == (1, "a/b")
    assert shell("inbox", "mark", "nonsense", "open", *WHY).exit_code == 1


def test_a_dry_run_says_what_each_would_do(shell: Shell, deps: Deps) -> None:
    """By outcome with an example, and nothing is written."""
    dead(deps, 3)
    with deps.sessions.begin() as session:
        make_order(session, reference="o0")
        make_order(session, reference="o1", amount_minor=9)
    found = answered(shell("inbox", "replay-all", "--dry-run", "--json"))

    assert [(each["outcome"], each["reason"], each["count"]) for each in found["outcomes"]] == [
        ("applied", None, 1),
        ("failed", "amount", 1),
        ("parked", "order_unknown", 1),
    ]
    assert "order o0 pending → paid" in found["outcomes"][0]["sentence"]
    assert states(deps) == ["failed"] * 3
    assert "would be" in shell("inbox", "replay-all", "--dry-run").stdout
    assert "there are more" in shell("inbox", "replay-all", "--dry-run", "--limit", "2").stdout


def test_a_replay_is_started_cancelled_taken_up_and_followed(
    shell: Shell, deps: Deps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker does the work; the shell starts, stops, goes on and watches, each with an audit row."""
    monkeypatch.setattr(inbox_bulk, "LOOK_SECONDS", 0.01)
    dead(deps, 4)
    begun = answered(shell("inbox", "replay-all", "--code", "amount", "--yes", *WHY, "--json"))
    assert (begun["state"], begun["counted"], begun["spread_seconds"]) == ("running", 4, 300)
    stopped = answered(shell("inbox", "replay-cancel", begun["id"], *WHY, "--json"))
    assert stopped["state"] == "cancelled"
    assert shell("inbox", "replay-cancel", begun["id"], *WHY).exit_code == 1
    assert answered(shell("inbox", "replay-resume", begun["id"], *WHY, "--json"))["state"] == "running"

    def work() -> None:
        while advance(deps) or "failed" in states(deps):
            deps.clock.move(timedelta(minutes=5))  # type: ignore[attr-defined]

    with deps.sessions() as session:
        # The shell goes by the database's clock, and the worker of this test by its own.
        deps.clock.move(  # type: ignore[attr-defined]
            session.connection().exec_driver_sql("SELECT now()").scalar_one() - deps.clock.now()
        )
    worker = threading.Thread(target=work)
    worker.start()
    told = shell("inbox", "replay-follow", begun["id"], "--json").stdout
    worker.join()
    ended = json.loads(told[told.index("{") :])  # the worker of this process logs to the same place

    assert (ended["state"], ended["done"]) == ("done", 4)
    assert states(deps) == ["pending"] * 4
    assert begun["id"] in shell("inbox", "replays").stdout
    assert answered(shell("inbox", "replays", "--json"))[0]["done"] == 4
    with deps.sessions() as session:
        acts = [act.action for act in list_actions(session)]
    assert acts == ["bulk_replay.done", "bulk_replay.resume", "bulk_replay.cancel", "bulk_replay.start"]


def test_what_a_replay_of_many_asks_for(shell: Shell, deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reason, a yes, an announcement above the bound; refusals are a sentence with code 1 or 2."""
    monkeypatch.setattr(bulk_replay, "ANNOUNCE_ABOVE", 2)
    monkeypatch.setattr(inbox_bulk, "ANNOUNCE_ABOVE", 2)
    dead(deps, 3)
    assert shell("inbox", "replay-all", "--yes").exit_code == 2
    assert shell("inbox", "replay-all", *WHY, input="n\n").exit_code == 1
    refused = shell("inbox", "replay-all", "--yes", *WHY)
    assert refused.exit_code == 1
    assert "say who was told" in refused.output
    assert "whatever reads them" in refused.output
    assert shell("inbox", "replay-all", "--yes", "--source", "nobody", *WHY).exit_code == 1
    assert shell("inbox", "replay-cancel", "0196b7f6-0000-7000-8000-000000000000", *WHY).exit_code == 1

    started = shell("inbox", "replay-all", "--announcement", "told #shop", *WHY, input="y\n")
    assert started.exit_code == 0
    assert "0 of 3 sent" in started.output
