"""An order that no callback came for is asked for, and moves by the same rules as ever: never by less than
an exact fact, never twice, and every answer can be seen from the order.
"""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
import requests
import responses
from sqlalchemy import select

from receiver.inbox.models import WebhookEvent, WebhookFetch
from receiver.orders.models import LedgerEntry, OrderTransition
from receiver.providers.payment_api import NotOffered, Page, read_back
from receiver.reconciliation.ask import Asker
from receiver.reconciliation.check import check_claimed
from receiver.reconciliation.duty import Reconciler
from receiver.reconciliation.report import drift_report
from receiver.reconciliation.subjects import claim_order
from tests.inbox.gestures import event, ledger, order, receive, register, stands, store, transitions, work
from tests.reconciliation.gestures import (
    API,
    check_of,
    demo_source,
    findings,
    has,
    payment,
    reconcile,
    rows,
)


@pytest.fixture
def http():
    """The network, in which only what a test answers exists."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture
def shop(make_deps):
    """A process whose demo source has an API."""
    return make_deps(sources={"demo": demo_source()})


@pytest.mark.field_case(143)
def test_a_payment_whose_callback_was_lost_is_found_and_pays(http, shop):
    """After five minutes the API is asked; what it says goes through the inbox, and says where from."""
    register(shop)
    has(http, payment())
    assert reconcile(shop, minutes=4) == 0
    assert reconcile(shop, minutes=1.1) == 1
    assert findings(shop) == [("missing", "order pending, this transaction not known", "succeeded 25.00 EUR")]
    work(shop)

    assert stands(shop) == ("paid", 2500, 0)
    with shop.sessions() as session:
        moved = session.scalars(select(OrderTransition)).one()
        line = session.scalars(select(LedgerEntry)).one()
        stored = session.scalars(select(WebhookEvent)).one()
        kept = session.scalars(select(WebhookFetch)).one()
    assert (moved.by, line.by, stored.origin) == ("reconcile", "reconcile", "reconcile")
    assert stored.event_type == "read_back.succeeded"
    assert b'"paid"' in kept.body

    reconcile(shop, minutes=2)
    assert findings(shop) == []
    assert check_of(shop)["next_check_at"] is None


@pytest.mark.field_case(143)
def test_the_late_callback_is_a_repeat(http, shop):
    """When the lost event comes after all, nothing happens a second time."""
    register(shop)
    has(http, payment())
    reconcile(shop, minutes=6)
    work(shop)
    (late,) = receive(shop, event("succeeded", effect_id="tx_1"))

    assert (late.state, late.outcome) == ("processed", "repeat")
    assert ledger(shop) == [("capture", 2500)]
    assert transitions(shop) == ["paid"]


@pytest.mark.field_case(105)
def test_worker_and_reconciliation_find_one_payment_together(http, shop):
    """Callback and question in the same second: one transition, one ledger line, no finding left."""
    register(shop)
    shop.clock.move(timedelta(minutes=6))
    meet = threading.Barrier(2, timeout=20)

    def answer(request):
        meet.wait()
        return 200, {}, responses.json_module.dumps({"payments": [payment()]})

    http.add_callback("GET", f"{API}/payments", answer)

    def callback():
        meet.wait()
        store(shop, event("succeeded", effect_id="tx_1"))
        work(shop)

    other = threading.Thread(target=callback)
    other.start()
    reconcile(shop)
    other.join(20)
    work(shop)
    reconcile(shop)

    assert transitions(shop) == ["paid"]
    assert ledger(shop) == [("capture", 2500)]
    assert findings(shop) == []


@pytest.mark.parametrize(
    ("said", "kind", "state"),
    [
        (payment(amount=2600), "amount_differs", "pending"),
        (payment(currency="USD"), "currency_differs", "pending"),
        (payment("authorized"), None, "authorized"),
        (payment("failed"), None, "failed"),
        (payment(order_id="o_2"), "state_differs", "pending"),
    ],
)
def test_only_an_exact_fact_moves_an_order(http, shop, said, kind, state):
    """Another amount or currency, or another order's payment, is a finding; authorized is not paid."""
    register(shop)
    has(http, said)
    reconcile(shop, minutes=6)
    work(shop)
    reconcile(shop, minutes=2)

    assert order(shop).state == state
    assert [found[0] for found in findings(shop)] == ([kind] if kind else [])


def test_we_say_more_than_the_provider(http, shop):
    """A payment that we hold for captured and the provider does not know is shown with both sides."""
    register(shop)
    receive(shop, event("succeeded", effect_id="tx_1"))
    http.add("GET", f"{API}/payments/tx_1", status=404)
    demand(shop)

    assert findings(shop) == [("state_differs", "order paid, 25.00 EUR captured", "not known there")]
    has(http, payment())
    demand(shop)
    assert findings(shop) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 429, "headers": {"Retry-After": "1800"}}, "rate_limited"),
        ({"status": 500}, "server_error"),
        ({"body": requests.Timeout()}, "timeout"),
        ({"body": "<html>"}, "not_json"),
    ],
)
def test_no_answer_is_visible_and_asked_again(http, shop, answer, said):
    """An API that fails costs nothing but time: its failure stands at the order, with its own budget."""
    register(shop)
    http.add("GET", f"{API}/payments", **answer)
    reconcile(shop, minutes=6)
    seen = check_of(shop)

    assert (seen["last_result"], seen["failures"], seen["checks"]) == ("unavailable", 1, 0)
    assert seen["last_said"].startswith(said)
    wait = seen["next_check_at"] - shop.clock.now()
    assert wait >= timedelta(minutes=30) if said == "rate_limited" else wait < timedelta(minutes=2)

    has(http, payment())
    shop.clock.move(timedelta(minutes=31))
    reconcile(shop)
    work(shop)
    assert order(shop).state == "paid"


def test_the_rhythm_is_an_hour_then_daily_until_a_person_is_asked(http, shop):
    """An order that stays unpaid is asked for after 5 minutes, an hour, daily, and then listed."""
    register(shop)
    has(http)
    asked = []
    for _ in range(24 * 32):
        if reconcile(shop, minutes=60):
            asked.append(shop.clock.now())

    days = {(at - asked[0]).days for at in asked}
    assert 28 <= len(days) <= 31
    assert check_of(shop)["last_result"] == "too_old"
    assert check_of(shop)["next_check_at"] is None


def test_an_asker_that_lost_its_claim_writes_nothing(http, shop):
    """Two askers at once: the one that was overtaken rolls back whole."""
    register(shop)
    has(http, payment())
    old, new = shop.dice.new_id(), shop.dice.new_id()
    with shop.sessions.begin() as session:
        subjects = claim_order(session, order(shop).id, ["demo"], claim_id=old, now=shop.clock.now())
    with shop.sessions.begin() as session:
        claim_order(session, order(shop).id, ["demo"], claim_id=new, now=shop.clock.now())

    assert check_claimed(shop, Asker(shop), subjects, old) == []
    assert rows(shop, "SELECT 1 FROM webhook_events") == []


def demand(shop):
    """Ask at once."""
    claim = shop.dice.new_id()
    with shop.sessions.begin() as session:
        subjects = claim_order(session, order(shop).id, ["demo"], claim_id=claim, now=shop.clock.now())
    return check_claimed(shop, Asker(shop), subjects, claim)


class ListsAlone:
    """An API that knows payments by their ids, and lists events, but cannot be asked by our reference."""

    lists = True

    def __init__(self, *events):
        self.events, self.windows = events, []

    def get(self, transaction):
        return NotOffered("no such call")

    def list(self, window):
        self.windows.append(window)
        yield Page(self.events)


def test_where_no_reference_can_be_asked_for_the_list_tells(shop):
    """Orders of one batch share one list, from a while before the oldest of them was registered."""
    for reference in ("o_1", "o_2", "o_3"):
        register(shop, reference)
    registered = shop.clock.now()
    shop.clock.move(timedelta(minutes=6))
    told = [
        read_back(event("succeeded", order_reference=one, transaction_id=f"tx_{one}", effect_id=f"tx_{one}"))
        for one in ("o_1", "o_3", "o_4")
    ]
    api = ListsAlone(*told)
    reconciler = Reconciler(shop)
    reconciler._asker._apis["demo"] = api
    assert reconciler.tick() == 3
    work(shop)

    assert [stands(shop, one)[0] for one in ("o_1", "o_2", "o_3")] == ["paid", "pending", "paid"]
    (window,) = api.windows
    assert window.start < registered < window.end == shop.clock.now()


def test_an_order_that_no_api_can_be_asked_for_is_listed_for_a_person(shop):
    """Not offered is no answer: the order is on the report until it is paid or somebody looks."""
    register(shop)
    shop.clock.move(timedelta(minutes=6))
    api = ListsAlone()
    api.lists = False
    reconciler = Reconciler(shop)
    reconciler._asker._apis["demo"] = api
    reconciler.tick()
    with shop.sessions.begin() as session:
        report = drift_report(session)

    assert [(one.reference, one.check.last_result) for one in report.for_a_person] == [("o_1", "not_offered")]
    assert report.finding_count == 0
