"""A source that falls silent is asked at once what it did not send; it is silent until it speaks itself."""

from __future__ import annotations

from datetime import timedelta

import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import insert

from receiver.inbox.models import InboxMinute
from receiver.settings import Secret
from receiver.timetable import Timetable
from tests.factories import NOW, make_worker
from tests.inbox.gestures import order, register, work
from tests.reconciliation.gestures import demo_source, rows
from tests.reconciliation.provider import KEY, body, run_provider


@pytest.fixture
def provider(tmp_path):
    """The demo provider over real HTTP."""
    with run_provider(tmp_path) as running:
        yield running


def test_a_silent_source_is_asked_once_at_once(make_deps, provider):
    """Its alert begins a catch-up in the same transaction; the lost payment is applied, and the alert stands:
    what we fetched is no word of the provider's.
    """
    source = demo_source(api={"key": Secret("env:KEY", KEY)}, api_url=provider.url)
    shop = make_deps(sources={"demo": source})
    with shop.sessions.begin() as session:
        make_worker(session, last_seen_at=NOW + timedelta(days=1), last_tick_at=NOW + timedelta(days=1))
        minutes = [NOW - timedelta(minutes=n) for n in range(3 * 1440)]
        session.execute(
            insert(InboxMinute),
            [{"source": "demo", "minute": minute, "result": "new", "count": 1} for minute in minutes],
        )
    lost_at = NOW + timedelta(minutes=20)
    provider.book.record_at([(body("evt_1", "payment.succeeded", "o_1", "tx_1", lost_at), lost_at)])
    register(shop, "o_1")
    shop.clock.move(timedelta(hours=1))
    timetable = Timetable(shop, BackgroundScheduler())

    for _ in range(3):
        timetable.alert()
        timetable.reconciler.tick()
        work(shop)
        shop.clock.move(timedelta(minutes=1))

    (begun,) = rows(shop, "SELECT by, reason, state, missing FROM catch_ups")
    assert begun == {"by": "system", "reason": "the source fell silent", "state": "done", "missing": 1}
    assert order(shop, "o_1").state == "paid"
    assert rows(shop, "SELECT kind, closed_at FROM alerts") == [{"kind": "silence", "closed_at": None}]
