"""Failures of an attempt: poison hurts itself alone, a lock delays its own order, nothing stays behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event as listener
from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox import lane as lane_module
from receiver.inbox import work_batch as batch_module
from receiver.inbox.confirm import Confirmer
from receiver.inbox.intake_statement import NewEvent, Payload, write_events
from receiver.inbox.replay import facts_of
from receiver.orders import decide as rules
from tests.conftest import MakeDeps
from tests.factories import NOW

from .gestures import (
    attempts,
    event,
    outcome,
    receive,
    register,
    row,
    stands,
    store,
    work,
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


def redeliver(deps: Deps, row_id: Any) -> str:
    """Let the intake receive the event again; returns what it was taken for."""
    stored = row(deps, row_id)
    repeated = NewEvent(
        deps.dice.new_id(),
        stored.provider_event_id,
        stored.event_type,
        facts_of(stored),
        stored.facts_sha256,
        stored.payload_sha256,
        deps.dice.new_id(),
        0,
        None,
    )
    with deps.intake_engine.connect() as connection:
        (receipt,) = write_events(
            connection.connection.dbapi_connection,  # type: ignore[arg-type]
            [Payload(repeated.payload_id, b"{}", "[]")],
            [repeated],
            give_up=deps.settings.give_up,
            now=deps.clock.now(),
        )
    assert receipt.id == row_id
    return receipt.result


def test_poison_hurts_itself_alone(deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """One event of a batch makes the code raise: the others are applied, it is released with the fault."""
    ids = orders(deps, 5)

    def fault(facts: Any) -> None:
        if facts.order_reference == "o_2":
            raise ZeroDivisionError("division by zero\0")

    poison(monkeypatch, fault)
    work(deps)

    assert [outcome(deps, one)[1] for one in ids] == ["applied", "applied", None, "applied", "applied"]
    poor = row(deps, ids[2])
    assert (poor.state, poor.attempts, poor.last_error_code) == ("pending", 1, "error:ZeroDivisionError")
    assert poor.last_error == "ZeroDivisionError: division by zero?"
    assert NOW + timedelta(seconds=4) <= poor.next_attempt_at <= NOW + timedelta(seconds=6)
    assert attempts(deps, ids[2]) == [(1, "retry")]
    assert stands(deps, "o_2") == ("pending", 0, 0)


@pytest.mark.field_case(88)
def test_an_event_that_failed_once_is_applied_by_the_next_attempt(
    deps: Deps, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code raises once: the row is not done, and the next attempt applies it; attempts = 2."""
    (row_id,) = orders(deps, 1)
    calls: list[int] = []

    def fault(_facts: Any) -> None:
        calls.append(1)
        if len(calls) <= 2:  # the batch, and the row alone
            raise RuntimeError("once")

    poison(monkeypatch, fault)
    work(deps)
    assert row(deps, row_id).state == "pending"
    assert redeliver(deps, row_id) == "duplicate"
    assert work(deps) == 0
    clock.move(timedelta(seconds=6))
    work(deps)

    done = row(deps, row_id)
    assert (done.state, done.outcome, done.attempts, done.last_error) == ("processed", "applied", 2, None)
    assert attempts(deps, row_id) == [(1, "retry"), (2, "applied")]


@pytest.mark.field_case(102)
def test_rows_that_always_fail_do_not_hold_up_the_others(
    make_deps: MakeDeps, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 rows that always fail, older than 100 good ones, batches of 8: one tick does the good ones."""
    deps = make_deps(batch_size=8)
    register(deps)
    bad = store(
        deps,
        *[event("pending", sequence=n, transaction_id="bad") for n in range(30)],
        give_up_at=NOW + timedelta(minutes=1),
    )
    clock.move(timedelta(seconds=1))
    good = store(deps, *[event("pending", sequence=n) for n in range(100)])

    def fault(facts: Any) -> None:
        if facts.transaction_id == "bad":
            raise RuntimeError("always")

    poison(monkeypatch, fault)
    work(deps)

    with deps.sessions() as session:
        states = dict(
            session.execute(
                text("SELECT state, count(*) FROM webhook_events WHERE transaction_id = 'tx_1' GROUP BY 1")
            ).all()
        )
        left = session.execute(
            text("SELECT DISTINCT state, attempts FROM webhook_events WHERE transaction_id = 'bad'")
        ).all()
    assert states == {"processed": len(good)}
    assert [tuple(one) for one in left] == [("pending", 1)]

    for _ in range(4):
        clock.move(timedelta(seconds=30))
        work(deps)
    assert {outcome(deps, one) for one in bad} == {("expired", "error:RuntimeError", "error:RuntimeError")}


def test_rows_behind_slow_ones_keep_their_lease(
    deps: Deps, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a batch falls apart and its first rows are slow, those that wait for their turn stay ours."""
    ids = orders(deps, 4)

    def fault(facts: Any) -> None:
        if facts.order_reference in ("o_0", "o_1", "o_2"):
            clock.move(timedelta(seconds=40))
            raise RuntimeError("slow")

    poison(monkeypatch, fault)
    seen: list[timedelta] = []
    real = lane_module.renew

    def watch(session: Session, *more: Any, **named: Any) -> Any:
        mine = real(session, *more, **named)
        until = session.execute(
            text("SELECT claimed_until FROM webhook_events WHERE id = :id"), {"id": ids[3]}
        ).scalar_one()
        seen.append(until - clock.at)
        return mine

    monkeypatch.setattr(lane_module, "renew", watch)
    work(deps)

    assert seen == [deps.settings.lease] * 4
    assert outcome(deps, ids[3])[1] == "applied"


@pytest.mark.field_case(124)
def test_an_attempt_that_hangs_is_ended(make_deps: MakeDeps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that hangs ends at the limit as an attempt `timed_out`; others and ticks go on."""
    deps = make_deps(batch_limit=timedelta(seconds=0.3))
    ids = orders(deps, 3)
    real = batch_module.load

    def hang(session: Session, events: Any) -> Any:
        book = real(session, events)
        if any(one.order_reference == "o_1" for one in events):
            session.execute(text("SELECT pg_sleep(60)"))
        return book

    monkeypatch.setattr(batch_module, "load", hang)
    started = time.monotonic()
    work(deps)

    assert time.monotonic() - started < 10
    assert [outcome(deps, one)[1] for one in ids] == ["applied", None, "applied"]
    hung = row(deps, ids[1])
    assert (hung.state, hung.last_error_code, hung.attempts) == ("pending", "timed_out", 1)
    with deps.sessions() as session:
        duration = session.execute(
            text("SELECT duration_ms FROM webhook_event_attempts WHERE event_id = :id"), {"id": ids[1]}
        ).scalar_one()
    assert 300 <= duration < 10_000
    later = store(deps, event("pending", order_reference="o_0", transaction_id="tx_9"))
    work(deps)
    assert outcome(deps, later[0])[1] == "applied"


def test_an_error_keeps_no_statement_and_no_parameters(deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row's error names the database's fault, never the statement's values or a URL's password."""
    (row_id,) = orders(deps, 1)

    def broken(session: Session, _events: Any) -> Any:
        session.execute(text("SELECT CAST(:secret AS int)"), {"secret": "postgresql://u:p4ss@h/db"})

    monkeypatch.setattr(batch_module, "load", broken)
    work(deps)

    failed = row(deps, row_id)
    assert failed.last_error_code == "error:InvalidTextRepresentation"
    assert failed.last_error is not None
    assert "p4ss" not in failed.last_error
    assert "SELECT" not in failed.last_error


def test_a_row_once_lost_is_worked_alone(deps: Deps, clock: FixedClock) -> None:
    """A row that was lost with a worker is worked in a transaction of its own, after the batch."""
    ids = orders(deps, 3)
    with deps.sessions.begin() as session:
        session.execute(
            text("UPDATE webhook_events SET lost = 1, attempts = 1 WHERE id = :id"), {"id": ids[0]}
        )
    sizes: list[int] = []
    listener.listen(
        deps.engine,
        "before_cursor_execute",
        lambda *call: sizes.append(len(call[3]["ids"].values)) if "late_states" in str(call[3]) else None,
    )
    lane = lane_module.Lane(deps, "w1", Confirmer(deps), lambda: False)

    assert lane.batch() == 2
    assert lane.lost_row() == 1
    assert sizes == [2, 1]
    assert [outcome(deps, one)[1] for one in ids] == ["applied"] * 3
    assert receive(deps) == []
