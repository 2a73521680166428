"""Zones: whatever the database's and the host's zones are, every due time is the same instant."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import psycopg
import pytest

from receiver.clock import FixedClock
from receiver.inbox.duties import end_pauses, expire_events, reclaim_events
from tests.conftest import MakeDeps
from tests.factories import NOW

from .gestures import event, register, row, store, work


@pytest.fixture
def far_zones(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The database's sessions in Dhaka, this host in New York."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET timezone = 'Asia/Dhaka'")  # type: ignore[arg-type]
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def day(make_deps: MakeDeps, clock: FixedClock, database_url: str) -> list[datetime]:
    """Run a day of one waiting and one hand-written event; returns every due time that was seen."""
    clock.at = NOW
    deps = make_deps()
    (row_id,) = store(deps, event("succeeded"))
    with psycopg.connect(database_url, autocommit=True) as connection:
        local = connection.execute("SELECT %s::timestamptz::text", [NOW]).fetchone()
        assert local is not None
        connection.execute(
            "INSERT INTO webhook_events (id, source, provider_event_id, kind, order_reference,"
            " transaction_id, facts_sha256, payload_sha256, received_at, last_received_at, created_at,"
            " updated_at, next_attempt_at, give_up_at)"
            " VALUES (gen_random_uuid(), 'demo', 'by hand', 'pending', 'o_2', 'tx_2',"
            " '\\x00', '\\x00', %(at)s::timestamptz, %(at)s::timestamptz, %(at)s::timestamptz,"
            " %(at)s::timestamptz, %(at)s::timestamptz, %(at)s::timestamptz + interval '20 hours')",
            {"at": local[0]},
        )
    register(deps, "o_9")
    seen = []
    for _ in range(24 * 4):
        work(deps)
        for duty in (reclaim_events, expire_events, end_pauses):
            duty(deps)
        seen.append(row(deps, row_id).next_attempt_at)
        clock.move(timedelta(minutes=15))
    with psycopg.connect(database_url) as connection:
        by_hand = connection.execute(
            "SELECT state, finished_at FROM webhook_events WHERE provider_event_id = 'by hand'"
        ).fetchone()
    assert by_hand is not None
    assert by_hand == ("expired", NOW + timedelta(hours=20))
    return seen


@pytest.mark.field_case(142)
def test_due_times_are_the_same_in_every_zone(
    make_deps: MakeDeps, clock: FixedClock, database_url: str, far_zones: None
) -> None:
    """A day with the database in Dhaka and the host in New York has the due times of a day in UTC."""
    seen = day(make_deps, clock, database_url)

    start, quarter = NOW, timedelta(minutes=15)
    waits = [timedelta(seconds=5), *[timedelta(minutes=5)] * (len(seen) - 1)]
    assert seen == [start + n * quarter + wait for n, wait in enumerate(waits)]
