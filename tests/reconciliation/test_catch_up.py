"""A catch-up lists what the provider sent in a window and fills the inbox's gaps: nothing is skipped by
paging, nothing comes twice, and one that was interrupted goes on.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from receiver.providers.payment_api import Page, Unavailable
from receiver.reconciliation.ask import Asker
from receiver.reconciliation.catch_up import (
    CatchUpRefused,
    advance_catch_ups,
    begin_catch_up,
    cancel_catch_up,
    list_slice,
)
from receiver.reconciliation.models import CatchUp
from receiver.settings import Secret
from tests.factories import NOW
from tests.inbox.gestures import order, register, work
from tests.reconciliation.gestures import demo_source, findings, rows
from tests.reconciliation.provider import KEY, body, run_provider
from tests.running import run_worker, wait_for

ORDERS = 230


@pytest.fixture
def provider(tmp_path):
    """The demo provider over real HTTP."""
    with run_provider(tmp_path) as running:
        yield running


def source_at(provider):
    return demo_source(api={"key": Secret("env:KEY", KEY)}, api_url=provider.url)


def begin(deps, start=NOW - timedelta(days=1), end=NOW):
    """Begin a catch-up of the demo source; its id."""
    with deps.sessions.begin() as session:
        row = begin_catch_up(
            session,
            Asker(deps),
            "demo",
            catch_up_id=deps.dice.new_id(),
            start=start,
            end=end,
            actor="olga",
            reason="we were down",
            now=deps.clock.now(),
        )
        return row.id


def fill(deps, provider, number=ORDERS):
    """Orders that the provider holds a payment for, over the last day."""
    bodies = []
    for n in range(number):
        at = NOW - timedelta(seconds=(number - n) * 300)
        bodies.append((body(f"evt_{n}", "payment.succeeded", f"o_{n}", f"tx_{n}", at), at))
    provider.book.record_at(bodies)
    return [each for each, _ in bodies]


def test_the_gaps_of_an_outage_are_filled_once(open_door, provider):
    """The events that did not come are in the inbox under their own ids, so that a late one is known."""
    door = open_door(sources={"demo": source_at(provider)})
    bodies = fill(door.deps, provider)
    for n in range(ORDERS):
        register(door.deps, f"o_{n}")
    for each in bodies[::10]:
        door.demo(each)
    begin(door.deps)
    done = advance_catch_ups(door.deps, Asker(door.deps))

    assert (done.state, done.listed, done.missing) == ("done", ORDERS, ORDERS - len(bodies[::10]))
    door.work()
    assert {row["state"] for row in door.rows("SELECT state FROM orders")} == {"paid"}
    by = door.rows("SELECT by, count(*) AS n FROM order_transitions GROUP BY by ORDER BY by")
    assert by == [{"by": "event", "n": 23}, {"by": "reconcile", "n": ORDERS - 23}]
    assert door.demo(bodies[1]).status_code == 200
    assert door.event("evt_1")["receipts"] == 2
    (audit,) = door.rows("SELECT * FROM operator_actions")
    assert (audit["actor"], audit["action"], audit["target"]) == ("olga", "source.catch_up", "source:demo")

    again = begin(door.deps)
    assert advance_catch_ups(door.deps, Asker(door.deps), only=again).missing == 0


def test_a_payment_for_an_order_that_nobody_registered_is_unknown_to_us(make_deps, provider):
    """Money that the provider holds for an order we do not know is a finding, until it is registered."""
    shop = make_deps(sources={"demo": source_at(provider)})
    fill(shop, provider, 1)
    begin(shop)
    advance_catch_ups(shop, Asker(shop))
    work(shop)
    assert findings(shop) == [("unknown_to_us", "no such order is registered", "succeeded 25.00 EUR")]

    register(shop, "o_0")
    work(shop)
    from receiver.reconciliation.duty import Reconciler

    Reconciler(shop).tick()
    assert (findings(shop), order(shop, "o_0").state) == ([], "paid")


def test_an_outage_of_the_api_delays_and_loses_nothing(make_deps, provider):
    """A catch-up without an answer stays where it was, says why, and goes on later."""
    shop = make_deps(sources={"demo": source_at(provider)})
    fill(shop, provider, 5)
    provider.book.break_down("429", 1)
    row_id = begin(shop)
    failed = advance_catch_ups(shop, Asker(shop))
    assert (failed.state, failed.failures, failed.last_error[:12]) == ("running", 1, "rate_limited")
    assert advance_catch_ups(shop, Asker(shop)) is None

    shop.clock.move(timedelta(minutes=2))
    done = advance_catch_ups(shop, Asker(shop), only=row_id)
    assert (done.state, done.missing, done.last_error) == ("done", 5, None)


def test_a_killed_worker_leaves_a_catch_up_to_the_next(database_url, make_deps, provider):
    """kill -9 in the middle: another worker goes on, and every event is there once."""
    shop = make_deps(sources={"demo": source_at(provider)})
    shop.clock.move(timedelta(0))
    fill(shop, provider)
    begin(shop)
    toml = (
        f'[sources.demo]\nprovider = "demo"\nsecrets = ["env:DEMO_SECRET"]\napi = {{ key = "env:K" }}\n'
        f'api_url = "{provider.url}"\n'
    )
    environment = {"K": KEY}
    with run_worker(database_url, sources=toml, environment=environment) as first:
        wait_for(lambda: rows(shop, "SELECT 1 FROM webhook_events LIMIT 1"), 20, "the first slice is stored")
        first.kill()
    with shop.sessions.begin() as session:
        # Its lease is over.
        session.query(CatchUp).filter(CatchUp.claim_id.is_not(None)).update({"claimed_until": NOW})
    with run_worker(database_url, sources=toml, environment=environment):
        wait_for(lambda: rows(shop, "SELECT 1 FROM catch_ups WHERE state = 'done'"), 20, "it is done")

    (counted,) = rows(
        shop, "SELECT count(*) AS n, count(DISTINCT provider_event_id) AS ids FROM webhook_events"
    )
    assert (counted["n"], counted["ids"]) == (ORDERS, ORDERS)
    (done,) = rows(shop, "SELECT missing FROM catch_ups")
    assert done["missing"] == ORDERS


class Moving:
    """An API whose rows move between pages while they are read: each list misses another one."""

    lists = True

    def __init__(self, events, missing):
        self.events, self.missing = events, list(missing)

    def list(self, window):
        skipped = self.missing.pop(0) if self.missing else None
        yield Page(tuple(one for n, one in enumerate(self.events) if n != skipped))


def test_a_row_that_moves_between_pages_is_not_skipped():
    """A slice is listed until two lists agree, and all that any list held is kept."""
    from receiver.providers.payment_api import read_back
    from tests.inbox.gestures import event

    events = [read_back(event("succeeded", transaction_id=f"tx_{n}", effect_id=f"tx_{n}")) for n in range(5)]
    found = list_slice(Moving(events, [2, 4]), NOW - timedelta(hours=1), NOW)

    assert len(found.events) == 5
    assert found.failed is None


class Busy:
    """An API that lists no more than two minutes in one go."""

    lists = True

    def list(self, window):
        if window.end - window.start > timedelta(minutes=2):
            yield Unavailable("too_many_pages", "ask for a shorter window")


def test_a_window_that_is_too_long_is_halved():
    """A slice that the API cannot list in a bounded number of pages becomes shorter."""
    found = list_slice(Busy(), NOW - timedelta(hours=6), NOW)

    assert found.failed is None
    assert timedelta(0) < found.end - (NOW - timedelta(hours=6)) <= timedelta(minutes=2)


def test_what_cannot_be_listed_is_refused(make_deps, provider):
    """A source without an API, a window that ends before it begins, and an end of one that runs."""
    shop = make_deps(sources={"demo": source_at(provider)})
    with shop.sessions.begin() as session, pytest.raises(CatchUpRefused) as refused:
        begin_catch_up(
            session, Asker(shop), "other", catch_up_id=shop.dice.new_id(), start=NOW, end=NOW,
            actor="o", reason="r", now=shop.clock.now(),
        )  # fmt: skip
    assert refused.value.code == "source_unknown"
    with pytest.raises(CatchUpRefused, match="begins before"):
        begin(shop, start=NOW + timedelta(hours=1), end=NOW + timedelta(hours=2))

    row_id = begin(shop)
    with shop.sessions.begin() as session:
        cancel_catch_up(session, row_id, actor="olga", reason="not needed", now=shop.clock.now())
    assert advance_catch_ups(shop, Asker(shop)) is None
