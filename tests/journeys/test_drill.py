"""The drill: many events dead for three reasons are found by cause, repaired, replayed, and all explained.

`DRILL_EVENTS=50000` runs it at full size; a fifth of the events die.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from receiver.accounts.actions import list_actions
from receiver.deps import Deps
from receiver.inbox import bulk_replay
from receiver.inbox.bulk_replay import (
    ANNOUNCE_ABOVE,
    advance,
    cancel_bulk_replay,
    find_bulk_replay,
    resume_bulk_replay,
    start_bulk_replay,
)
from receiver.inbox.claimed import COLUMNS
from receiver.inbox.correct_order import correct_order
from receiver.inbox.dry_run import dry_run
from receiver.inbox.duties import expire_events, reclaim_events
from receiver.inbox.failure_groups import Group, list_groups, set_group
from receiver.inbox.intake_statement import NewEvent, Payload, write_events
from receiver.inbox.process import Processor
from receiver.inbox.register_order import register_order
from receiver.inbox.table import INBOX
from receiver.providers.registry import provider
from receiver.queue.claim import claim, claim_lost
from tests import posting

EVENTS = int(os.environ.get("DRILL_EVENTS", "3000"))
EACH = EVENTS // 15
"""Dead events of each of the three reasons."""

REFERENCES = {
    "poison": [f"poison_{n}" for n in range(EACH)],
    "currency": [f"currency_{n}" for n in range(EACH)],
    "unknown": [f"unknown_{n}" for n in range(EACH)],
    "good": [f"good_{n}" for n in range(EVENTS - 3 * EACH - EVENTS // 10)],
    "live": [f"live_{n}" for n in range(EVENTS // 10)],
}


class Drill:
    """One night at the desk, on a clock that is moved by hand."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps
        self.worker = Processor(deps, "w1")

    def later(self, **by: float) -> None:
        """Move the clock."""
        self.deps.clock.move(timedelta(**by))  # type: ignore[attr-defined]

    def act(self, act: Any, *arguments: Any, **values: Any) -> Any:
        """Do one act at the clock's time, in a transaction of its own."""
        with self.deps.sessions.begin() as session:
            return act(session, *arguments, now=self.deps.clock.now(), **values)

    def register(self, kind: str, currency: str = "EUR") -> None:
        """Register the orders of a kind."""
        with self.deps.sessions.begin() as session:
            for reference in REFERENCES[kind]:
                register_order(
                    session,
                    order_id=self.deps.dice.new_id(),
                    reference=reference,
                    amount_minor=2500,
                    currency=currency,
                    now=self.deps.clock.now(),
                )

    def receive(self, references: list[str]) -> None:
        """Payments of these orders come in, through the intake's own statement."""
        reader = provider("demo")
        with self.deps.sessions.begin() as session:
            connection: Any = session.connection().connection.driver_connection
            for start in range(0, len(references), 500):
                payloads, events = [], []
                for reference in references[start : start + 500]:
                    body = posting.payment(f"evt_{reference}", reference)
                    (read,) = reader.read("demo", {}, body)
                    payload = Payload(self.deps.dice.new_id(), body, "[]")
                    payloads.append(payload)
                    events.append(
                        NewEvent(
                            id=self.deps.dice.new_id(),
                            provider_event_id=read.provider_event_id,
                            event_type=read.event_type,
                            facts=read.facts,
                            facts_sha256=read.facts_sha256,
                            payload_sha256=read.payload_sha256,
                            payload_id=payload.id,
                            item=0,
                            key_id=None,
                        )
                    )
                give_up = self.deps.settings.give_up
                write_events(connection, payloads, events, give_up=give_up, now=self.deps.clock.now())

    def work(self) -> None:
        """The worker drains what is due."""
        self.worker.tick(600)

    def kill_workers(self) -> None:
        """Three workers die over every event that is there: poison takes them along."""
        lease = self.deps.settings.lease
        for died in range(3):
            again = True
            while again:
                take, more = (claim_lost, {}) if died else (claim, {"batch": 1000})
                again = bool(
                    self.act(
                        take,
                        INBOX,
                        COLUMNS,
                        claim_id=self.deps.dice.new_id(),
                        worker=f"died_{died}",
                        lease=lease,
                        **more,
                    )
                )
            self.later(seconds=lease.total_seconds() + 1)
            while reclaim_events(self.deps):
                pass

    def groups(self) -> dict[str, Group]:
        """The groups by their reason."""
        with self.deps.sessions() as session:
            return {group.key.reason: group for group in list_groups(session)}

    def replay(self, group: Group, **values: Any) -> Any:
        """Start to replay a group as an admin."""
        return self.act(
            start_bulk_replay,
            replay_id=self.deps.dice.new_id(),
            filter=group.key.filter(),
            actor="ada",
            reason=f"repaired {group.key.reason}",
            admin=True,
            announcement="told the shop" if group.count.number > ANNOUNCE_ABOVE else None,
            **values,
        )

    def run_for(self, minutes: float) -> None:
        """Let the worker's duties run."""
        for _ in range(int(minutes * 6)):
            advance(self.deps)
            self.work()
            self.later(seconds=10)

    def would_be(self, group: Group) -> Counter[str]:
        """What a dry run of a group says."""
        with self.deps.sessions() as session:
            found = dry_run(session, self.deps.settings, group.key.filter(), limit=100_000)
        return Counter({each.reason or each.outcome: each.count for each in found.outcomes})

    def count(self, statement: str) -> Any:
        """One number or text out of the database."""
        with self.deps.sessions() as session:
            return session.execute(text(statement)).scalar_one()


@pytest.mark.slow
def test_the_drill(deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """From three piles of dead letters to every order right, every row explained, and a record of it all."""
    monkeypatch.setattr(bulk_replay, "TURN_SECONDS", 60.0)
    drill = Drill(deps)
    happen(drill)

    groups = drill.groups()
    assert {reason: group.count.number for reason, group in groups.items()} == {
        "worker_lost": EACH,
        "currency": EACH,
        "order_unknown": EACH,
    }
    for group in groups.values():
        drill.act(set_group, group.key, state="acknowledged", note="on it", actor="ada", reason="seen")
    assert drill.would_be(groups["currency"]) == {"currency": EACH}
    assert drill.would_be(groups["order_unknown"]) == {"order_unknown": EACH}

    repair(drill)
    assert all(drill.would_be(group) == {"applied": EACH} for group in groups.values())
    replay_all(drill, groups)

    assert drill.groups() == {}
    assert drill.count("SELECT count(*) FROM webhook_events") == EVENTS
    assert (
        drill.count("SELECT count(*) FROM webhook_events WHERE outcome <> 'applied' OR outcome IS NULL") == 0
    )
    assert drill.count("SELECT count(*) FROM orders WHERE state = 'paid' AND captured_minor = 2500") == EVENTS
    assert drill.count("SELECT count(*) FROM ledger_entries WHERE kind = 'capture'") == EVENTS
    assert drill.count("SELECT max(replays) FROM webhook_events") == 1
    assert drill.count("SELECT count(*) FROM webhook_events WHERE replays = 1") == 3 * EACH
    assert drill.count("SELECT count(*) FROM webhook_event_attempts WHERE outcome = 'lost'") == 3 * EACH
    tell_the_story(drill)


def happen(drill: Drill) -> None:
    """What went wrong before anybody looked."""
    drill.register("poison")
    drill.receive(REFERENCES["poison"])
    drill.kill_workers()
    drill.register("good")
    drill.register("currency", "USD")
    drill.receive([*REFERENCES["good"], *REFERENCES["currency"], *REFERENCES["unknown"]])
    drill.work()
    drill.later(hours=73)
    drill.work()
    drill.later(minutes=2)
    expire_events(drill.deps)


def repair(drill: Drill) -> None:
    """The currency is set right, the batch of orders is registered, the poison is fixed in the code."""
    for reference in REFERENCES["currency"]:
        drill.act(correct_order, reference, currency="EUR", actor="ada", reason="a wrong setting")
    drill.register("unknown")


def replay_all(drill: Drill, groups: dict[str, Group]) -> None:
    """One group with a cancel and a restart, the others side by side, and live events meanwhile."""
    first = drill.replay(groups["currency"])
    drill.run_for(1)
    drill.act(cancel_bulk_replay, first.id, actor="ada", reason="is the shop ready?")
    drill.register("live")
    drill.receive(REFERENCES["live"])
    drill.run_for(2)
    with drill.deps.sessions() as session:
        stopped = find_bulk_replay(session, first.id)
    assert 0 < stopped.done < EACH
    assert drill.groups()["currency"].count.number == EACH - stopped.done
    assert drill.count("SELECT count(*) FROM orders WHERE reference LIKE 'live%' AND state = 'paid'") == len(
        REFERENCES["live"]
    )

    drill.act(resume_bulk_replay, first.id, actor="ada", reason="it is")
    others = [drill.replay(groups[reason]) for reason in ("worker_lost", "order_unknown")]
    drill.run_for(6)
    with drill.deps.sessions() as session:
        for replay in (first, *others):
            ended = find_bulk_replay(session, replay.id)
            assert (ended.state, ended.done, ended.skipped) == ("done", EACH, 0)
    for group in groups.values():
        drill.act(set_group, group.key, state="resolved", actor="ada", reason="all applied")


def tell_the_story(drill: Drill) -> None:
    """The record, oldest first, says who looked, repaired, replayed, stopped, went on, and resolved."""
    acts: list[str] = []
    with drill.deps.sessions() as session:
        before = None
        while page := list_actions(session, before, 500):
            acts += [f"{act.actor} {act.action}" for act in page if act.reason]
            before = page[-1].id
    acts.reverse()
    told = list(dict.fromkeys(acts))
    assert told == [
        "ada group.set",
        "ada order.correct",
        "ada bulk_replay.start",
        "ada bulk_replay.cancel",
        "ada bulk_replay.resume",
        "system bulk_replay.done",
    ]
    assert Counter(acts) == {
        "ada group.set": 6,
        "ada order.correct": EACH,
        "ada bulk_replay.start": 3,
        "ada bulk_replay.cancel": 1,
        "ada bulk_replay.resume": 1,
        "system bulk_replay.done": 3,
    }
