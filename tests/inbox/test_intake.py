"""The intake's statement and its gathering: new, duplicate, variant and conflict, alone and in groups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, text

from receiver.deps import Deps
from receiver.inbox.intake import GROUP_ROWS, Intake, IntakeUnavailable
from receiver.inbox.intake_statement import MAX_BODIES, MAX_VARIANT_BODIES, MAX_VARIANTS, Receipt
from receiver.inbox.receive import kept_headers, store
from receiver.providers.reading import ReadEvent
from receiver.providers.registry import provider
from tests.posting import payment
from tests.running import rows, wait_for, waiting_on_locks

Write = Callable[..., Receipt]


def read(body: bytes, source: str = "demo") -> tuple[ReadEvent, ...]:
    return provider("demo").read(source, {}, body)


@pytest.fixture
def intake(deps: Deps) -> Iterator[Intake]:
    intake = Intake(deps)
    yield intake
    intake.close()


@pytest.fixture
def write(deps: Deps, intake: Intake) -> Write:
    """Store one body; gives its receipt."""

    def write_one(body: bytes, headers: tuple[tuple[str, str], ...] = (), source: str = "demo") -> Receipt:
        (receipt,) = store(
            deps,
            intake,
            read(body, source),
            body=body,
            headers=list(headers),
            key_id="k",
            now=deps.clock.now(),
        )
        return receipt

    return write_one


def test_a_first_event_is_new_and_a_repeated_one_a_duplicate_that_changes_nothing(deps, write):
    """The duplicate gets the same receipt; the row only counts it and when it came."""
    body = payment("evt_1", "o_1")
    first = write(body)
    (before,) = rows(deps.settings.database_url, "SELECT * FROM webhook_events")
    deps.clock.move(timedelta(minutes=5))

    second = write(body)

    (after,) = rows(deps.settings.database_url, "SELECT * FROM webhook_events")
    assert (first.result, second.result, second.id) == ("new", "duplicate", first.id)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"receipts", "last_received_at"}
    assert after["receipts"] == 2
    assert rows(deps.settings.database_url, "SELECT 1 FROM webhook_conflicts") == []
    assert len(rows(deps.settings.database_url, "SELECT 1 FROM webhook_payloads")) == 1


def test_other_bytes_with_the_same_facts_are_a_variant(deps, write):
    """A variant is counted and kept, and the event stays as it was."""
    first = write(payment("evt_1", "o_1"))

    again = write(payment("evt_1", "o_1", created_at="2026-03-01T13:00:00Z"))

    (event,) = rows(
        deps.settings.database_url, "SELECT receipts, variants, payload_sha256 FROM webhook_events"
    )
    (kept,) = rows(deps.settings.database_url, "SELECT kind, count, payload FROM webhook_conflicts")
    assert (again.result, again.id) == ("variant", first.id)
    assert (event["receipts"], event["variants"]) == (2, 1)
    assert event["payload_sha256"] == hashlib.sha256(payment("evt_1", "o_1")).digest()
    assert (kept["kind"], kept["count"]) == ("variant", 1)
    assert b"13:00" in kept["payload"]


def test_other_facts_are_a_conflict_that_never_overwrites(deps, write):
    """The conflict's bytes are kept beside the event, counted when they come again; the facts stay."""
    first = write(payment("evt_1", "o_1"))
    other = payment("evt_1", "o_1", data={"amount": 1})

    seen = [write(other, (("X-Try", "1"),)), write(other, (("X-Try", "2"),))]

    (event,) = rows(deps.settings.database_url, "SELECT amount_minor, receipts, variants FROM webhook_events")
    (kept,) = rows(
        deps.settings.database_url, "SELECT kind, count, payload, headers, state FROM webhook_conflicts"
    )
    assert [(receipt.result, receipt.id) for receipt in seen] == [("conflict", first.id)] * 2
    assert event == {"amount_minor": 2500, "receipts": 3, "variants": 0}
    assert (kept["kind"], kept["count"], kept["state"]) == ("conflict", 2, "open")
    assert kept["payload"] == other
    assert kept["headers"] == [["X-Try", "1"]]


def test_at_most_ten_bodies_are_kept_of_one_event(deps, write):
    """A provider that never repeats itself to the letter fills neither the disk nor the table."""
    url = deps.settings.database_url
    write(payment("evt_1", "o_1"))

    for number in range(MAX_VARIANTS + 20):
        write(payment("evt_1", "o_1", note=str(number)))
    for number in range(MAX_BODIES + 5):
        write(payment("evt_1", "o_1", data={"amount": 1 + number}))
    write(payment("evt_1", "o_1", note="3"))

    kept = rows(
        url,
        "SELECT kind, count(*) AS rows, count(payload) AS bodies, count(headers) AS headers,"
        " sum(count)::int AS n FROM webhook_conflicts GROUP BY kind ORDER BY kind",
    )
    bodies = MAX_BODIES - MAX_VARIANT_BODIES
    assert kept == [
        {
            "kind": "conflict",
            "rows": MAX_BODIES + 5,
            "bodies": bodies,
            "headers": bodies,
            "n": MAX_BODIES + 5,
        },
        {
            "kind": "variant",
            "rows": MAX_VARIANTS,
            "bodies": MAX_VARIANT_BODIES,
            "headers": MAX_VARIANT_BODIES,
            "n": MAX_VARIANTS + 1,
        },
    ]
    (event,) = rows(url, "SELECT receipts, variants FROM webhook_events")
    assert event == {"receipts": MAX_VARIANTS + 22 + MAX_BODIES + 5, "variants": MAX_VARIANTS + 21}


def test_the_payload_is_written_once_with_its_exact_bytes_and_headers(deps, write):
    """What is stored is what was sent: bytes, and headers in their order, credentials cut."""
    body = b"\xef\xbb\xbf" + payment("evt_1", "o_1") + b"\t\r\n"
    sent = [("X-B", "2"), ("X-A", "\xe9"), ("Authorization", "Bearer t"), ("cookie", "c"), ("X-Key", "k")]

    write(body, tuple(kept_headers(sent, frozenset({"x-key"}))))

    (stored,) = rows(
        deps.settings.database_url,
        "SELECT p.payload, p.headers FROM webhook_events e JOIN webhook_payloads p ON p.id = e.payload_id",
    )
    assert stored["payload"] == body
    assert stored["headers"] == [
        ["X-B", "2"],
        ["X-A", "\xe9"],
        ["Authorization", "[redacted]"],
        ["cookie", "[redacted]"],
        ["X-Key", "[redacted]"],
    ]


def test_a_late_duplicate_of_a_pruned_payload_is_still_a_duplicate(deps, write):
    """The key outlives the payload; the duplicate brings no payload back."""
    body = payment("evt_1", "o_1")
    first = write(body)
    rows(deps.settings.database_url, "DELETE FROM webhook_payloads")

    again = write(body)
    other = write(payment("evt_1", "o_1", data={"amount": 1}))

    assert (again.result, again.id) == ("duplicate", first.id)
    assert (other.result, other.id) == ("conflict", first.id)
    assert rows(deps.settings.database_url, "SELECT 1 FROM webhook_payloads") == []


def test_the_facts_go_into_their_columns(deps, write):
    """Every fact that the worker decides by is read at intake, and a flaw says which one was not."""
    write(
        payment(
            "evt_1",
            "o_1",
            sequence=7,
            account="acct_1",
            live=True,
            data={"currency": ["usd"], "refund_total": 5},
        )
    )

    (event,) = rows(deps.settings.database_url, "SELECT * FROM webhook_events")
    assert (event["kind"], event["order_reference"], event["transaction_id"]) == (
        "succeeded",
        "o_1",
        "tx_o_1",
    )
    assert (event["amount_minor"], event["currency"], event["sequence"]) == (2500, None, 7)
    assert (event["account"], event["live"], event["facts_error"]) == ("acct_1", True, "unreadable_currency")
    assert "usd" in event["last_error"]
    assert event["next_attempt_at"] == event["received_at"] == deps.clock.at
    assert event["give_up_at"] == deps.clock.at + deps.settings.give_up


def test_what_gathered_meanwhile_shares_one_statement(deps, intake, write):
    """While the database is busy requests gather; they then go in statements of up to 64 rows."""
    url = deps.settings.database_url
    with _held(deps) as held, ThreadPoolExecutor(100) as pool:
        answers = []
        for n in range(2):
            # The first flusher waits for the lock, then the second one that the next request calls.
            answers.append(pool.submit(write, payment(f"evt_{n}", f"o_{n}")))
            wait_for(lambda n=n: waiting_on_locks(url) == n + 1 and not intake._waiting)
        answers += [pool.submit(write, payment(f"evt_{n}", f"o_{n}")) for n in range(2, 100)]
        wait_for(lambda: len(intake._waiting) >= 90)
        held.rollback()
        receipts = [answer.result(10) for answer in answers]

    groups = [row["n"] for row in rows(url, "SELECT count(*) AS n FROM webhook_events GROUP BY xmin::text")]
    assert len({receipt.id for receipt in receipts}) == 100
    assert [receipt.provider_event_id for receipt in receipts] == [f"evt_{n}" for n in range(100)]
    assert max(groups) >= 30
    assert max(groups) <= GROUP_ROWS
    assert len(groups) <= 6


def _held(deps: Deps) -> Any:
    """A transaction that keeps every insert waiting until it ends."""

    @event.listens_for(deps.intake_engine, "connect")
    def be_patient(connection: Any, _record: Any) -> None:
        connection.execute("SET lock_timeout = 0")

    deps.intake_engine.dispose()
    connection = deps.engine.connect()
    connection.execute(text("LOCK TABLE webhook_events IN SHARE MODE"))
    return connection


def test_one_request_that_the_database_refuses_pays_alone(deps, intake, write):
    """A row that spoils its statement fails by itself; the others of the group are stored."""
    rows(deps.settings.database_url, "ALTER TABLE webhook_events ADD CHECK (order_reference <> 'poison')")
    with _held(deps) as held, ThreadPoolExecutor(20) as pool:
        names = [f"o_{n}" if n != 7 else "poison" for n in range(20)]
        answers = [pool.submit(write, payment(f"evt_{n}", name)) for n, name in enumerate(names)]
        wait_for(lambda: waiting_on_locks(deps.settings.database_url) == 2)
        held.rollback()
        failures = [answer.exception(10) for answer in answers]

    assert [type(failure) for failure in failures if failure] == [IntakeUnavailable]
    assert failures[7].code == "not_stored"
    assert len(rows(deps.settings.database_url, "SELECT 1 FROM webhook_events")) == 19
    assert len(rows(deps.settings.database_url, "SELECT 1 FROM webhook_payloads")) == 19


def test_nothing_is_half_stored(deps, write):
    """Where the payload is refused, there is no event either."""
    rows(deps.settings.database_url, "ALTER TABLE webhook_payloads ADD CHECK (length(payload) < 10)")

    with pytest.raises(IntakeUnavailable):
        write(payment("evt_1", "o_1"))

    assert rows(deps.settings.database_url, "SELECT 1 FROM webhook_events") == []


def test_a_key_repeated_inside_one_request_goes_in_the_next_statement(deps, intake):
    """A batch may name one id twice: the second is judged against the first, receipts in order."""
    bodies = [
        payment("evt_a", "o_1"),
        payment("evt_b", "o_1"),
        payment("evt_a", "o_1", data={"amount": 9}),
        payment("evt_c", "o_1"),
        payment("evt_a", "o_1"),
    ]
    events = [event for body in bodies for event in read(body)]
    whole = json.dumps("batch").encode()

    receipts = store(deps, intake, events, body=whole, headers=[], key_id="k", now=deps.clock.now())

    assert [(r.provider_event_id, r.result) for r in receipts] == [
        ("evt_a", "new"),
        ("evt_b", "new"),
        ("evt_a", "conflict"),
        ("evt_c", "new"),
        ("evt_a", "duplicate"),
    ]
    assert [
        row["payload"] for row in rows(deps.settings.database_url, "SELECT payload FROM webhook_payloads")
    ] == [whole]


def test_a_batch_whose_second_statement_fails_is_not_answered(deps, intake):
    """An answer needs every statement of its request: half a batch stored is no receipt."""
    refused = payment("evt_a", "o_1", data={"amount": 9})
    rows(deps.settings.database_url, "ALTER TABLE webhook_conflicts ADD CHECK (count > 100)")
    events = [event for body in (payment("evt_a", "o_1"), refused) for event in read(body)]

    with pytest.raises(IntakeUnavailable):
        store(deps, intake, events, body=b"both", headers=[], key_id="k", now=deps.clock.now())
