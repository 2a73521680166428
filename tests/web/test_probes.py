"""Probes and metrics: what a machine asks of the service."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import delete
from sqlalchemy.orm import Session

from receiver.app import create_app
from receiver.clock import FixedClock
from receiver.inbox.hours import roll_up_hours
from receiver.inbox.minutes import BOUNDS_MS, MinuteCount
from receiver.inbox.models import InboxMinute
from receiver.web.intake_counts import IntakeCounts
from tests.conftest import MakeDeps
from tests.factories import NOW, make_conflict, make_event, make_minute, make_pause, make_worker
from tests.web.conftest import Token


def test_health_asks_nothing(make_deps: MakeDeps) -> None:
    """The process answers, also while the database is away."""
    away = make_deps(database_url="postgresql://127.0.0.1:1/none")
    assert create_app(away).test_client().get("/healthz").json == {"status": "ok"}


def test_ready_needs_a_worker(client: FlaskClient, session: Session, clock: FixedClock) -> None:
    """503 with the check by name until one was seen, and again once it is silent."""
    response = client.get("/readyz")
    assert (response.status_code, response.json["checks"]["worker"]["ok"]) == (503, False)
    make_worker(session)
    session.commit()
    response = client.get("/readyz")
    assert (response.status_code, response.json["status"]) == (200, "ready")
    assert set(response.json["checks"]) == {
        "database",
        "fsync",
        "synchronous_commit",
        "full_page_writes",
        "migrations",
        "worker",
    }
    clock.move(timedelta(seconds=31))
    assert client.get("/readyz").status_code == 503


def test_ready_says_which_promise_is_broken(make_deps: MakeDeps, database_url: str, session: Session) -> None:
    """synchronous_commit off: a 2xx would not mean that the event is on disk."""
    make_worker(session)
    session.commit()
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    response = create_app(make_deps()).test_client().get("/readyz")
    assert response.status_code == 503
    assert response.json["checks"]["synchronous_commit"] == {
        "ok": False,
        "detail": "synchronous_commit is off",
    }


def test_ready_says_that_the_schema_is_old(make_deps: MakeDeps, database_url: str) -> None:
    """The revision of the database and the one that the code wants."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
    response = create_app(make_deps()).test_client().get("/readyz")
    assert response.status_code == 503
    assert "0000" in response.json["checks"]["migrations"]["detail"]


def test_ready_is_503_while_the_database_is_away(make_deps: MakeDeps) -> None:
    """Not a fault, an answer; and no address in it."""
    away = make_deps(database_url="postgresql://user:s3cret@127.0.0.1:1/none")
    response = create_app(away).test_client().get("/readyz")
    assert (response.status_code, response.json["checks"]["database"]["ok"]) == (503, False)
    assert "s3cret" not in response.text


def _metrics(client: FlaskClient, headers: dict[str, str]) -> dict[tuple[str, ...], float]:
    response = client.get("/metrics", headers=headers)
    assert response.status_code == 200
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def _fill(session: Session) -> None:
    buckets = [4, 1, *[0] * (len(BOUNDS_MS) - 1)]
    make_minute(session, result="new", count=7, total_ms=140, buckets=[7, *[0] * len(BOUNDS_MS)])
    make_minute(session, result="new", count=3, minute=NOW - timedelta(days=40))
    make_minute(session, result="duplicate", count=2)
    make_minute(session, source="(unknown)", result="rejected", count=9)
    make_minute(session, result="applied", count=5, total_ms=250, buckets=buckets)
    make_minute(session, result="failed", count=2)
    make_minute(session, result="expired", count=1, minute=NOW - timedelta(days=2))
    make_event(session, at=NOW - timedelta(seconds=90))
    make_event(session, parked_reason="order_unknown")
    make_event(session, state="in_flight")
    make_conflict(session, make_event(session, state="failed"))
    make_worker(session)
    make_pause(session, "lesson")
    session.commit()


def test_metrics_are_read_from_the_database(client: FlaskClient, session: Session, token: Token) -> None:
    """Counters over all time and gauges of now, in Prometheus' own text."""
    _fill(session)
    metrics = _metrics(client, token("metrics"))

    expected = {
        ("webhook_events_received_total", "new", "demo"): 10,
        ("webhook_events_received_total", "duplicate", "demo"): 2,
        ("webhook_rejections_total", "(unknown)"): 9,
        ("webhook_events_failed_total", "failed"): 2,
        ("webhook_events_failed_total", "expired"): 1,
        ("webhook_deliveries_failed_total", "failed"): 0,
        ("webhook_deliveries_failed_total", "expired"): 0,
        ("webhook_events_pending", "demo", "fresh"): 1,
        ("webhook_events_pending", "demo", "parked"): 1,
        ("webhook_events_in_flight",): 1,
        ("webhook_events_dead", "amount", "demo", "failed"): 1,
        ("webhook_oldest_pending_seconds",): 90,
        ("webhook_overdue_seconds",): 90,
        ("webhook_workers_alive",): 1,
        ("webhook_conflicts_open",): 1,
        ("webhook_sources_paused",): 1,
        ("webhook_time_to_answer_seconds_bucket", "0.05", "demo"): 7,
        ("webhook_time_to_answer_seconds_sum", "demo"): 0.14,
        ("webhook_time_to_applied_seconds_bucket", "0.05", "demo"): 4,
        ("webhook_time_to_applied_seconds_bucket", "0.1", "demo"): 5,
        ("webhook_time_to_applied_seconds_bucket", "+Inf", "demo"): 5,
        ("webhook_time_to_applied_seconds_sum", "demo"): 0.25,
    }
    assert {key: metrics.get(key) for key in expected} == expected


def test_every_process_gives_the_same_numbers(
    make_deps: MakeDeps, session: Session, token: Token, clock: FixedClock
) -> None:
    """An old process with kept sums and a fresh one agree, also when minutes were added in between."""
    _fill(session)
    headers = token("metrics")
    old = create_app(make_deps()).test_client()
    _metrics(old, headers)
    clock.move(timedelta(hours=5))
    make_minute(session, result="new", count=4, minute=NOW + timedelta(minutes=30))
    make_minute(session, result="new", count=1, minute=NOW + timedelta(hours=5))
    session.commit()
    fresh = create_app(make_deps()).test_client()

    first, second = _metrics(old, headers), _metrics(fresh, headers)

    assert first == second
    assert first["webhook_events_received_total", "new", "demo"] == 15


def test_counters_never_run_backward(
    make_deps: MakeDeps, session: Session, token: Token, clock: FixedClock
) -> None:
    """Neither when old minutes are pruned, nor when a process writes late what it could not write before."""
    _fill(session)
    headers = token("metrics")
    deps = make_deps()
    old = create_app(deps)
    before = _metrics(old.test_client(), headers)
    clock.move(timedelta(days=3))
    while roll_up_hours(deps):
        pass
    session.execute(delete(InboxMinute).where(InboxMinute.minute < NOW + timedelta(hours=1)))
    session.commit()
    settled = _metrics(old.test_client(), headers)
    late = IntakeCounts(deps)
    late._minutes[("demo", NOW, "new")] = MinuteCount(5)
    late.flush()

    fresh = create_app(make_deps()).test_client()
    last = [_metrics(client, headers) for client in (old.test_client(), fresh)]
    counters = [key for key in before if key[0].endswith(("_total", "_bucket", "_sum", "_count"))]
    assert {key: before[key] for key in counters} == {key: settled[key] for key in counters}
    assert last[0] == last[1]
    assert last[0]["webhook_events_received_total", "new", "demo"] == 15


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_set_no_cookie(client: FlaskClient, path: str) -> None:
    """They are asked every few seconds."""
    assert "Set-Cookie" not in client.get(path).headers
