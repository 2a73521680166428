"""The readings: what is pending, stuck, dead, slow or silent, told apart and bounded."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from receiver.inbox import readings
from receiver.inbox.minutes import BOUNDS_MS
from receiver.inbox.readings import read_status
from receiver.inbox.refusals import source_times
from tests.factories import (
    NOW,
    make_conflict,
    make_event,
    make_minute,
    make_pause,
    make_rejection,
    make_worker,
)

STALE = timedelta(seconds=30)


def _status(session: Session) -> readings.Status:
    return read_status(session, stale=STALE, sources=["demo"], now=NOW)


def test_pending_is_told_apart(session: Session) -> None:
    """Fresh, retrying, parked by reason, and held (which hides the other three) are counted apart."""
    make_event(session)
    make_event(
        session, attempts=2, next_attempt_at=NOW + timedelta(seconds=30), at=NOW - timedelta(minutes=9)
    )
    make_event(session, parked_reason="order_unknown", next_attempt_at=NOW + timedelta(seconds=5))
    make_event(session, source="lesson", parked_reason="order_unknown", at=NOW - timedelta(days=1))
    make_pause(session, "lesson")
    for _ in range(3):
        make_event(session, state="processed")

    status = _status(session)

    demo, lesson = status.pending
    assert (demo.fresh, demo.retrying, demo.parked, demo.held) == (1, 1, {"order_unknown": 1}, 0)
    assert (lesson.fresh, lesson.parked, lesson.held) == (0, {}, 1)
    assert str(status.pending_total) == "4"
    assert status.oldest_pending_at == NOW - timedelta(minutes=9), "held rows are not stuck, they are held"
    assert {source: str(count) for source, count in status.held.items()} == {"lesson": "1"}


def test_a_due_row_that_nobody_claims_is_overdue(session: Session) -> None:
    """Due for more than a minute and not held: money is stuck."""
    make_event(session, at=NOW - timedelta(seconds=50))
    assert _status(session).overdue_since is None
    make_event(session, at=NOW - timedelta(seconds=70))
    assert _status(session).overdue_since == NOW - timedelta(seconds=70)


def test_parked_rows_say_what_they_wait_for(session: Session) -> None:
    """Grouped by order or transaction, the contradiction first."""
    for _ in range(2):
        make_event(session, parked_reason="order_unknown", order_reference="ord_9")
    make_event(session, parked_reason="transaction_unknown", order_reference=None, transaction_id="tx_lonely")
    make_event(session, parked_reason="refund_exceeds_captured", order_reference="ord_8")

    groups = {
        (g.reason, g.order_reference, g.transaction_id): g.count for g in _status(session).parked_groups
    }

    assert groups == {
        ("refund_exceeds_captured", "ord_8", None): 1,
        ("order_unknown", "ord_9", None): 2,
        ("transaction_unknown", None, "tx_lonely"): 1,
    }
    assert _status(session).parked_groups[0].reason == "refund_exceeds_captured"


def test_dead_letters_are_grouped_and_the_newest_shown(session: Session) -> None:
    """By source, state and reason; acknowledged ones leave the list, also the newest rows."""
    for _ in range(2):
        make_event(session, state="failed", reason="amount")
    newest = make_event(
        session, state="expired", reason="order_unknown", updated_at=NOW + timedelta(seconds=9)
    )
    make_event(session, state="failed", reason="currency", acknowledged_at=NOW)

    status = _status(session)

    assert [(g.source, g.state, g.reason, g.count) for g in status.dead] == [
        ("demo", "failed", "amount", 2),
        ("demo", "expired", "order_unknown", 1),
    ]
    assert str(status.dead_total) == "3"
    assert status.newest_dead[0].id == newest.id
    assert len(status.newest_dead) == 3


def test_counts_stop_at_their_bound(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound a count says so instead of counting on."""
    monkeypatch.setattr(readings, "LOOK_AT", 3)
    for _ in range(5):
        make_event(session)
        make_event(session, state="failed")
        make_event(session, state="in_flight")

    status = _status(session)

    assert str(status.pending_total).endswith("+")
    assert status.dead_total.more
    assert str(status.in_flight) == "3+"


def test_rates_come_from_the_roll_up_of_the_last_hour(session: Session) -> None:
    """Received, success share, average and p95 of one source; older minutes do not count."""
    bounds = len(BOUNDS_MS) + 1
    fast = [9, *[0] * (bounds - 1)]
    slow = [0] * (bounds - 2) + [1, 0]
    make_minute(session, result="new", count=12)
    make_minute(session, result="duplicate", count=3)
    make_minute(session, result="applied", count=9, total_ms=90, buckets=fast)
    make_minute(
        session,
        result="applied",
        count=1,
        total_ms=910,
        buckets=slow,
        minute=NOW.replace(second=0) - timedelta(minutes=5),
    )
    make_minute(session, result="failed", count=10)
    make_minute(session, source="(unknown)", result="rejected", count=7)
    make_minute(session, result="applied", count=99, minute=NOW - timedelta(hours=2))

    (rate,) = _status(session).rates

    assert (rate.received, rate.processed, rate.dead, rate.success) == (15, 10, 10, 0.5)
    assert rate.average_ms == 100
    assert rate.p95_ms == BOUNDS_MS[-1]


def test_a_source_that_never_spoke_has_no_rate(session: Session) -> None:
    """None, not zero per cent."""
    (rate,) = _status(session).rates
    assert (rate.success, rate.average_ms, rate.p95_ms) == (None, None, None)


def test_workers_conflicts_rejections_and_pauses_are_read(session: Session) -> None:
    """A silent worker is listed, not alive; variants are quiet; rejections are summed."""
    make_worker(session)
    make_worker(session, last_seen_at=NOW - timedelta(minutes=5))
    event = make_event(session, state="processed")
    make_conflict(session, event)
    make_conflict(session, event, kind="variant", payload=b"{}")
    make_rejection(session, count=30)
    make_rejection(session, count=10, remote_address="203.0.113.8", skew_seconds=900)
    make_rejection(session, minute=NOW - timedelta(hours=3), reason="body_unreadable")
    make_pause(session)

    status = _status(session)

    assert (status.workers_alive, len(status.workers)) == (1, 2)
    assert str(status.open_conflicts) == "1"
    assert [(r.source, r.reason, r.count) for r in status.rejections] == [("demo", "signature", 40)]
    assert [pause.key for pause in status.pauses] == ["demo"]
    times = source_times(session, "demo")
    assert (times.last_received_at, times.last_rejected_reason) == (NOW, "signature")
