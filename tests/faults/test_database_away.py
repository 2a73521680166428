"""The database stopped, frozen, locked or cut off under real web and worker processes, and back again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests import posting
from tests.faults.own_postgres import OwnPostgres, own_postgres
from tests.posting import payment
from tests.running import Child, Web, run_web, run_worker, wait_for


@pytest.fixture(scope="module")
def postgres() -> Iterator[OwnPostgres]:
    with own_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def web(postgres: OwnPostgres) -> Iterator[Web]:
    with run_web(postgres.url) as running:
        yield running


@pytest.fixture(scope="module")
def worker(postgres: OwnPostgres) -> Iterator[Child]:
    with run_worker(postgres.url) as running:
        yield running


def register(web: Web, *references: str) -> None:
    for reference in references:
        web.rows(
            "INSERT INTO orders (id, reference, amount_minor, currency, state, created_at, updated_at)"
            " VALUES (gen_random_uuid(), %(r)s, 2500, 'EUR', 'pending', now(), now())",
            {"r": reference},
        )


def post(web: Web, name: str) -> int:
    body = payment(f"evt_{name}", f"o_{name}")
    return web.post("demo", body, posting.demo(body)).status_code


def timed(web: Web, name: str) -> tuple[int, float, str | None]:
    body = payment(f"evt_{name}", f"o_{name}")
    began = time.monotonic()
    answer = web.post("demo", body, posting.demo(body))
    return answer.status_code, time.monotonic() - began, answer.headers.get("Retry-After")


def stored(web: Web, pattern: str) -> int:
    (row,) = web.rows(
        "SELECT count(*) AS n FROM webhook_events WHERE provider_event_id ~ %(p)s", {"p": pattern}
    )
    return int(row["n"])


def paid(web: Web, *references: str) -> bool:
    found = web.rows("SELECT reference FROM orders WHERE state = 'paid'")
    return set(references) <= {row["reference"] for row in found}


@pytest.mark.field_case(119)
def test_a_stopped_database_is_503_and_the_same_post_succeeds_once_it_is_back(postgres, web, worker):
    """503 with Retry-After within five seconds; then 200, one row, paid; nothing was restarted."""
    register(web, "o_a1", "o_a2")
    assert post(web, "a1") == 200
    wait_for(lambda: paid(web, "o_a1"))

    postgres.crash()
    with ThreadPoolExecutor(20) as pool:
        away = list(pool.map(lambda _: timed(web, "a2"), range(20)))
    postgres.restart()

    assert {status for status, _, _ in away} == {503}
    assert max(took for _, took, _ in away) < 5
    assert all(int(retry or 0) > 0 for _, _, retry in away)
    wait_for(lambda: post(web, "a2") == 200, 10)
    assert len(web.rows("SELECT 1 FROM webhook_events WHERE provider_event_id = 'evt_a2'")) == 1
    wait_for(lambda: paid(web, "o_a2"))
    assert web.process.poll() is None
    assert worker.process.poll() is None


def test_a_database_restarted_between_two_posts_costs_nothing(postgres, web):
    """A pool of dead connections is thrown away at the first of them: the next post is stored."""
    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(lambda n: post(web, f"b{n}"), range(40))) == {200}

    postgres.crash()
    postgres.restart()
    wait_for(lambda: web.rows("SELECT 1 AS one"), 10)

    assert [post(web, f"b_after{n}") for n in range(8)] == [200] * 8


def test_a_frozen_database_is_503_in_time_and_the_same_post_succeeds_after(postgres, web, worker):
    """Sockets stay open and nothing answers: 503 within five seconds, for every post; then all goes on."""
    register(web, "o_c1", "o_c2")
    assert post(web, "c1") == 200
    wait_for(lambda: paid(web, "o_c1"))

    postgres.freeze()
    try:
        with ThreadPoolExecutor(20) as pool:
            frozen = list(pool.map(lambda _: timed(web, "c2"), range(20)))
            frozen += list(pool.map(lambda _: timed(web, "c2"), range(4)))
    finally:
        postgres.thaw()

    assert {status for status, _, _ in frozen} == {503}
    assert max(took for _, took, _ in frozen) < 5
    assert all(int(retry or 0) > 0 for _, _, retry in frozen)
    wait_for(lambda: post(web, "c2") == 200, 10)
    wait_for(lambda: paid(web, "o_c2"), 20)
    assert len(web.rows("SELECT 1 FROM webhook_events WHERE provider_event_id = 'evt_c2'")) == 1


def test_connections_that_are_terminated_cost_nothing(postgres, web):
    """After pg_terminate_backend the next post works, and so do posts under way."""
    with ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(post, web, f"d{n}") for n in range(300)]
        for least in (20, 60, 100):
            wait_for(lambda: stored(web, "^evt_d[0-9]") >= least, 20)  # noqa: B023 (called at once)
            web.rows(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'receiver-intake' AND pid <> pg_backend_pid()"
            )
        statuses = [answer.result() for answer in answers]

    # A post whose second try was cut as well is told to come again; none is lost.
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) > 250
    assert stored(web, "^evt_d[0-9]") >= statuses.count(200)
    assert post(web, "d_after") == 200


@pytest.mark.field_case(131)
def test_a_locked_order_delays_its_own_events_alone(postgres, web, worker):
    """Somebody holds an order row: posts get 200 all along, other orders are paid, and this one later."""
    register(web, "o_held", "o_free")
    with psycopg.connect(postgres.url) as holder:
        holder.execute("SELECT 1 FROM orders WHERE reference = 'o_held' FOR UPDATE")
        began = time.monotonic()
        assert [post(web, name) for name in ("held", "free", "held")] == [200, 200, 200]
        assert time.monotonic() - began < 2
        wait_for(lambda: paid(web, "o_free"), 20)
        assert post(web, "held") == 200
        assert not paid(web, "o_held")

    wait_for(lambda: paid(web, "o_held"), 30)
    (event,) = web.rows("SELECT state, attempts FROM webhook_events WHERE provider_event_id = 'evt_held'")
    assert event["state"] == "processed"


def test_flushed_counts_are_kept_while_the_database_is_away(postgres, web):
    """What was refused meanwhile is counted once it is back."""
    postgres.crash()
    body = payment("evt_e", "o_e")
    assert web.post("demo", body, posting.demo(body, secret="wrong")).status_code == 401
    wait_for(lambda: "intake.counts_kept" in web.log(), 10, "one flush met the absent database")
    postgres.restart()

    wait_for(
        lambda: web.rows("SELECT 1 FROM webhook_rejections WHERE reason = 'signature' AND source = 'demo'"),
        15,
        "the refused post is counted",
    )
