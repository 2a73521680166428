"""Many workers at once, on the same orders and on the same rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from sqlalchemy import event as listener
from sqlalchemy import text

from receiver.deps import Deps
from receiver.inbox.correct_order import NotCorrectable, correct_order
from receiver.inbox.process import Processor
from tests.conftest import MakeDeps
from tests.factories import NOW

from .gestures import event, receive, register, store, work


def together(*acts: Callable[[], object]) -> list[BaseException]:
    """Run acts at once, each in a thread; returns what they raised."""
    start, failed = threading.Barrier(len(acts)), []

    def run(act: Callable[[], object]) -> None:
        start.wait()
        try:
            act()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
        assert not thread.is_alive()
    return failed


@pytest.mark.field_case(94)
def test_many_workers_and_an_operator_on_the_same_orders(make_deps: MakeDeps) -> None:
    """200 orders, three events each, eight workers and an operator at once: all applied, none failed."""
    deps = make_deps(batch_size=25)
    for number in range(200):
        register(deps, f"o_{number:03}")
    # Stored in opposite orders, so that the batches of two workers overlap crosswise.
    for kind, numbers in (
        ("succeeded", range(200)),
        ("refunded", range(199, -1, -1)),
        ("dispute_opened", range(0, 400, 2)),
    ):
        for number in (n % 200 for n in numbers):
            store(
                deps,
                event(
                    kind,
                    order_reference=f"o_{number:03}",
                    transaction_id=f"tx_{number}",
                    effect_id=None if kind == "succeeded" else f"{kind}_{number}_{len(kind)}",
                    amount_minor=2500 if kind == "succeeded" else 100,
                ),
            )

    def operate() -> None:
        for number in range(0, 200, 3):
            with deps.sessions.begin() as session, suppress(NotCorrectable):
                correct_order(
                    session, f"o_{number:03}", sources=["demo", "lesson"], actor="olga", reason="test"
                )

    failed = together(operate, *(Processor(deps, f"w{number}").tick for number in range(8)))
    # Rows that a worker passed over at its last look, or that waited for their capture.
    work(deps)

    assert failed == []
    with deps.sessions() as session:
        ends = session.execute(
            text("SELECT state, outcome, count(*) FROM webhook_events GROUP BY 1, 2 ORDER BY 3")
        ).all()
        sums = session.execute(
            text("SELECT count(*), sum(captured_minor), sum(refunded_minor) FROM orders")
        ).one()
        retried = session.execute(
            text("SELECT count(*) FROM webhook_event_attempts WHERE outcome = 'retry'")
        ).scalar_one()
    assert {(state, outcome) for state, outcome, _ in ends} == {
        ("processed", "applied"),
        ("processed", "repeat"),
    }
    assert tuple(sums) == (200, 200 * 2500, 200 * 100)
    assert retried == 0


@pytest.mark.field_case(93)
def test_each_event_is_worked_once_by_many_workers(make_deps: MakeDeps) -> None:
    """1,000 events of 50 orders and eight workers: 1,000 attempts, one each, and none is left."""
    deps = make_deps(batch_size=20)
    for number in range(50):
        register(deps, f"o_{number}")
    with deps.sessions.begin() as session:
        session.execute(
            text(
                "INSERT INTO webhook_events (id, source, provider_event_id, kind, order_reference,"
                " transaction_id, sequence, facts_sha256, payload_sha256, received_at, last_received_at,"
                " created_at, updated_at, next_attempt_at, give_up_at)"
                " SELECT gen_random_uuid(), 'demo', 'evt_' || n, 'pending', 'o_' || n % 50,"
                " 'tx_' || n % 50, n, '\\x00', '\\x00',"
                " :now, :now, :now, :now, :now, :now + interval '72 hours'"
                " FROM generate_series(1, 1000) n"
            ),
            {"now": NOW},
        )

    failed = together(*(Processor(deps, f"w{number}").tick for number in range(8)))
    work(deps)

    assert failed == []
    with deps.sessions() as session:
        assert session.execute(
            text("SELECT count(*), count(DISTINCT event_id), max(attempt) FROM webhook_event_attempts")
        ).one() == (1000, 1000, 1)
        assert session.execute(text("SELECT DISTINCT state FROM webhook_events")).scalars().all() == [
            "processed"
        ]


def test_the_worker_reads_no_payload(deps: Deps) -> None:
    """The plain case is worked from the event's own columns: the payloads' table is not touched."""
    register(deps)
    store(deps, event("succeeded"))
    seen: list[str] = []
    listener.listen(deps.engine, "before_cursor_execute", lambda *call: seen.append(call[2]))

    receive(deps)
    work(deps)

    assert seen
    assert not any("webhook_payloads" in statement for statement in seen)
