"""Cases from the field, through the door to what people are told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select

from receiver.alert_settings import AlertSettings, Channel
from receiver.alerts.look import look
from receiver.alerts.models import AlertNotice
from receiver.clock import FixedClock
from receiver.inbox.duties import expire_events
from receiver.inbox.filter import Filter
from receiver.inbox.find_events import list_events
from receiver.inbox.process import Processor
from receiver.inbox.register_order import register_order
from receiver.inbox.replay import replay_event
from receiver.inbox.waiting import waits_for
from tests import posting
from tests.doors import Door
from tests.factories import NOW, make_minute, make_worker

ALERTS = AlertSettings(
    channels=(Channel("CHAT", ""),), recovery=timedelta(0), public_url="https://pay.example"
)


def subjects(door: Door) -> list[str]:
    with door.deps.sessions() as session:
        return list(session.scalars(select(AlertNotice.subject).order_by(AlertNotice.id)))


@pytest.mark.field_case(121)
def test_rejections_and_silence_are_seen(open_door: Callable[..., Door], clock: FixedClock) -> None:
    """A wrong secret after a rotation: forty refused in ten minutes, then silence of a busy provider."""
    door = open_door(alerts=ALERTS)
    with door.deps.sessions.begin() as session:
        make_worker(session, last_seen_at=NOW + timedelta(hours=1), last_tick_at=NOW + timedelta(hours=1))
        for minute in range(5, 3 * 1440, 2):
            make_minute(session, minute=NOW - timedelta(minutes=minute), result="new")
    for number in range(40):
        body = posting.payment(f"evt_{number}", "o1")
        headers = posting.demo(body, secret="the-next-secret", at=int(clock.unix()))
        assert door.post("demo", body, headers).status_code == 401
        clock.move(timedelta(seconds=14))
    door.counts.flush()
    look(door.deps)
    assert subjects(door) == ["[Receiver] demo: 40 rejected in 10 minutes, reason 40 signature"]

    clock.move(timedelta(minutes=30))
    for _ in range(10):
        look(door.deps)
    over, silent = subjects(door)[1:]
    assert over == "[Receiver] over: demo: 40 rejected in 10 minutes, reason 40 signature"
    assert silent.startswith("[Receiver] URGENT demo: nothing received since 2026-03-01 11:55 UTC")


@pytest.mark.field_case(74)
def test_a_parked_event_is_warned_of_expires_and_is_replayed(
    open_door: Callable[..., Door], clock: FixedClock
) -> None:
    """Its order never comes: it is warned of before its deadline, expires with what it waited for, is told
    with a summary, and is applied by a replay once somebody registers the order.
    """
    door = open_door(alerts=ALERTS)
    door.demo(posting.payment("evt_77", "o_77"))
    clock.move(timedelta(seconds=1))
    processor = Processor(door.deps, "worker-1")
    processor.tick()
    with door.deps.sessions.begin() as session:
        make_worker(session, last_seen_at=NOW + timedelta(days=9), last_tick_at=NOW + timedelta(days=9))
    look(door.deps)
    assert subjects(door) == []

    clock.move(timedelta(hours=61))
    processor.tick()
    look(door.deps)
    assert subjects(door) == ["[Receiver] demo: 1 event will soon expire, the first at 2026-03-04 12:00 UTC"]
    clock.move(timedelta(hours=12))
    processor.tick()
    expire_events(door.deps)
    look(door.deps)
    with door.deps.sessions.begin() as session:
        (event,) = list_events(session, Filter(state="expired")).rows
        wait = waits_for(event)
        body = session.scalars(select(AlertNotice.body).where(AlertNotice.turn == "recovered")).one()
    assert wait is not None
    assert (wait.text, (wait.command or "").split()[-1]) == ("order o_77", "o_77")
    assert "ended in this time: 1 expired" in body
    assert subjects(door)[1:] == [
        "[Receiver] demo: 1 dead letter needs a person (1 order_unknown, 1 of them expired)",
        "[Receiver] over: demo: 1 event will soon expire, the first at 2026-03-04 12:00 UTC",
    ]

    with door.deps.sessions.begin() as session:
        register_order(
            session,
            reference="o_77",
            amount_minor=2500,
            currency="EUR",
            order_id=door.deps.dice.new_id(),
            now=clock.now(),
        )
        replay_event(
            session,
            event.id,
            row_version=event.row_version,
            actor="olga",
            reason="registered it",
            give_up=timedelta(hours=72),
            now=clock.now(),
        )
    processor.tick()
    look(door.deps)
    assert door.rows("SELECT outcome FROM webhook_events") == [{"outcome": "applied"}]
    assert "over: demo: 1 dead letter" in subjects(door)[-1]
