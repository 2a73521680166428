"""One event posted many times at once, to several processes: one row, one receipt, one effect."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
import requests

from receiver.embedded import EmbeddedPostgres
from tests import posting
from tests.posting import payment
from tests.running import Web, new_database, run_web, run_worker, wait_for


@pytest.fixture(scope="module")
def web(server: EmbeddedPostgres) -> Iterator[Web]:
    """Four web processes on one database."""
    with new_database(server) as url, run_web(url, environment={"WEB_CONCURRENCY": "4"}) as running:
        yield running


def register(web: Web, reference: str) -> None:
    web.rows(
        "INSERT INTO orders (id, reference, amount_minor, currency, state, created_at, updated_at)"
        " VALUES (gen_random_uuid(), %(r)s, 2500, 'EUR', 'pending', now(), now())",
        {"r": reference},
    )


def post_at_once(webs: list[Web], bodies: list[bytes], threads: int) -> list[tuple[int, str]]:
    """Post the bodies from many threads; status and text of each answer."""

    def post(number: int) -> tuple[int, str]:
        answer = webs[number % len(webs)].post(
            "demo", bodies[number], posting.demo(bodies[number]), timeout=30
        )
        return answer.status_code, answer.text

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(post, range(len(bodies))))


@pytest.mark.field_case(90)
def test_two_hundred_posts_of_one_id_leave_one_row_and_one_receipt(web):
    """200 answers with status 200 and the same text, one row, one effect."""
    register(web, "o_200")
    answers = post_at_once([web], [payment("evt_200", "o_200")] * 200, 100)

    assert {status for status, _ in answers} == {200}
    assert len({text for _, text in answers}) == 1
    assert web.rows("SELECT receipts, variants FROM webhook_events WHERE provider_event_id = 'evt_200'") == [
        {"receipts": 200, "variants": 0}
    ]
    with run_worker(web.database_url):
        wait_for(lambda: web.rows("SELECT 1 FROM orders WHERE reference = 'o_200' AND state = 'paid'"), 30)
    assert web.rows("SELECT count(*) AS n FROM ledger_entries WHERE transaction_id = 'tx_o_200'") == [
        {"n": 1}
    ]


@pytest.mark.field_case(90)
def test_fifty_at_once_ten_times_over_four_processes(web):
    """No unique violation surfaces anywhere: all 200, one row a round, no line of level error."""
    for round_number in range(10):
        answers = post_at_once([web], [payment(f"evt_r{round_number}", "o_r")] * 50, 50)
        assert {status for status, _ in answers} == {200}
        assert len({text for _, text in answers}) == 1

    rows = web.rows("SELECT receipts FROM webhook_events WHERE provider_event_id LIKE 'evt\\_r%%'")
    assert [row["receipts"] for row in rows] == [50] * 10
    assert '"level": "error"' not in web.log()
    assert "Traceback" not in web.log()


def test_one_id_with_many_bodies_at_once_keeps_the_first_and_counts_the_others(web):
    """Variants and conflicts of one id race with it and with each other: one event, each body noted once."""
    bodies = [payment("evt_many", "o_many", data={"amount": 1 + number % 8}) for number in range(80)]

    answers = post_at_once([web], bodies, 40)

    assert {status for status, _ in answers} == {200}
    assert len({text for _, text in answers}) == 1
    (event,) = web.rows(
        "SELECT id, amount_minor, receipts FROM webhook_events WHERE provider_event_id = 'evt_many'"
    )
    conflicts = web.rows("SELECT count FROM webhook_conflicts WHERE event_id = %(id)s", {"id": event["id"]})
    assert event["receipts"] == 80
    assert [row["count"] for row in conflicts] == [10] * 7


def test_many_ids_in_many_orders_never_deadlock(web):
    """Posts of the same few ids in ever other orders, over four processes: nothing is refused."""
    bodies = [payment(f"evt_few{number * 7 % 10}", "o_few") for number in range(400)]

    answers = post_at_once([web], bodies, 60)

    assert {status for status, _ in answers} == {200}
    rows = web.rows("SELECT receipts FROM webhook_events WHERE provider_event_id LIKE 'evt\\_few%%'")
    assert [row["receipts"] for row in rows] == [40] * 10


@pytest.mark.field_case(92)
def test_what_was_seen_is_known_to_every_process_and_after_a_restart(web):
    """Two servers at once, and one started later: one row, one receipt."""
    body = payment("evt_hosts", "o_hosts")
    with run_web(web.database_url) as other:
        answers = post_at_once([web, other], [body] * 20, 20)
    with run_web(web.database_url) as later:
        answers.append((200, later.post("demo", body, posting.demo(body)).text))

    assert {status for status, _ in answers} == {200}
    assert len({text for _, text in answers}) == 1
    assert web.rows("SELECT receipts FROM webhook_events WHERE provider_event_id = 'evt_hosts'") == [
        {"receipts": 21}
    ]


@pytest.mark.field_case(96)
def test_a_database_that_is_serializable_by_default_refuses_nobody(server):
    """Every connection asks for read committed, so that plain races stay plain."""
    with new_database(server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
        with run_web(url) as web:
            answers = post_at_once([web], [payment(f"evt_{n % 5}", "o_1") for n in range(100)], 40)
            assert {status for status, _ in answers} == {200}


@pytest.mark.field_case(128)
def test_duplicates_and_page_views_leave_no_connection_behind(web):
    """2,000 duplicates and 500 page views with the shipped pools: no timeout, nothing idle in transaction."""
    body = payment("evt_2000", "o_2000")
    with ThreadPoolExecutor(32) as pool:
        posts = [pool.submit(web.post, "demo", body, posting.demo(body), timeout=30) for _ in range(2000)]
        views = [pool.submit(_view, web, path) for path in ("/readyz", "/login", "/status", "/healthz") * 125]
        assert {post.result().status_code for post in posts} == {200}
        # No worker runs here, so that readyz says 503; what is asked is that nothing waits in vain.
        assert {view.result() for view in views} <= {200, 302, 503}

    assert "Timeout" not in web.log()
    assert web.rows("SELECT receipts FROM webhook_events WHERE provider_event_id = 'evt_2000'") == [
        {"receipts": 2000}
    ]
    states = web.rows(
        "SELECT state, count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() GROUP BY state"
    )
    assert {row["state"] for row in states} <= {"idle", None}


def _view(web: Web, path: str) -> int:
    headers = {"Connection": "close"}
    return requests.get(f"{web.url}{path}", headers=headers, timeout=30, allow_redirects=False).status_code


@pytest.mark.field_case(129)
def test_processes_forked_from_one_that_was_connected_open_their_own(server):
    """--preload with four workers, the database touched before the fork: no protocol errors."""
    with (
        new_database(server) as url,
        run_web(
            url,
            arguments=("--preload",),
            environment={"WEB_CONCURRENCY": "4"},
            application="tests.web.touched_application:make()",
        ) as web,
    ):
        answers = post_at_once([web], [payment(f"evt_{n}", "o_1") for n in range(1000)], 40)

        assert {status for status, _ in answers} == {200}
        assert web.rows("SELECT count(*) AS n FROM webhook_events") == [{"n": 1000}]
        assert "Traceback" not in web.log()
        assert '"level": "error"' not in web.log()
