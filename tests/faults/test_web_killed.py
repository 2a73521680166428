"""A web process that dies, or whose database answers too late, after the event was committed."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests import posting
from tests.faults.proxy import proxied
from tests.posting import payment
from tests.running import new_database, rows, run_web, run_worker, wait_for

ONE = {"WEB_CONCURRENCY": "1"}
"""One web process, so that the connection that was warmed is the one that is held."""


def committed(url: str, event_id: str) -> list[dict[str, object]]:
    return rows(
        url, "SELECT id::text, receipts FROM webhook_events WHERE provider_event_id = %(e)s", {"e": event_id}
    )


def test_sigkill_between_commit_and_answer_costs_nothing_but_a_duplicate(server):
    """The row is there, the provider got no answer and comes again: the same receipt, one row, one effect."""
    body = payment("evt_1", "o_1")
    with new_database(server) as url, proxied(url) as proxy, run_web(proxy.url, environment=ONE) as web:
        warm = payment("evt_warm", "o_warm")
        assert web.post("demo", warm, posting.demo(warm)).status_code == 200
        proxy.hold()
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(web.post, "demo", body, posting.demo(body))
            (row,) = wait_for(lambda: committed(url, "evt_1"))
            for pid in web.workers():
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(requests.RequestException):
                answer.result(10)
        proxy.release()

        again = wait_for(lambda: _answered(web, body))

        assert again.json()["receipt"] == row["id"]
        assert committed(url, "evt_1") == [{"id": row["id"], "receipts": 2}]
        rows(
            url,
            "INSERT INTO orders (id, reference, amount_minor, currency, state, created_at, updated_at)"
            " VALUES (gen_random_uuid(), 'o_1', 2500, 'EUR', 'pending', now(), now())",
        )
        with run_worker(url):
            wait_for(lambda: rows(url, "SELECT 1 FROM orders WHERE state = 'paid'"))
        assert rows(url, "SELECT count(*) AS n FROM ledger_entries") == [{"n": 1}]


def _answered(web, body: bytes) -> requests.Response | None:
    try:
        answer = web.post("demo", body, posting.demo(body))
    except requests.RequestException:
        return None
    return answer if answer.status_code == 200 else None


def test_a_commit_that_is_not_proven_is_503_and_the_next_post_a_duplicate(server):
    """Committed, but the proof did not come: no 2xx without it, and the repeat doubles nothing."""
    body = payment("evt_1", "o_1")
    with new_database(server) as url, proxied(url) as proxy, run_web(proxy.url, environment=ONE) as web:
        warm = payment("evt_warm", "o_warm")
        assert web.post("demo", warm, posting.demo(warm)).status_code == 200
        proxy.hold()
        refused = web.post("demo", body, posting.demo(body))
        assert (refused.status_code, refused.elapsed.total_seconds() < 5) == (503, True)
        assert int(refused.headers["Retry-After"]) > 0
        (row,) = committed(url, "evt_1")
        proxy.release()

        again = wait_for(lambda: _answered(web, body))

        assert again.json()["receipt"] == row["id"]
        assert len(committed(url, "evt_1")) == 1


def test_sigterm_answers_what_is_under_way(server):
    """An orderly stop loses no answer: posts under way get theirs, and the process ends with 0."""
    with new_database(server) as url, run_web(url) as web, ThreadPoolExecutor(16) as pool:
        bodies = [payment(f"evt_{n}", "o_1") for n in range(200)]
        answers = [pool.submit(web.post, "demo", body, posting.demo(body)) for body in bodies]
        wait_for(lambda: rows(url, "SELECT 1 FROM webhook_events LIMIT 1"))
        assert web.end(30) == 0
        got = [answer.result().status_code for answer in answers if answer.exception() is None]
        stored = rows(url, "SELECT count(*) AS n FROM webhook_events")[0]["n"]

    assert set(got) == {200}
    assert stored >= len(got)


def test_the_last_counts_are_written_when_a_process_ends(server):
    """What was refused just before an orderly stop is still counted."""
    body = payment("evt_1", "o_1")
    with new_database(server) as url, run_web(url) as web:
        for _ in range(3):
            assert web.post("demo", body, posting.demo(body, secret="wrong")).status_code == 401
        web.end()

        (row,) = rows(url, "SELECT sum(count)::int AS n FROM webhook_rejections")
    assert row["n"] == 3
