"""What time takes: each thing at its own age, and never what somebody still needs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, text

from receiver.accounts.actions import record
from receiver.deps import Deps
from receiver.inbox.hours import roll_up_hours
from receiver.inbox.models import (
    InboxMinute,
    WebhookConflict,
    WebhookEvent,
    WebhookEventAttempt,
    WebhookRejection,
)
from receiver.orders.models import LedgerEntry
from receiver.retention import reindex
from receiver.retention.forget import forget_old
from receiver.retention.turn import run
from receiver.retention_settings import RetentionSettings
from receiver.web.metrics import SettledTotals
from tests.conftest import MakeDeps
from tests.doors import Door
from tests.factories import NOW, make_attempt, make_conflict, make_event, make_minute, make_rejection
from tests.posting import payment

from .gestures import DAY, later, old, payloads


@pytest.fixture
def door(open_door: Callable[..., Door]) -> Door:
    """A door whose payloads are erased at their age."""
    return open_door(retention=RetentionSettings(archive_url="none"))


def test_an_erased_event_is_still_known(door: Door) -> None:
    """Ninety days later a late duplicate is a duplicate, and other facts under its id are a conflict; four
    hundred days later it is forgotten, and its ledger line still names it.
    """
    door.order("ord_1")
    door.demo(payment("evt_1", "ord_1"))
    door.work()
    later(door.deps, days=91)
    run(door.deps, None)
    assert door.event("evt_1")["payload"] is None

    assert door.demo(payment("evt_1", "ord_1")).status_code == 200
    event = door.event("evt_1")
    assert (event["receipts"], event["state"], event["outcome"]) == (2, "processed", "applied")
    door.demo(payment("evt_1", "ord_1", data={"amount": 1}))
    assert door.rows("SELECT kind, state FROM webhook_conflicts") == [{"kind": "conflict", "state": "open"}]

    later(door.deps, days=401)
    run(door.deps, None)
    assert door.rows("SELECT id FROM webhook_events") == []
    assert door.rows("SELECT provider_event_id FROM ledger_entries") == [{"provider_event_id": "evt_1"}]
    assert door.rows("SELECT state FROM orders") == [{"state": "paid"}]


def test_what_no_archive_holds_is_not_forgotten_with_its_key(make_deps: MakeDeps) -> None:
    """Without ARCHIVE_URL a payload, and the key that leads to it, outlive every age; with `none` both go."""
    bare, none = make_deps(), make_deps(retention=RetentionSettings(archive_url="none"))
    ids = old(bare, 2, days=2000)

    assert run(bare, None).forgotten == {}
    assert set(payloads(bare)) == set(ids)
    assert run(none, None).forgotten == {"keys": 2}


def counts(deps: Deps) -> dict[str, int]:
    """How many rows of each table are left."""
    tables = {
        "events": WebhookEvent, "attempts": WebhookEventAttempt, "rejections": WebhookRejection,
        "minutes": InboxMinute, "lines": LedgerEntry,
    }  # fmt: skip
    with deps.sessions() as session:
        found = {
            name: session.scalar(select(func.count()).select_from(model)) for name, model in tables.items()
        }
        bodies = select(func.count()).where(WebhookConflict.payload.is_not(None))
        actions = text("SELECT count(*) FROM operator_actions")
        found |= {"bodies": session.scalar(bodies), "audit": session.execute(actions).scalar_one()}
    return {name: int(number or 0) for name, number in found.items()}


def _one_of_each(deps: Deps, days: int) -> None:
    at = NOW - days * DAY
    with deps.sessions.begin() as session:
        event = make_event(session, state="processed", at=at, payload=None)
        make_attempt(session, event, started_at=at)
        make_conflict(
            session, event, state="rejected", by="ada", reason="no", first_seen_at=at, last_seen_at=at
        )
        make_rejection(session, minute=at)
        record(session, actor="ada", action="event.replay", target="x", now=at)
        make_minute(session, minute=at, count=days)


def test_each_thing_has_its_own_age(make_deps: MakeDeps) -> None:
    """A day before its age everything is there, a day after it only what is older is gone."""
    deps = make_deps()
    ages = {
        "rejections": 90, "minutes": 35, "attempts": 180, "bodies": 180, "events": 400, "audit": 1100,
    }  # fmt: skip
    for days in (1200, 1000, 300, 100, 50, 1):
        _one_of_each(deps, days)
    while roll_up_hours(deps):
        pass

    forget_old(deps)

    left = counts(deps)
    for name, age in ages.items():
        assert left[name] == sum(days <= age for days in (1200, 1000, 300, 100, 50, 1)), name
    assert forget_old(deps) == {}


def test_what_somebody_still_needs_is_never_forgotten(make_deps: MakeDeps) -> None:
    """Open dead letters, parked rows, open conflicts stay with attempts and bodies whatever their age; an
    acknowledged dead letter goes.
    """
    deps = make_deps()
    at = NOW - 2000 * DAY
    with deps.sessions.begin() as session:
        for columns in (
            {"state": "failed", "reason": "amount"},
            {"state": "expired", "reason": "order_unknown"},
            {"state": "pending", "parked_reason": "order_unknown"},
        ):
            event = make_event(session, at=at, payload=None, **columns)
            make_attempt(session, event, started_at=at)
            make_conflict(session, event, first_seen_at=at, last_seen_at=at)
        make_event(session, at=at, payload=None, state="failed", reason="amount", acknowledged_at=at)

    forget_old(deps)

    left = counts(deps)
    assert (left["events"], left["attempts"], left["bodies"]) == (3, 3, 3)


def test_a_key_waits_for_its_payload_to_be_archived(make_deps: MakeDeps) -> None:
    """With an archive, an event whose payload is not archived yet keeps its key and its payload."""
    deps = make_deps(retention=RetentionSettings(archive_url="/nowhere"))
    old(deps, 1, days=500)
    assert forget_old(deps) == {}
    assert counts(deps)["events"] == 1


def test_counters_do_not_go_back(make_deps: MakeDeps) -> None:
    """What /metrics counts is the same before the minutes are pruned and after, in any process."""
    deps = make_deps()
    for days in (300, 100, 40, 36, 34, 0):
        with deps.sessions.begin() as session:
            make_minute(session, minute=NOW - days * DAY, result="failed", count=days + 1)
            make_minute(session, minute=NOW - days * DAY, result="applied", count=1, total_ms=5)
    running = SettledTotals()

    def totals(of: SettledTotals) -> dict[Any, int]:
        with deps.sessions() as session:
            return dict(of.read(session, NOW + timedelta(minutes=1)).counts)

    before = totals(running)
    assert sum(before.values()) == 300 + 100 + 40 + 36 + 34 + 0 + 6 + 6
    while roll_up_hours(deps):
        pass
    forget_old(deps)

    assert counts(deps)["minutes"] == 4
    assert totals(running) == totals(SettledTotals()) == before


def test_bounded_pieces(make_deps: MakeDeps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long backlog is worked off in small transactions, so many in a run, and the rest in the next."""
    from receiver.retention import forget

    deps = make_deps()
    monkeypatch.setattr(forget, "ROWS", 2)
    monkeypatch.setattr(forget, "PIECES", 2)
    with deps.sessions.begin() as session:
        for number in range(7):
            make_rejection(session, minute=NOW - (100 + number) * DAY)

    assert forget_old(deps) == {"rejections": 4}
    assert forget_old(deps) == {"rejections": 3}


def test_large_indexes_are_written_afresh_once_a_month(
    make_deps: MakeDeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each large index is smaller afterwards and still valid, what an ended run left is dropped; then not
    again for a month.
    """
    deps = make_deps()
    monkeypatch.setattr(reindex, "SMALLEST", 8192)
    old(deps, 3, days=1)
    run(deps, None)
    with deps.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE INDEX ix_left_ccnew ON webhook_events (kind)"))
        connection.execute(
            text("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_left_ccnew'::regclass")
        )
    later(deps, days=31)

    assert "pk_webhook_events" in reindex.reindex_due(deps)
    with deps.sessions() as session:
        invalid = session.execute(text("SELECT count(*) FROM pg_index WHERE NOT indisvalid")).scalar_one()
        names = session.execute(
            text("SELECT count(*) FROM pg_class WHERE relname ~ '_cc(new|old)'")
        ).scalar_one()
    assert (invalid, names) == (0, 0)
    assert reindex.reindex_due(deps) == []
