"""The alerts' rows: opened once by whoever looks, told by notices that are written with them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from receiver.alert_settings import AlertSettings, Channel
from receiver.alerts.keep import KEPT, Turned, forget, keep
from receiver.alerts.list_alerts import acknowledge, list_alerts
from receiver.alerts.look import look
from receiver.alerts.models import Alert, AlertNotice
from receiver.alerts.verdicts import KINDS, Verdict
from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox.models import WebhookEvent
from tests.conftest import MakeDeps
from tests.factories import (
    NOW,
    make_alert,
    make_conflict,
    make_event,
    make_minute,
    make_rejection,
    make_worker,
)

CHAT, PAGER = Channel("CHAT", "json://127.0.0.1:1/"), Channel("PAGER", "json://127.0.0.1:1/", pages=True)
LIMITS = AlertSettings(channels=(CHAT, PAGER), recovery=timedelta(0), public_url="https://pay.example")
GIVE_UP = timedelta(hours=72)


def kept(session: Session, verdicts: Sequence[Verdict], minutes: float = 0) -> list[str]:
    turned = keep(
        session, verdicts, KINDS, limits=LIMITS, give_up=GIVE_UP, now=NOW + timedelta(minutes=minutes)
    )
    return [f"{one.turn.value} {one.kind} {one.key}".strip() for one in turned]


def notices(session: Session) -> list[tuple[str, str, str]]:
    rows = session.scalars(select(AlertNotice).order_by(AlertNotice.id)).all()
    return [(row.channel, row.turn, row.state) for row in rows]


def test_one_alert_from_its_opening_to_its_end(session: Session) -> None:
    """Opened, made worse, reminded, over; each look in between changes and tells nothing."""
    failing = Verdict("source_failing", "acme", since=NOW - timedelta(hours=1))
    worse = Verdict("source_failing", "acme", "page", step=2)

    assert kept(session, [failing]) == ["opened source_failing acme"]
    assert kept(session, [failing], 1) == []
    assert kept(session, [worse], 2) == ["worse source_failing acme"]
    assert kept(session, [failing], 3) == []
    assert kept(session, [worse], 2 + 240) == ["reminder source_failing acme"]
    assert kept(session, [], 300) == ["recovered source_failing acme"]
    assert kept(session, [], 301) == []

    (alert,) = session.scalars(select(Alert)).all()
    assert (alert.step, alert.since, alert.opened_at) == (2, NOW - timedelta(hours=1), NOW)
    assert alert.closed_at == NOW + timedelta(minutes=300)
    # The pager hears from the step on that cannot wait.
    assert notices(session) == [
        ("CHAT", "opened", "due"),
        ("CHAT", "worse", "due"),
        ("PAGER", "worse", "due"),
        ("CHAT", "reminder", "dropped"),
        ("PAGER", "reminder", "dropped"),
        ("CHAT", "recovered", "due"),
        ("PAGER", "recovered", "due"),
    ]
    assert kept(session, [failing], 302) == ["opened source_failing acme"]


def test_a_later_reminder_overtakes_those_that_wait(session: Session) -> None:
    """A channel that was down for days is told the opening, the last reminder and the end."""
    for hours in (0, 4, 8, 12):
        kept(session, [Verdict("conflict", "acme", facts={"count": 1})], hours * 60)
    kept(session, [], 800)

    chat = [(turn, state) for channel, turn, state in notices(session) if channel == "CHAT"]
    assert chat == [
        ("opened", "due"),
        ("reminder", "dropped"),
        ("reminder", "dropped"),
        ("reminder", "dropped"),
        ("recovered", "due"),
    ]


def test_kinds_that_were_not_looked_at_stay(session: Session) -> None:
    """The web's look at the workers closes nothing else."""
    kept(session, [Verdict("silence", "acme", "page")])
    turned = keep(session, [], {"no_worker"}, limits=LIMITS, give_up=GIVE_UP, now=NOW + timedelta(hours=1))

    assert turned == []
    assert [alert.kind for alert in list_alerts(session).open] == ["silence"]


def test_an_acknowledged_alert_is_not_reminded_of(session: Session) -> None:
    """Who is on it says so, with an audit row; the end is told all the same."""
    kept(session, [Verdict("silence", "acme", "page")])
    (alert,) = list_alerts(session).open
    acknowledge(session, alert.id, actor="olga", reason="asked the provider", now=NOW)

    assert kept(session, [Verdict("silence", "acme", "page")], 60 * 48) == []
    assert kept(session, [], 60 * 49) == ["recovered silence acme"]


@pytest.mark.field_case(122)
def test_many_that_look_at_once_open_one_alert(deps: Deps, make_deps: MakeDeps) -> None:
    """Eight processes see the same in one moment: one alert, one notice for each channel."""
    together = Barrier(8)
    wanted = [Verdict("silence", "acme", "page"), Verdict("conflict", "beta", facts={"count": 2})]

    def one(_number: int) -> list[Turned]:
        with deps.sessions.begin() as session:
            together.wait(10)
            return keep(session, wanted, KINDS, limits=LIMITS, give_up=GIVE_UP, now=NOW)

    with ThreadPoolExecutor(8) as pool:
        turned = [one for found in pool.map(one, range(8)) for one in found]

    with deps.sessions() as session:
        assert len(session.scalars(select(Alert)).all()) == len(turned) == 2
        assert sorted(notices(session)) == [
            ("CHAT", "opened", "due"),
            ("CHAT", "opened", "due"),
            ("PAGER", "opened", "due"),
        ]


def test_the_look_reads_what_stands_in_the_inbox(make_deps: MakeDeps, clock: FixedClock) -> None:
    """Dead letters, conflicts, rejections, deadlines and a late backlog become alerts with their reasons."""
    deps = make_deps(alerts=LIMITS)
    with deps.sessions.begin() as session:
        make_worker(session)
        dead = make_event(session, state="failed", reason="second_payment", at=NOW - timedelta(hours=3))
        make_event(session, state="expired", reason="order_unknown", at=NOW - timedelta(hours=2))
        make_conflict(session, dead)
        make_rejection(session, source="lesson", reason="timestamp_too_old", count=40, skew_seconds=-900)
        parked = make_event(
            session,
            parked_reason="order_unknown",
            next_attempt_at=NOW + timedelta(hours=1),
            give_up_at=NOW + timedelta(hours=2),
        )
        make_event(session, at=NOW - timedelta(minutes=9), source="standard")
        for ago in (65, 64, 63):
            make_minute(session, minute=NOW - timedelta(minutes=ago), result="failed", source="lesson")

    look(deps)

    with deps.sessions() as session:
        found = {(row.kind, row.key): row for row in list_alerts(session).open}
        bodies = {
            (notice.channel, alert.kind): notice
            for alert in found.values()
            for notice in session.scalars(select(AlertNotice).where(AlertNotice.alert_id == alert.id))
        }
    assert set(found) == {
        ("dead_letters", "demo"),
        ("conflict", "demo"),
        ("rejections", "lesson"),
        ("clock_skew", "lesson"),
        ("expiring", "demo"),
        ("backlog", ""),
        ("source_failing", "lesson"),
    }
    assert found["dead_letters", "demo"].facts == {
        "expired": 1,
        "reasons": {"order_unknown": 1, "second_payment": 1},
    }
    said = bodies["CHAT", "dead_letters"].body
    assert "Last reasons: order_unknown, second_payment" in said
    assert f"https://pay.example/events/{dead.id}" in said
    expiring = bodies["CHAT", "expiring"]
    assert "1 event will soon expire, the first at 2026-03-01 14:00 UTC" in expiring.subject
    assert f"tried until 2026-03-01 14:00:00 UTC: https://pay.example/events/{parked.id}" in expiring.body
    assert "40 rejected in 10 minutes, reason 40 timestamp_too_old" in bodies["CHAT", "rejections"].subject
    assert ("PAGER", "backlog") in bodies
    assert ("PAGER", "conflict") not in bodies
    clock.move(timedelta(minutes=1))
    assert look(deps) == []


def test_recovery_sums_up(session: Session) -> None:
    """When rows near their deadline are gone, the end says what became of the source's events."""
    kept(session, [Verdict("expiring", "acme", facts={"count": 3, "first": "soon"})])
    for result, count in (("applied", 1), ("expired", 2), ("parked", 9)):
        make_minute(session, source="acme", minute=NOW + timedelta(minutes=5), result=result, count=count)
    kept(session, [], 10)

    body = session.scalars(select(AlertNotice).order_by(AlertNotice.id.desc())).first().body  # type: ignore[union-attr]
    assert "Events of acme that ended in this time: 1 applied, 2 expired." in body
    assert "https://pay.example/failures?source=acme" in body


def test_what_is_long_over_is_forgotten(session: Session) -> None:
    """Ninety days after its end an alert goes, with its notices; what stands open stays."""
    old = make_alert(session, kind="drift", closed_at=NOW)
    make_alert(session, opened_at=NOW - timedelta(days=400))
    session.add(
        AlertNotice(
            alert_id=old.id,
            turn="recovered",
            level="warn",
            channel="CHAT",
            subject="s",
            body="b",
            created_at=NOW,
            due_at=NOW,
        )
    )
    session.flush()

    assert forget(session, now=NOW + KEPT) == 0
    assert forget(session, now=NOW + KEPT + timedelta(seconds=1)) == 1
    assert [alert.kind for alert in list_alerts(session).open] == ["silence"]
    assert notices(session) == []


def test_another_room_reacts_once_to_an_opening(deps: Deps, clock: FixedClock) -> None:
    """It acts in the alert's transaction, once; when it fails, the alert stands all the same."""
    reacted: list[str] = []

    def react(session: Session, one: Turned) -> None:
        reacted.append(f"{one.turn.value} {one.kind} {one.key}")
        make_event(session)
        if len(reacted) == 1:
            raise ZeroDivisionError

    with deps.sessions.begin() as session:
        make_worker(session)
        make_event(session, state="failed")
    look(deps, react=react)
    with deps.sessions.begin() as session:
        assert [alert.kind for alert in list_alerts(session).open] == ["dead_letters"]
        assert session.scalar(select(func.count()).select_from(WebhookEvent)) == 1
        make_conflict(session, make_event(session, state="failed"))
    clock.move(timedelta(seconds=20))
    look(deps, react=react)
    look(deps, react=react)

    assert reacted == ["opened dead_letters demo", "opened conflict demo"]
    with deps.sessions() as session:
        assert session.scalar(select(func.count()).select_from(WebhookEvent)) == 3
