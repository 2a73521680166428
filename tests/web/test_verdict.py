"""The traffic light: which reading makes which level, the worst first."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from receiver.alerts.list_alerts import open_alerts
from receiver.inbox.readings import read_status
from receiver.web.verdict import AMBER, GREEN, RED, judge
from tests.factories import (
    NOW,
    make_alert,
    make_conflict,
    make_event,
    make_pause,
    make_rejection,
    make_worker,
)


def _levels(session: Session, faults: dict[str, list[str]] | None = None) -> list[str]:
    status = read_status(session, stale=timedelta(seconds=30), now=NOW)
    verdict = judge(status, faults or {}, open_alerts(session))
    levels = [finding.level for finding in verdict.findings]
    assert levels == sorted(levels, key=[RED, AMBER].index)
    assert verdict.level == (levels[0] if levels else GREEN)
    return levels


def test_an_idle_service_with_a_worker_is_green(session: Session) -> None:
    """Nothing to say."""
    make_worker(session)
    make_event(session, state="processed")
    make_event(session)
    assert _levels(session) == []


def test_no_worker_is_red(session: Session) -> None:
    """Events would be stored, and nothing applied."""
    assert _levels(session) == [RED]


@pytest.mark.parametrize(
    "columns",
    [
        {"state": "failed"},
        {"state": "expired"},
        {"parked_reason": "refund_exceeds_captured"},
        {"at": NOW - timedelta(minutes=2)},
        {"state": "in_flight", "at": NOW - timedelta(minutes=2)},
    ],
)
def test_what_needs_a_person_is_red(session: Session, columns: dict[str, object]) -> None:
    """Dead letters, refunds above captures, overdue rows, leases that ran out."""
    make_worker(session)
    make_event(session, **columns)  # type: ignore[arg-type]
    assert _levels(session) == [RED]


def test_a_conflict_is_red(session: Session) -> None:
    """The same id with other facts: somebody must say which is true."""
    make_worker(session)
    make_conflict(session, make_event(session, state="processed"))
    assert _levels(session) == [RED]


def test_what_wants_a_look_is_amber(session: Session) -> None:
    """Retries, long parked rows, pauses, rejections, faults of sources; red comes before them."""
    make_worker(session)
    later = NOW + timedelta(minutes=1)
    make_event(session, attempts=1, next_attempt_at=later)
    make_event(
        session, parked_reason="order_unknown", parked_at=NOW - timedelta(hours=1), next_attempt_at=later
    )
    make_pause(session, "lesson")
    make_rejection(session, count=5)
    make_rejection(session, source="(unknown)", count=500)
    assert _levels(session, {"demo": ["no usable secret"]}) == [AMBER] * 5
    make_event(session, state="failed")
    assert _levels(session)[0] == RED


def test_a_freshly_parked_row_is_no_finding(session: Session) -> None:
    """An order is often registered a moment after its payment."""
    make_worker(session)
    make_event(session, parked_reason="order_unknown", next_attempt_at=NOW + timedelta(seconds=5))
    assert _levels(session) == []


def test_held_rows_are_not_stuck(session: Session) -> None:
    """A pause is amber by itself, however old the rows are that it holds."""
    make_worker(session)
    make_pause(session)
    make_event(session, at=NOW - timedelta(days=2), next_attempt_at=NOW - timedelta(days=2))
    make_event(session, attempts=2, parked_reason="order_unknown", parked_at=NOW - timedelta(days=2))
    assert _levels(session) == [AMBER]


def test_alerts_are_told_by_their_level(session: Session) -> None:
    """What pages is red, the rest amber; what the status shows itself is not said twice."""
    make_worker(session)
    make_alert(session, kind="secret_ends", level="warn", facts={"rotate_by": "2026-03-09"})
    make_alert(session)
    make_alert(session, kind="conflict")
    make_alert(session, kind="drift", closed_at=NOW, facts={"count": 3})

    assert _levels(session) == [RED, AMBER]


def test_what_expires_soon_is_amber(session: Session) -> None:
    """An event twelve hours before its deadline is warned of; held ones never end."""
    make_worker(session)
    make_event(session, give_up_at=NOW + timedelta(hours=11), next_attempt_at=NOW)
    make_event(session, give_up_at=NOW + timedelta(hours=13), next_attempt_at=NOW)
    make_event(session, give_up_at=NOW + timedelta(hours=1), next_attempt_at=NOW, source="held")
    make_pause(session, "held")
    status = read_status(session, stale=timedelta(seconds=30), now=NOW)

    said = [finding for finding in judge(status, {}).findings if "expire" in finding.text]
    assert [(finding.text, finding.href) for finding in said] == [
        (
            "1 event will expire within 12 h, the first in 11 h.",
            "/events?expires_before=2026-03-02T00%3A00%3A00Z",
        )
    ]
