"""Real worker processes, really killed: nothing is lost, nothing is doubled, every effect stands once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from receiver.deps import Deps
from receiver.dice import Dice
from receiver.inbox.register_order import register_order
from tests.factories import make_event
from tests.running import Child, rows, run_web, run_worker, wait_for, waiting_on_locks

QUICK = {"LEASE_SECONDS": "5", "BATCH_LIMIT_SECONDS": "4", "BATCH_SIZE": "20"}

STAGES = {
    "before the work": "LOCK TABLE orders IN ACCESS EXCLUSIVE MODE",
    "in the work": "SELECT 1 FROM orders FOR UPDATE",
    "before the commit": "LOCK TABLE inbox_minutes IN ACCESS EXCLUSIVE MODE",
}


def payments(deps: Deps, number: int, start: int = 0) -> None:
    """Register orders and store a payment of each, by the database's clock."""
    dice = Dice()
    with deps.sessions.begin() as session:
        now = session.connection().exec_driver_sql("SELECT now()").scalar_one()
        for n in range(start, start + number):
            register_order(
                session, order_id=dice.new_id(), reference=f"o_{n}", amount_minor=2500, currency="EUR"
            )
            make_event(session, at=now, payload=None, order_reference=f"o_{n}", transaction_id=f"tx_{n}")


@contextmanager
def held(url: str, statement: str) -> Iterator[None]:
    """Hold a lock in a transaction of the test's own."""
    with psycopg.connect(url) as connection:
        connection.execute(statement)  # type: ignore[arg-type]
        yield
        connection.rollback()


def counts(url: str) -> dict[str, Any]:
    """What stands in the tables that a doubled or lost effect would show in."""
    return rows(
        url,
        "SELECT (SELECT count(*) FROM webhook_events WHERE outcome = 'applied') AS applied,"
        " (SELECT count(*) FROM webhook_events WHERE state IN ('pending', 'in_flight')) AS open,"
        " (SELECT count(*) FROM ledger_entries) AS ledger,"
        " (SELECT count(*) FROM order_transitions) AS transitions,"
        " (SELECT count(*) FROM orders WHERE state = 'paid') AS paid,"
        " (SELECT coalesce(sum(count), 0)::int FROM inbox_minutes WHERE result = 'applied') AS counted",
    )[0]


def all_applied(url: str, number: int) -> bool:
    """Whether each of so many payments is applied once and counted once."""
    return counts(url) == {
        "applied": number,
        "open": 0,
        "ledger": number,
        "transitions": number,
        "paid": number,
        "counted": number,
    }


def in_flight(url: str) -> int:
    """How many events some worker has."""
    return int(rows(url, "SELECT count(*) AS n FROM webhook_events WHERE state = 'in_flight'")[0]["n"])


def end_leases(url: str) -> None:
    """Let the leases of a dead worker be over now."""
    rows(url, "UPDATE webhook_events SET claimed_until = now() - interval '1 s' WHERE state = 'in_flight'")


def no_backend_left(url: str, child: Child) -> None:
    """Wait until the database noticed that a killed worker is gone."""
    statement = (
        "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'receiver' AND state <> 'idle' AND pid <> pg_backend_pid()"
    )
    assert child.process.poll() is not None
    wait_for(lambda: rows(url, statement)[0]["n"] == 0, what="the killed worker's transaction is gone")


@pytest.mark.field_case(99)
@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_worker_killed_at_each_stage(deps: Deps, database_url: str, stage: str) -> None:
    """SIGKILL between claim and work, in the work, before the commit: another worker does it all, once."""
    payments(deps, 5)
    with held(database_url, STAGES[stage]), run_worker(database_url, environment=QUICK) as killed:
        wait_for(lambda: waiting_on_locks(database_url), what="the worker waits for our lock")
        assert in_flight(database_url) == 5
        killed.kill()
    no_backend_left(database_url, killed)
    assert in_flight(database_url) == 5
    assert counts(database_url)["ledger"] == 0

    end_leases(database_url)
    with run_worker(database_url, environment=QUICK):
        wait_for(lambda: all_applied(database_url, 5), what="the next worker applies everything")

    history = rows(
        database_url, "SELECT attempt, outcome FROM webhook_event_attempts ORDER BY event_id, attempt"
    )
    assert [(one["attempt"], one["outcome"]) for one in history] == [(1, "lost"), (2, "applied")] * 5


@pytest.mark.field_case(99)
@pytest.mark.slow
def test_the_lease_alone_brings_a_killed_workers_row_back(deps: Deps, database_url: str) -> None:
    """A second worker that lives all along takes the row over once the lease is over, not before."""
    payments(deps, 1)
    with run_worker(database_url, environment=QUICK) as killed:
        with held(database_url, STAGES["in the work"]):
            wait_for(lambda: waiting_on_locks(database_url), what="the worker waits for our lock")
            killed.kill()
        no_backend_left(database_url, killed)
        with run_worker(database_url, environment=QUICK):
            wait_for(lambda: all_applied(database_url, 1), 20, "the lease ends and the row is done")

    took = rows(
        database_url,
        "SELECT extract(epoch FROM finished_at - received_at) AS seconds, attempts FROM webhook_events",
    )[0]
    assert took["seconds"] >= 4
    assert took["attempts"] == 2


@pytest.mark.slow
def test_sigterm_hands_back_and_exits_cleanly(deps: Deps, database_url: str) -> None:
    """SIGTERM while a batch waits: what was not done is given back uncounted, the worker leaves, exit 0."""
    payments(deps, 5)
    with (
        held(database_url, STAGES["before the work"]),
        run_worker(database_url, environment=QUICK) as worker,
    ):
        wait_for(lambda: waiting_on_locks(database_url), what="the worker waits for our lock")
        wait_for(lambda: len(rows(database_url, "SELECT * FROM workers")) == 1, what="the heartbeat")

        assert worker.end() == 0

        back = rows(database_url, "SELECT DISTINCT state, attempts FROM webhook_events")
        assert back == [{"state": "pending", "attempts": 0}]
        assert rows(database_url, "SELECT * FROM workers") == []
        assert "worker.stopped" in worker.log()
        assert "Traceback" not in worker.log()


@pytest.mark.slow
def test_a_second_signal_changes_nothing(deps: Deps, database_url: str) -> None:
    """Ctrl-C and a parent's SIGTERM together end a worker as one signal does."""
    payments(deps, 2)
    with (
        held(database_url, STAGES["before the work"]),
        run_worker(database_url, environment=QUICK) as worker,
    ):
        wait_for(lambda: waiting_on_locks(database_url), what="the worker waits for our lock")
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            os.kill(worker.process.pid, sent)

        assert worker.end() == 0
        assert "Traceback" not in worker.log()
        assert in_flight(database_url) == 0


@pytest.mark.field_case(122)
@pytest.mark.slow
def test_two_workers_and_four_web_processes_work_each_event_once(deps: Deps, database_url: str) -> None:
    """Two workers at once beside four web processes: each event once, and two schedulers are shown alive."""
    with (
        run_web(database_url, environment={"WEB_CONCURRENCY": "4"}),
        run_worker(database_url, environment={**QUICK, "WORKER_NAME": "w1"}),
        run_worker(database_url, environment={**QUICK, "WORKER_NAME": "w2"}),
    ):
        for start in range(0, 150, 50):
            payments(deps, 50, start)
        wait_for(lambda: all_applied(database_url, 150), 30, "everything is applied once")

        names = [one["name"] for one in rows(database_url, "SELECT name FROM workers ORDER BY name")]
        assert names == ["w1", "w2"]
        tried = rows(database_url, "SELECT count(*) AS n, max(attempt) AS most FROM webhook_event_attempts")
        assert tried == [{"n": 150, "most": 1}]


@pytest.mark.field_case(101)
@pytest.mark.slow
def test_a_sweep_killed_under_its_lock_runs_again(deps: Deps, database_url: str) -> None:
    """SIGKILL while the reclaim holds its rows: its locks die with its connection, the next sweep does it."""
    payments(deps, 3)
    rows(
        database_url,
        "UPDATE webhook_events SET state = 'in_flight', attempts = 1, claim_id = gen_random_uuid(),"
        " claimed_by = 'gone', claimed_at = now() - interval '2 min',"
        " claimed_until = now() - interval '1 min'",
    )
    blocked = "LOCK TABLE webhook_event_attempts IN ACCESS EXCLUSIVE MODE"
    with held(database_url, blocked), run_worker(database_url, environment=QUICK) as killed:
        wait_for(lambda: waiting_on_locks(database_url), what="the sweep waits for our lock")
        killed.kill()
    no_backend_left(database_url, killed)
    assert in_flight(database_url) == 3

    with run_worker(database_url, environment=QUICK):
        wait_for(lambda: all_applied(database_url, 3), what="the next sweep and worker do it")

    lost = rows(database_url, "SELECT lost, attempts FROM webhook_events")
    assert lost == [{"lost": 1, "attempts": 2}] * 3


@pytest.mark.slow
def test_poison_that_kills_workers_dies_alone(deps: Deps, database_url: str) -> None:
    """An event that takes three workers along fails `worker_lost`; its innocent neighbours are applied."""
    payments(deps, 3)
    stage = "SELECT 1 FROM orders WHERE reference = 'o_1' FOR UPDATE"
    for _ in range(3):
        with held(database_url, stage), run_worker(database_url, environment=QUICK) as killed:
            wait_for(lambda: waiting_on_locks(database_url), what="the worker waits for the poison's order")
            killed.kill()
        no_backend_left(database_url, killed)
        end_leases(database_url)
    with run_worker(database_url, environment=QUICK):
        wait_for(lambda: counts(database_url)["open"] == 0, what="nothing is left")

    ends = rows(database_url, "SELECT order_reference, outcome FROM webhook_events ORDER BY order_reference")
    assert [(one["order_reference"], one["outcome"]) for one in ends] == [
        ("o_0", "applied"),
        ("o_1", "worker_lost"),
        ("o_2", "applied"),
    ]
