"""What the intake does when the database stalls, refuses or is gone: bounded waits, no innocent pays."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from receiver.inbox.intake import Intake, IntakeUnavailable
from receiver.inbox.receive import store
from receiver.providers.registry import provider
from tests.posting import payment
from tests.running import rows, wait_for


class Writer:
    """An intake with a short deadline, and the database behind it."""

    def __init__(self, deps: Any) -> None:
        self.deps = deps
        self.url = deps.settings.database_url
        self.intake = Intake(deps)

    def write(self, *bodies: bytes) -> Any:
        events = [event for body in bodies for event in provider("demo").read("demo", {}, body)]
        return store(self.deps, self.intake, events, body=bodies[0], headers=[], key_id="k")

    def lose(self, act: str, times: int = 1) -> None:
        """Let the first ``times`` inserts meet with ``act`` (PL/pgSQL)."""
        rows(self.url, "CREATE SEQUENCE lost")
        rows(
            self.url,
            "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF nextval('lost') <= {times} THEN {act}; END IF; RETURN NEW; END $$",
        )
        rows(self.url, "CREATE TRIGGER lose BEFORE INSERT ON webhook_events EXECUTE FUNCTION lose()")


def raising(code: str) -> str:
    return f"RAISE 'lost' USING ERRCODE = '{code}'"


@pytest.fixture
def writer(make_deps):
    made = []

    def make(seconds: float = 4.0) -> Writer:
        made.append(Writer(make_deps(intake_timeout=timedelta(seconds=seconds))))
        return made[-1]

    yield make
    for writer in made:
        writer.intake.close()


@pytest.mark.parametrize("code", ["40001", "40P01", "57P01", "08006", "25006"])
def test_a_clash_or_a_lost_connection_is_tried_once_more(writer, code):
    """Serialization failure, deadlock, shutdown, lost connection, a demoted primary: once more, then 503."""
    one = writer()
    one.lose(raising(code))

    (receipt,) = one.write(payment("evt_1", "o_1"))

    assert receipt.result == "new"


def test_a_clash_that_lasts_is_refused(writer):
    """Twice is enough: the provider comes again."""
    one = writer()
    one.lose(raising("40001"), times=2)

    with pytest.raises(IntakeUnavailable):
        one.write(payment("evt_1", "o_1"))

    assert one.write(payment("evt_1", "o_1"))[0].result == "new"


def test_a_stalled_statement_ends_at_the_deadline_and_its_connection_is_given_up(writer):
    """A statement that hangs gives 503 in time, and the next post works."""
    one = writer(0.6)
    one.lose("PERFORM pg_sleep(20)")
    began = time.monotonic()

    with pytest.raises(IntakeUnavailable) as refused:
        one.write(payment("evt_1", "o_1"))

    assert refused.value.code == "stalled"
    assert time.monotonic() - began < 2
    assert one.write(payment("evt_2", "o_2"))[0].result == "new"


def test_a_request_that_gives_up_cuts_no_statement_that_others_wait_for(writer):
    """Under load each deadline that passes must not break the work that still has time."""
    one = writer(10.0)
    one.lose("PERFORM pg_sleep(1)", times=2)
    with ThreadPoolExecutor(2) as pool:
        early = [pool.submit(one.write, payment("evt_0", "o"))]
        wait_for(lambda: _asleep(one) == 1)
        early.append(pool.submit(one.write, payment("evt_1", "o")))
        wait_for(lambda: _asleep(one) == 2)
        # This one waits in the queue behind both, and has less time.
        one.intake._timeout = 0.1
        with pytest.raises(IntakeUnavailable):
            one.write(payment("evt_late", "o"))
        assert [answer.result(5)[0].result for answer in early] == ["new", "new"]


def _asleep(one: Writer) -> int:
    (row,) = rows(one.url, "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    return int(row["n"])


def test_a_row_locked_elsewhere_delays_its_own_duplicates_alone(writer):
    """Somebody holds one event's row: its duplicate gets 503, the others of the group their receipts."""
    one = writer()
    one.write(payment("evt_held", "o"))
    with one.deps.engine.connect() as held, ThreadPoolExecutor(20) as pool:
        held.execute(text("SELECT 1 FROM webhook_events FOR UPDATE"))
        began = time.monotonic()
        names = [f"evt_{n}" if n % 5 else "evt_held" for n in range(20)]
        answers = [pool.submit(one.write, payment(name, "o")) for name in names]
        failures = {name for name, answer in zip(names, answers, strict=True) if answer.exception(10)}
        took = time.monotonic() - began

    assert failures == {"evt_held"}
    assert took < 5
    assert one.write(payment("evt_held", "o"))[0].result == "duplicate"


def test_an_exhausted_pool_is_503_in_time(writer):
    """All connections of the intake are taken: the answer comes within five seconds, then it works again."""
    one = writer()
    taken = [one.deps.intake_engine.raw_connection() for _ in range(4)]
    began = time.monotonic()

    with pytest.raises(IntakeUnavailable):
        one.write(payment("evt_1", "o_1"))

    assert time.monotonic() - began < 5
    for connection in taken:
        connection.close()
    assert one.write(payment("evt_1", "o_1"))[0].result == "new"


def test_terminated_connections_cost_nothing(writer):
    """After pg_terminate_backend on every connection the next post is stored, at once."""
    one = writer()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: one.write(payment(f"evt_{n}", "o")), range(40)))
    rows(
        one.url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND datname = current_database()",
    )

    assert [one.write(payment(f"evt_x{n}", "o"))[0].result for n in range(4)] == ["new"] * 4


def test_too_many_waiting_are_refused_at_once(writer, monkeypatch):
    """What would be answered too late anyway is refused without waiting."""
    monkeypatch.setattr("receiver.inbox.intake.MAX_WAITING", 0)
    one = writer()
    began = time.monotonic()

    with pytest.raises(IntakeUnavailable) as refused:
        one.write(payment("evt_1", "o_1"))

    assert refused.value.code == "overloaded"
    assert time.monotonic() - began < 1


@pytest.mark.field_case(90)
@pytest.mark.field_case(94)
def test_requests_with_the_same_keys_in_any_order_never_deadlock(writer, server):
    """Batches naming the same ids in opposite orders, from three intakes: one row an id, no failure."""
    writers = [writer() for _ in range(3)]
    names = [f"evt_{n}" for n in range(12)]

    def send(number: int) -> list[str]:
        turned = names[number % 12 :] + names[: number % 12]
        ordered = turned if number % 2 else turned[::-1]
        return [r.result for r in writers[number % 3].write(*(payment(name, "o") for name in ordered))]

    with ThreadPoolExecutor(60) as pool:
        results = [result for answer in pool.map(send, range(120)) for result in answer]

    assert results.count("new") == 12
    assert set(results) == {"new", "duplicate"}
    assert rows(writers[0].url, "SELECT DISTINCT receipts FROM webhook_events") == [{"receipts": 120}]
