"""Events that prove too little are read back before they count: by the provider's API alone, outside any
transaction, and no outage of an API costs an event or another source's time.
"""

from datetime import timedelta

import pytest
import requests
import responses
from sqlalchemy import select

from receiver.inbox.acknowledge import forget_event
from receiver.inbox.confirm import LOOKS, chosen
from receiver.inbox.models import WebhookEvent, WebhookEventAttempt, WebhookFetch
from receiver.inbox.process import Processor
from receiver.inbox.replay import preview_replay, replay_event
from receiver.orders.models import Order
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.settings import Secret, Source
from tests.inbox.gestures import event, register, row, store, work

XENDIT = "https://api.xendit.co/v3/payments/tx_1"
MOLLIE = "https://api.mollie.com/v2/payments/tr_1"
KEY = {"key": Secret("env:KEY", "sk_never_shown")}
PAID = {
    "payment_id": "tx_1",
    "reference_id": "o_1",
    "status": "SUCCEEDED",
    "request_amount": 25,
    "currency": "EUR",
}


@pytest.fixture
def http():
    """The network, in which only what a test answers exists."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture
def shop(make_deps):
    """A process with two sources that must be read back, one without credentials, and the demo source."""
    return make_deps(
        sources={
            "xendit": Source("xendit", "xendit", (Secret("env:T", "t"),), api=KEY),
            "mollie": Source("mollie", "mollie_classic", api=KEY),
            "poor": Source("poor", "xendit", (Secret("env:T", "t"),)),
            "demo": Source("demo", "demo", (Secret("env:D", "d"),)),
        }
    )


def hint(kind="succeeded", **facts):
    """What a message of the source xendit claims."""
    return event(kind, **{"source": "xendit", "facts_error": "unconfirmed", **facts})


def state_of(deps, reference="o_1"):
    """The order's state."""
    with deps.sessions() as session:
        return session.scalars(select(Order.state).where(Order.reference == reference)).one()


def fetches(deps, row_id):
    """What is kept of the answers."""
    with deps.sessions() as session:
        return list(session.scalars(select(WebhookFetch).where(WebhookFetch.event_id == row_id)))


def test_a_message_that_the_api_bears_out_is_applied(http, shop):
    """The API's facts are on the row, its answer is kept, and the order is paid."""
    http.add("GET", XENDIT, json=PAID)
    register(shop)
    (event_id,) = store(shop, hint())
    work(shop)
    stored = row(shop, event_id)

    assert (stored.state, stored.outcome, stored.facts_error) == ("processed", "applied", None)
    assert (stored.amount_minor, stored.currency) == (2500, "EUR")
    assert state_of(shop) == "paid"
    (kept,) = fetches(shop, event_id)
    assert (kept.status, b'"SUCCEEDED"' in kept.body) == (200, True)
    assert http.calls[0].request.headers["Authorization"].startswith("Basic ")


def test_no_transaction_is_open_while_the_api_is_asked(http, shop):
    """A slow provider must not hold a connection or a lock."""
    seen = []

    def answer(request):
        seen.append(shop.engine.pool.checkedout())
        return 200, {}, '{"status": "PENDING", "payment_id": "tx_1"}'

    http.add_callback("GET", XENDIT, answer)
    store(shop, hint("pending"))
    work(shop)

    assert seen == [0]


def test_the_api_wins_over_the_message(http, shop):
    """A forged amount is not believed, nor a forged success: the facts come from the API alone."""
    http.add("GET", XENDIT, json={**PAID, "request_amount": 1})
    register(shop)
    (event_id,) = store(shop, hint(amount_minor=2500))
    work(shop)

    assert (row(shop, event_id).state, row(shop, event_id).reason) == ("failed", "amount")
    assert row(shop, event_id).amount_minor == 100
    assert state_of(shop) == "pending"


def test_a_flaw_of_a_message_that_is_only_a_hint_does_not_matter(http, shop):
    """Where nothing in a message is believed, nothing in it can spoil the payment."""
    http.add("GET", XENDIT, json=PAID)
    register(shop)
    (event_id,) = store(shop, hint(facts_error="unreadable_amount", amount_minor=None))
    work(shop)

    assert row(shop, event_id).outcome == "applied"


def test_success_before_the_api_knows_it_waits(http, shop):
    """Some APIs read from copies that lag: the message is not thrown away at the first look."""
    http.add("GET", XENDIT, json={**PAID, "status": "PENDING"})
    register(shop)
    (event_id,) = store(shop, hint())
    work(shop)
    assert (row(shop, event_id).state, row(shop, event_id).last_error_code) == ("pending", "api_behind")

    http.replace("GET", XENDIT, json=PAID)
    shop.clock.move(timedelta(seconds=10))
    work(shop)
    assert row(shop, event_id).outcome == "applied"


def test_at_last_the_apis_word_counts(http, shop):
    """After LOOKS looks a success that the API calls pending is pending."""
    http.add("GET", XENDIT, json={**PAID, "status": "PENDING"})
    register(shop)
    (event_id,) = store(shop, hint())
    for _ in range(LOOKS):
        work(shop)
        shop.clock.move(timedelta(hours=1))

    assert (row(shop, event_id).state, row(shop, event_id).kind) == ("processed", "pending")
    assert state_of(shop) == "pending"


def test_without_credentials_the_row_fails_as_unconfirmed(http, shop):
    """Nothing is asked, nothing is believed."""
    register(shop)
    (event_id,) = store(shop, hint(source="poor"))
    work(shop)

    assert (row(shop, event_id).state, row(shop, event_id).reason) == ("failed", "unconfirmed")
    assert len(http.calls) == 0


def test_a_replay_after_the_credentials_came_reads_back(http, shop, make_deps):
    """What failed for want of a key is repaired by the key and a replay, and the preview says so."""
    http.add("GET", XENDIT, json=PAID)
    register(shop)
    (event_id,) = store(shop, hint(source="poor"))
    work(shop)
    rich = make_deps(sources={"poor": Source("poor", "xendit", api=KEY)})
    with rich.sessions.begin() as session:
        assert "read back from the provider's API" in preview_replay(session, rich.settings, event_id)
        version = session.get_one(WebhookEvent, event_id).row_version
        replay_event(session, event_id, row_version=version, actor="ada", reason="key", now=rich.clock.now())
    work(rich)

    assert row(rich, event_id).outcome == "applied"


@pytest.mark.parametrize(
    "how",
    [
        {"status": 429, "headers": {"Retry-After": "900"}},
        {"status": 500},
        {"status": 401},
        {"body": requests.ReadTimeout()},
        {"body": "<html>"},
    ],
)
def test_an_api_without_an_answer_costs_a_wait(http, shop, how):
    """Back to the inbox by the backoff, with an attempt that says why; Retry-After is heeded."""
    http.add("GET", XENDIT, **how)
    register(shop)
    (event_id,) = store(shop, hint())
    work(shop)
    stored = row(shop, event_id)

    assert (stored.state, stored.attempts, stored.last_error_code) == ("pending", 1, "api_unavailable")
    waits = (stored.next_attempt_at - shop.clock.now()).total_seconds()
    assert waits == 900 if "headers" in how else 3 < waits < 7
    with shop.sessions() as session:
        attempts = session.scalars(
            select(WebhookEventAttempt).where(WebhookEventAttempt.event_id == event_id)
        )
        assert [attempt.outcome for attempt in attempts] == ["retry"]


def test_an_api_that_is_down_is_asked_once_for_many_events(http, shop):
    """The others of the source wait uncounted, and other sources' events are worked in the same batch."""
    http.add("GET", XENDIT, status=503)
    register(shop)
    register(shop, "o_2")
    ids = store(shop, *[hint() for _ in range(20)])
    (other,) = store(shop, event("succeeded", source="demo", order_reference="o_2", transaction_id="tx_2"))
    work(shop)

    assert len(http.calls) == 1
    assert sorted(row(shop, each).attempts for each in ids) == [0] * 19 + [1]
    assert {row(shop, each).state for each in ids} == {"pending"}
    assert row(shop, other).outcome == "applied"


def test_a_payment_that_the_api_does_not_know_is_refused_after_some_looks(http, shop):
    """404 may be too early at first; later it is an answer."""
    http.add("GET", XENDIT, status=404, json={})
    register(shop)
    (event_id,) = store(shop, hint())
    work(shop)
    assert (row(shop, event_id).state, row(shop, event_id).last_error_code) == ("pending", "not_at_provider")
    for _ in range(LOOKS):
        shop.clock.move(timedelta(hours=1))
        work(shop)

    stored = row(shop, event_id)
    assert (stored.state, stored.reason) == ("failed", "not_at_provider")
    assert stored.last_error == "the API does not know this payment: asked 4 times"
    assert stored.facts_error == "unconfirmed"


def test_a_notification_of_an_object_brings_all_that_happened_to_it(http, shop):
    """A Mollie notification that was late finds payment and refund: each becomes an event, and again not."""
    amount = {"value": "25.00", "currency": "EUR"}
    refund = {"id": "re_1", "status": "refunded", "amount": {"value": "5.00", "currency": "EUR"}}
    http.add(
        "GET",
        MOLLIE,
        json={
            "id": "tr_1",
            "status": "paid",
            "description": "o_1",
            "amount": amount,
            "_embedded": {"refunds": [refund]},
        },
    )
    register(shop)
    said = PaymentEvent("mollie", Kind.OTHER, transaction_id="tr_1", facts_error="unconfirmed")
    first, second = store(shop, said, said)
    work(shop)

    assert state_of(shop) == "partially_refunded"
    with shop.sessions() as session:
        events = {e.provider_event_id: e.outcome for e in session.scalars(select(WebhookEvent))}
    assert events.pop("api:refunded:tr_1:re_1:500:") == "applied"
    assert sorted(events.values()) == ["applied", "repeat"]
    assert [len(fetches(shop, each)) for each in (first, second)] == [1, 1]


def test_an_id_that_the_api_cannot_be_asked_for_is_refused(http, shop):
    """Asking again would not help, so the row says so at once."""
    said = PaymentEvent("mollie", Kind.OTHER, transaction_id="ord_1", facts_error="unconfirmed")
    (event_id,) = store(shop, said)
    work(shop)

    assert (row(shop, event_id).state, row(shop, event_id).reason) == ("failed", "unconfirmed")
    assert row(shop, event_id).last_error == "the API cannot be asked for such a payment"


def test_a_stop_hands_back_what_was_not_asked(http, shop):
    """SIGTERM during a burst: the rest goes back as it came."""
    processor = Processor(shop, "w1")

    def answer(request):
        processor.stop()
        return 200, {}, '{"status": "PENDING", "payment_id": "tx_1"}'

    http.add_callback("GET", XENDIT, answer)
    ids = store(shop, *[hint("pending") for _ in range(3)])
    processor.tick()

    assert sorted(row(shop, each).attempts for each in ids)[:2] == [0, 0]
    assert len(http.calls) == 1


def test_a_long_answer_is_cut(http, shop):
    """No answer fills the disk."""
    http.add("GET", XENDIT, json={**PAID, "filler": "x" * 100_000})
    register(shop)
    (event_id,) = store(shop, hint())
    work(shop)

    assert [len(kept.body) for kept in fetches(shop, event_id)] == [65536]


def test_what_was_read_back_is_erased_with_the_payload(http, shop):
    """A customer's data goes from both places."""
    http.add("GET", XENDIT, json={**PAID, "request_amount": 1})
    register(shop)
    (event_id,) = store(shop, hint())
    work(shop)
    with shop.sessions.begin() as session:
        forget_event(session, event_id, actor="ada", reason="asked", erase=True, now=shop.clock.now())

    assert [kept.body for kept in fetches(shop, event_id)] == [None]


def test_the_row_is_about_what_its_message_claims():
    """Of several facts the claimed one; a refund without an id of its own is the running total."""
    paid = PaymentEvent("x", Kind.SUCCEEDED, transaction_id="t", effect_id="t", amount_minor=9)
    part = PaymentEvent("x", Kind.REFUNDED, transaction_id="t", effect_id="r1", amount_minor=1)
    total = PaymentEvent("x", Kind.REFUND_TOTAL, transaction_id="t", refund_total_minor=4)

    assert chosen(PaymentEvent("x", Kind.REFUNDED, effect_id="r1"), (paid, part)) == (part, ())
    assert chosen(PaymentEvent("x", Kind.REFUNDED), (paid, total)) == (total, ())
    assert chosen(PaymentEvent("x", Kind.FAILED), (paid,)) == (paid, ())
    assert chosen(PaymentEvent("x", Kind.FAILED, transaction_id="t"), ())[0].kind is Kind.OTHER
