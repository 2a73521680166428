"""The lesson's own exercise, by name, against the web server and the worker as they are shipped.

Everything is signed here by hand, as the lesson does it: the hex HMAC-SHA256 of the raw body.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.conftest import LESSON_SECRET
from tests.faults.own_postgres import OwnPostgres, own_postgres
from tests.running import Web, run_web, run_worker, wait_for


@pytest.fixture(scope="module")
def postgres() -> Iterator[OwnPostgres]:
    with own_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def web(postgres: OwnPostgres) -> Iterator[Web]:
    with run_web(postgres.url) as running:
        yield running


def webhook(event_id: str, order: str, amount: int = 1860) -> bytes:
    """A payment of 18.60 EUR."""
    data = {"order_id": order, "transaction_id": f"tx_{order}", "amount": amount, "currency": "EUR"}
    return json.dumps({"id": event_id, "type": "payment.succeeded", "data": data}).encode()


def sign(body: bytes) -> dict[str, str]:
    return {"X-Signature": hmac.new(LESSON_SECRET.encode(), body, hashlib.sha256).hexdigest()}


def post(web: Web, body: bytes, headers: dict[str, str] | None = None) -> requests.Response:
    return web.post("lesson", body, {"Content-Type": "application/json", **(headers or sign(body))})


def inbox(web: Web, event_id: str) -> list[dict[str, Any]]:
    """The event's rows in the view that the lesson's reader knows."""
    return web.rows("SELECT * FROM webhook_inbox WHERE provider_event_id = %(id)s", {"id": event_id})


def register(web: Web, reference: str, amount: int = 1860) -> None:
    web.rows(
        "INSERT INTO orders (id, reference, amount_minor, currency, state, created_at, updated_at)"
        " VALUES (gen_random_uuid(), %(r)s, %(a)s, 'EUR', 'pending', now(), now())",
        {"r": reference, "a": amount},
    )


def captured(web: Web, reference: str) -> list[int]:
    """The amounts of the order's captures in the ledger."""
    found = web.rows(
        "SELECT l.amount_minor FROM ledger_entries l JOIN orders o ON o.id = l.order_id"
        " WHERE o.reference = %(r)s AND l.kind = 'capture'",
        {"r": reference},
    )
    return [row["amount_minor"] for row in found]


def paid(web: Web, reference: str) -> bool:
    return bool(web.rows("SELECT 1 FROM orders WHERE reference = %(r)s AND state = 'paid'", {"r": reference}))


def test_the_same_valid_webhook_twice_leaves_one_row(web):
    """200 both times, with one receipt; one row; the order is paid once."""
    register(web, "o_twice")
    body = webhook("evt_twice", "o_twice")

    answers = [post(web, body), post(web, body)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].text == answers[1].text
    (row,) = inbox(web, "evt_twice")
    assert bytes(row["payload"]) == body
    with run_worker(web.database_url):
        wait_for(lambda: paid(web, "o_twice"))
    assert captured(web, "o_twice") == [1860]
    assert [row["state"] for row in inbox(web, "evt_twice")] == ["processed"]


def test_an_invalid_signature_is_refused_before_anything_is_read(web):
    """One byte changed, another secret, no signature, an old time: 401 each, and no row."""
    body = webhook("evt_forged", "o_forged")
    old = {**sign(body), "X-Timestamp": str(int(time.time()) - 3600)}
    other = {"X-Signature": hmac.new(b"another secret", body, hashlib.sha256).hexdigest()}

    assert post(web, body.replace(b"1860", b"1861"), sign(body)).status_code == 401
    assert post(web, body, other).status_code == 401
    assert post(web, body, {"X-Other": "x"}).status_code == 401
    assert post(web, body, old).status_code == 401

    assert inbox(web, "evt_forged") == []


def test_no_id_is_refused_as_the_lesson_refuses_it(web):
    """`required|string|max:128`: 422."""
    for body in (b'{"type": "payment.succeeded"}', b'{"id": ""}', b'{"id": "%s"}' % (b"x" * 129)):
        assert post(web, body).status_code == 422


def test_the_same_id_with_another_body_changes_nothing_and_is_kept_for_a_person(web):
    """The first body stands; the other one is answered like a duplicate, kept beside it and never applied."""
    register(web, "o_changed")
    first, other = webhook("evt_changed", "o_changed"), webhook("evt_changed", "o_changed", amount=1)

    answers = [post(web, first), post(web, other)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].text == answers[1].text
    (row,) = inbox(web, "evt_changed")
    assert bytes(row["payload"]) == first
    (kept,) = web.rows("SELECT kind, state, payload FROM webhook_conflicts")
    assert (kept["kind"], kept["state"], bytes(kept["payload"])) == ("conflict", "open", other)
    with run_worker(web.database_url):
        wait_for(lambda: paid(web, "o_changed"))
    assert captured(web, "o_changed") == [1860]


def test_the_database_unavailable_is_503_and_the_provider_comes_again(postgres, web):
    """No 2xx without a stored row; the same post succeeds once the database is back."""
    body = webhook("evt_away", "o_away")

    postgres.crash()
    refused = post(web, body)
    postgres.restart()

    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) > 0
    wait_for(lambda: post(web, body).status_code == 200, 10)
    assert len(inbox(web, "evt_away")) == 1


def test_a_pending_inbox_recovers_when_its_worker_is_killed_and_started_again(web):
    """What a killed worker left is taken up by the next one; every order is paid once."""
    orders = [f"o_recover{number}" for number in range(60)]
    for order in orders:
        register(web, order)
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda order: post(web, webhook(f"evt_{order}", order)), orders)
        assert {answer.status_code for answer in answers} == {200}
    hurried = {"LEASE_SECONDS": "5", "BATCH_LIMIT_SECONDS": "2", "BATCH_SIZE": "5"}

    with run_worker(web.database_url, environment=hurried) as worker:
        wait_for(lambda: any(paid(web, order) for order in orders))
        worker.kill()
    with run_worker(web.database_url, environment=hurried):
        wait_for(lambda: all(paid(web, order) for order in orders), 30)

    assert [captured(web, order) for order in orders] == [[1860]] * 60


def test_three_deliveries_after_an_outage_leave_one_effect(postgres, web):
    """The provider's retries come all at once when the database is back: one row, one receipt, paid once."""
    register(web, "o_three")
    body = webhook("evt_three", "o_three")
    postgres.crash()
    assert [post(web, body).status_code for _ in range(3)] == [503] * 3
    postgres.restart()
    wait_for(lambda: web.rows("SELECT 1 AS one"), 10)

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: post(web, body), range(3)))

    assert [answer.status_code for answer in answers] == [200] * 3
    assert len({answer.text for answer in answers}) == 1
    assert [
        row["receipts"]
        for row in web.rows("SELECT receipts FROM webhook_events WHERE provider_event_id = 'evt_three'")
    ] == [3]
    with run_worker(web.database_url):
        wait_for(lambda: paid(web, "o_three"))
    assert captured(web, "o_three") == [1860]


def test_an_event_posted_while_no_worker_lived_is_processed_by_the_next(web):
    """The answer does not wait for the worker, and the worker does not need the answer."""
    register(web, "o_alone")
    assert post(web, webhook("evt_alone", "o_alone")).status_code == 200
    assert [row["state"] for row in inbox(web, "evt_alone")] == ["pending"]
    assert not paid(web, "o_alone")

    with run_worker(web.database_url):
        wait_for(lambda: paid(web, "o_alone"))

    assert [row["state"] for row in inbox(web, "evt_alone")] == ["processed"]
