"""What the processes write down: ids, lengths and hashes, never a secret, a signature or a body."""

from __future__ import annotations

import subprocess
import sys

import pytest
import requests

from tests import posting
from tests.conftest import DEMO_SECRET, LESSON_SECRET
from tests.posting import payment
from tests.running import ROOT, run_web, run_worker, wait_for

CARD = "4111 1111 1111 1111"
AUTHORIZATION = "Bearer tok_do_not_log_me"


@pytest.mark.field_case(134)
def test_no_log_line_holds_a_secret_a_signature_or_a_body(web):
    """Accepted, repeated, unreadable and refused deliveries and a failed row, by real processes."""
    right = payment("evt_1", "o_log", card=CARD, data={"amount": "12.34 of " + CARD})
    conflict = payment("evt_1", "o_log", card=CARD, note="other")
    broken = b'{"card": "' + CARD.encode() + b'", '
    extra = {"Authorization": AUTHORIZATION, "Cookie": "session=cookie_do_not_log_me"}
    signatures = []
    for body, status in ((right, 200), (right, 200), (conflict, 200), (broken, 400), (b"{}", 422)):
        headers = posting.demo(body)
        signatures.append(headers["X-Signature"])
        assert web.post("demo", body, {**headers, **extra}).status_code == status
    wrong = posting.demo(right, secret="wrong")
    signatures.append(wrong["X-Signature"])
    assert web.post("demo", right, {**wrong, **extra}).status_code == 401
    assert web.post("nobody", right, extra).status_code == 404
    assert web.post("bare", right, extra).status_code == 503
    with run_worker(web.database_url) as worker:
        wait_for(lambda: web.rows("SELECT 1 FROM webhook_events WHERE state = 'failed'"))
        worker.end()
        log = web.log() + worker.log()

    assert "webhook.refused" in log
    assert "event.worked" in log
    for text in (CARD, "4111", "do_not_log_me", DEMO_SECRET, LESSON_SECRET, *signatures):
        assert text not in log
        assert text.removeprefix("v1=") not in log
    assert "12.34" not in log
    assert "Traceback" not in log


@pytest.mark.field_case(134)
def test_what_is_stored_holds_no_credential_of_its_own(web):
    """Headers are kept, so that the event can be verified again; Authorization and Cookie are cut."""
    body = payment("evt_kept", "o_kept")
    headers = {
        **posting.demo(body),
        "Authorization": AUTHORIZATION,
        "Cookie": "a=b",
        "Proxy-Authorization": "x",
    }
    assert web.post("demo", body, headers).status_code == 200

    (row,) = web.rows(
        "SELECT p.headers FROM webhook_events e JOIN webhook_payloads p ON p.id = e.payload_id"
        " WHERE provider_event_id = 'evt_kept'"
    )
    kept = dict(row["headers"])
    assert kept["X-Signature"] == headers["X-Signature"]
    assert {kept[name] for name in ("Authorization", "Cookie", "Proxy-Authorization")} == {"[redacted]"}


@pytest.mark.field_case(135)
def test_a_wrong_database_shows_its_host_and_the_reason_alone():
    """Web and worker with a database that is not there: 503s and lines that name no password."""
    url = "postgresql://receiver:p4ss-do-not-log@127.0.0.1:1/receiver?application_name=tok_1"
    body = payment("evt_1", "o_1")
    with run_web(url) as web, run_worker(url) as worker:
        answer = web.post("demo", body, posting.demo(body))
        ready = requests.get(f"{web.url}/readyz", headers={"Connection": "close"}, timeout=15)
        wait_for(lambda: "duty.failed" in worker.log(), 30)
        worker.end()
        web.end()
        said = answer.text + ready.text + web.log() + worker.log()

    assert answer.status_code == 503
    assert ready.status_code == 503
    for text in ("p4ss", "tok_1"):
        assert text not in said


@pytest.mark.field_case(135)
def test_a_url_that_cannot_be_read_is_named_and_not_shown():
    """A misspelt DATABASE_URL ends the start with a sentence that holds none of it."""
    for url in ("mysql://u:p4ss@host/db", "postgres//u:p4ss@host", "p4ss"):
        done = subprocess.run(
            [sys.executable, "worker.py"],
            cwd=ROOT,
            env={"DATABASE_URL": url, "PATH": ""},
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 2
        assert "DATABASE_URL" in done.stderr
        assert "p4ss" not in done.stderr


@pytest.mark.field_case(134)
def test_a_row_that_the_database_refuses_is_not_quoted(door):
    """PostgreSQL repeats the failing row and SQLAlchemy the parameters: the row's error keeps neither."""
    door.order("o_quoted", amount_minor=4711)
    door.run("ALTER TABLE ledger_entries ADD CHECK (amount_minor <> 4711)")
    body = payment("evt_quoted", "o_quoted", data={"amount": 4711, "transaction_id": "tx_do_not_quote"})
    assert door.demo(body).status_code == 200

    door.work()

    event = door.event("evt_quoted")
    assert event["state"] == "pending"
    assert "check constraint" in event["last_error"]
    assert "tx_do_not_quote" not in event["last_error"]
    assert "Failing row" not in event["last_error"]


def test_a_log_line_cuts_what_a_database_quotes():
    """In a traceback's text too."""
    from receiver.logs import scrub

    told = (
        'violates "x"\nDETAIL:  Failing row contains (4, secret).\nTraceback\n[parameters: {"a": "secret"}]'
    )

    assert "secret" not in scrub(told)
    assert 'violates "x"' in scrub(told)
    assert "Traceback" in scrub(told)
