"""Failures of an attempt: poison hurts itself alone, a lock delays its own order, nothing stays behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event as listener
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox import process as process_module
from receiver.inbox import work_batch as batch_module
from receiver.inbox.process import Processor
from receiver.orders import decide as rules
from tests.conftest import MakeDeps
from tests.factories import NOW

from .gestures import (
    attempts,
    event,
    ledger,
    outcome,
    receive,
    register,
    row,
    stands,
    store,
    transitions,
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


@contextmanager
def locked(deps: Deps, reference: str) -> Iterator[None]:
    """Hold an order's row locked in another transaction."""
    with deps.sessions() as other:
        other.execute(text("SELECT 1 FROM orders WHERE reference = :r FOR UPDATE"), {"r": reference})
        yield
        other.rollback()


@pytest.fixture
def quick_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a locked order for less than two seconds."""
    monkeypatch.setattr(process_module, "LOCK_TIMEOUT", "150ms")


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


@pytest.mark.field_case(131)
def test_a_locked_order_delays_its_own_events_only(deps: Deps, quick_locks: None) -> None:
    """An order held locked elsewhere: its own events are deferred, uncounted; the others' go on."""
    ids = orders(deps, 6)
    ids += store(
        deps,
        event("pending", order_reference="o_3", transaction_id="tx_3"),
        event("refunded", order_reference=None, transaction_id="tx_3", effect_id="rf_1"),
    )

    with locked(deps, "o_3"):
        started = time.monotonic()
        work(deps)
        took = time.monotonic() - started

    assert [outcome(deps, one)[1] for one in ids[:6]] == [*["applied"] * 3, None, *["applied"] * 2]
    for one in (ids[3], ids[6]):
        deferred = row(deps, one)
        assert (deferred.state, deferred.attempts, deferred.last_error_code) == ("pending", 0, "order_locked")
        assert deferred.next_attempt_at == NOW + timedelta(seconds=5)
        assert attempts(deps, one) == []
    assert took < 5


def test_a_deferred_event_is_worked_when_the_lock_is_gone(
    deps: Deps, clock: FixedClock, quick_locks: None
) -> None:
    """Ten minutes of lock cost ten minutes, no attempt and no outcome."""
    (row_id,) = orders(deps, 1)
    with locked(deps, "o_0"):
        for _ in range(5):
            work(deps)
            clock.move(timedelta(minutes=2))
    work(deps)

    done = row(deps, row_id)
    assert (done.outcome, done.attempts, done.last_error) == ("applied", 1, None)
    assert attempts(deps, row_id) == [(1, "applied")]


def test_one_wait_is_enough_for_all_events_of_a_locked_order(deps: Deps, quick_locks: None) -> None:
    """40 events of one locked order wait for it twice, in the batch and once alone, not 41 times."""
    register(deps)
    register(deps, "o_2")
    ids = store(deps, *[event("pending", sequence=n) for n in range(40)])
    (other,) = store(deps, event("succeeded", order_reference="o_2", transaction_id="tx_2"))

    with locked(deps, "o_1"):
        started = time.monotonic()
        work(deps)
        took = time.monotonic() - started

    assert took < 40 * 0.15
    assert outcome(deps, other)[1] == "applied"
    assert {row(deps, one).attempts for one in ids} == {0}


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
    real = process_module.renew

    def watch(session: Session, *more: Any, **named: Any) -> Any:
        mine = real(session, *more, **named)
        until = session.execute(
            text("SELECT claimed_until FROM webhook_events WHERE id = :id"), {"id": ids[3]}
        ).scalar_one()
        seen.append(until - clock.at)
        return mine

    monkeypatch.setattr(process_module, "renew", watch)
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
            patch.setattr(process_module, name, gone)
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
    real = process_module.claim

    def claim_then_stop(*more: Any, **named: Any) -> Any:
        rows = real(*more, **named)
        processor.stop()
        return rows

    monkeypatch.setattr(process_module, "claim", claim_then_stop)
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
    processor = Processor(deps, "w1")

    assert processor.batch() == 2
    assert processor.lost_row() == 1
    assert sizes == [2, 1]
    assert [outcome(deps, one)[1] for one in ids] == ["applied"] * 3
    assert receive(deps) == []
