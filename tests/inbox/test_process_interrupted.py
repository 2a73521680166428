"""Interruptions: a lost connection, a database that is away, a worker that is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event as listener
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox import lane as lane_module
from receiver.inbox.process import Processor
from receiver.orders import decide as rules
from tests.factories import NOW

from .gestures import (
    attempts,
    event,
    ledger,
    outcome,
    register,
    row,
    store,
    transitions,
)


def orders(deps: Deps, number: int) -> list[Any]:
    """Register orders o_0, o_1, … and store a payment of each; returns the payments' row ids."""
    for n in range(number):
        register(deps, f"o_{n}")
    return store(
        deps, *[event("succeeded", order_reference=f"o_{n}", transaction_id=f"tx_{n}") for n in range(number)]
    )


def poison(monkeypatch: pytest.MonkeyPatch, fault: Callable[[Any], None]) -> None:
    """Let the rules do something before they decide."""
    real = rules.decide

    def decide(order: Any, facts: Any, *more: Any, **named: Any) -> Any:
        fault(facts)
        return real(order, facts, *more, **named)

    monkeypatch.setattr(rules, "decide", decide)


def kill_after(deps: Deps, monkeypatch: pytest.MonkeyPatch, fragment: str) -> list[str]:
    """Terminate the worker's own connection after (or at) the first statement that holds a text."""
    done: list[str] = []

    def after(connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if not done and fragment in statement:
            done.append(statement)
            pid = connection.connection.dbapi_connection.info.backend_pid
            with deps.intake_engine.connect() as other:
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})

    listener.listen(deps.engine, "after_cursor_execute", after)
    return done


@pytest.mark.field_case(126)
@pytest.mark.parametrize(
    "fragment",
    [
        "SET state = 'in_flight'",
        "set_config('statement_timeout'",
        "FOR NO KEY UPDATE",
        "INSERT INTO inbox_minutes",
    ],
    ids=["in the claim", "before the work", "in the work", "at the commit"],
)
def test_a_lost_connection_costs_one_round(
    deps: Deps, clock: FixedClock, monkeypatch: pytest.MonkeyPatch, fragment: str
) -> None:
    """The worker's connection is terminated at each stage: the next ticks work, each effect stands once."""
    ids = orders(deps, 3)
    processor = Processor(deps, "w1")
    done = kill_after(deps, monkeypatch, fragment)

    for _ in range(3):
        with suppress(OperationalError):
            processor.tick()
        clock.move(timedelta(seconds=10))

    assert len(done) == 1
    assert [outcome(deps, one)[1] for one in ids] == ["applied"] * 3
    assert [ledger(deps, f"o_{n}") for n in range(3)] == [[("capture", 2500)]] * 3
    assert [list(transitions(deps, f"o_{n}")) for n in range(3)] == [["paid"]] * 3


def test_a_batch_in_hand_when_the_database_goes_is_given_back(
    deps: Deps, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the database away for the whole attempt, the claim is given back by the next tick, not lost."""
    ids = orders(deps, 3)
    processor = Processor(deps, "w1")
    away = OperationalError("SELECT 1", {}, ConnectionError("the database is away"))

    def gone(*_more: Any, **_named: Any) -> Any:
        raise away

    with monkeypatch.context() as patch:
        for name in ("work_batch", "renew", "settle"):
            patch.setattr(lane_module, name, gone)
        with pytest.raises(OperationalError):
            processor.tick()
    assert {row(deps, one).state for one in ids} == {"in_flight"}

    for _ in range(2):
        processor.tick()
        clock.move(timedelta(seconds=10))

    assert [outcome(deps, one)[1] for one in ids] == ["applied"] * 3
    # The row whose attempt had begun alone counts it; those that had not begun do not.
    assert sorted(row(deps, one).attempts for one in ids) == [1, 1, 2]


def test_stop_hands_back_what_was_not_started(deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to stop between claim and work, a worker gives the batch back uncounted, due as it was."""
    ids = orders(deps, 3)
    processor = Processor(deps, "w1")
    real = lane_module.claim

    def claim_then_stop(*more: Any, **named: Any) -> Any:
        rows = real(*more, **named)
        processor.stop()
        return rows

    monkeypatch.setattr(lane_module, "claim", claim_then_stop)
    processor.tick()

    for one in ids:
        back = row(deps, one)
        assert (back.state, back.attempts, back.next_attempt_at) == ("pending", 0, NOW)
        assert attempts(deps, one) == []
    assert processor.tick() == 0


def test_stop_during_single_rows_hands_back_the_rest(deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked to stop while a batch falls apart, the row in hand ends and the others are given back."""
    ids = orders(deps, 4)
    processor = Processor(deps, "w1")
    calls: list[str] = []

    def fault(facts: Any) -> None:
        calls.append(facts.order_reference)
        if len(calls) == 1:
            raise RuntimeError("the batch")
        processor.stop()

    poison(monkeypatch, fault)
    processor.tick()

    assert [row(deps, one).state for one in ids] == ["processed", "pending", "pending", "pending"]
    assert [row(deps, one).attempts for one in ids] == [1, 0, 0, 0]


def test_a_tick_ends_at_its_time(deps: Deps) -> None:
    """A tick whose time is over claims nothing more."""
    orders(deps, 1)

    assert Processor(deps, "w1").tick(limit_seconds=0.0) == 0


def test_wait_idle_tells_of_a_running_tick(deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a tick runs a worker is not idle; afterwards it is."""
    orders(deps, 1)
    processor = Processor(deps, "w1")
    inside, go = threading.Event(), threading.Event()

    def fault(_facts: Any) -> None:
        inside.set()
        go.wait(10)

    poison(monkeypatch, fault)
    thread = threading.Thread(target=processor.tick)
    thread.start()
    inside.wait(10)

    assert processor.wait_idle(0.01) is False
    go.set()
    assert processor.wait_idle(10) is True
    thread.join(10)
