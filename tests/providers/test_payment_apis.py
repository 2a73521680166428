"""Each provider's API: facts exact to the unit, and every way of failing a value of its own."""

import contextlib
import json
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests
import responses

from receiver.providers import asking
from receiver.providers.apis import description, missing_credentials, names, payment_api
from receiver.providers.payment_api import (
    Found,
    NotFound,
    NotOffered,
    Page,
    Transaction,
    Unavailable,
    Window,
    read_back_id,
)
from receiver.settings import Secret, Source
from tests.providers.api_answers import CASES, SECRET

FIRST = {case.provider: case for case in reversed(CASES)}
PAYLOADS = Path(__file__).parent.parent / "cases" / "payloads"
TOKENS = ("/token/grant", "/oauth2/token")


def identity(case):
    """The name of a case in the report."""
    return " ".join(filter(None, (case.provider, case.name)))


@pytest.fixture
def http():
    """The network, in which only what a test answers exists."""
    for name in ("bkash", "paypal"):
        description(name).keys.tokens.kept.clear()
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


def answer(http, case, **how):
    """Let the addresses of a case answer; the one that is not for tokens and comes first as ``how`` says."""
    struck = next(url for url in case.answers if not url.endswith(TOKENS))
    for url, document in case.answers.items():
        method = "POST" if url in case.posts else "GET"
        if how and url == struck:
            http.add(method, url, **how)
        else:
            http.add(method, url, json=document)


def ask(case):
    """What the API of the case's source says."""
    return payment_api(case.source(), requests.Session()).get(case.asked)


def told(facts):
    """The facts of a case's table."""
    return (
        facts.kind.value, facts.transaction_id, facts.effect_id, facts.amount_minor, facts.currency,
        facts.refund_total_minor, facts.order_reference,
    )  # fmt: skip


def test_every_api_is_tested():
    """No provider's API is without a case."""
    assert set(names()) == set(FIRST)


@pytest.mark.parametrize("case", CASES, ids=identity)
def test_a_payment_is_read_to_the_unit(http, case):
    """The facts are those of the table, without a flaw, in the mode that the source states."""
    answer(http, case)
    found = ask(case)

    assert isinstance(found, Found)
    assert [told(facts) for facts in found.facts] == case.facts
    assert {facts.facts_error for facts in found.facts} == {None}
    assert {facts.live for facts in found.facts} == {case.live}
    assert found.status == 200


@pytest.mark.parametrize("name", sorted(FIRST))
def test_a_payment_that_the_provider_does_not_know_is_not_found(http, name):
    """404 is an answer, and no fault of the API."""
    answer(http, FIRST[name], status=404, json={"error": "no"})

    assert isinstance(ask(FIRST[name]), NotFound)


@pytest.mark.parametrize("name", sorted(FIRST))
@pytest.mark.parametrize(
    "reason,how",
    [
        ("rate_limited", {"status": 429, "headers": {"Retry-After": "7"}, "body": "slow down"}),
        ("server_error", {"status": 500, "body": "oops"}),
        ("unauthorized", {"status": 401, "json": {}}),
        ("redirected", {"status": 302, "headers": {"Location": "https://elsewhere.example/"}}),
        ("refused", {"status": 400, "json": {}}),
        ("timeout", {"body": requests.ReadTimeout("late")}),
        ("network", {"body": requests.ConnectionError("refused")}),
        ("not_json", {"body": "<html>maintenance</html>"}),
        ("too_large", {"body": b"{" + b" " * (asking.MAX_ANSWER + 10) + b"}"}),
    ],
)
def test_no_usable_answer_is_a_value(http, name, reason, how):
    """Each way of failing has its reason, and none of them shows a credential or an address."""
    answer(http, FIRST[name], **how)
    found = ask(FIRST[name])

    assert isinstance(found, Unavailable)
    assert found.reason == reason
    assert SECRET not in repr(found)
    assert "http" not in found.detail
    assert found.retry_after == (timedelta(seconds=7) if reason == "rate_limited" else None)


@pytest.mark.parametrize("name", sorted(FIRST))
def test_credentials_go_to_the_providers_own_address_alone(http, name):
    """No question goes anywhere else, and a redirect is not followed."""
    case = FIRST[name]
    answer(http, case)
    ask(case)

    assert {call.request.url.split("?")[0] for call in http.calls} == set(case.answers)


@pytest.mark.parametrize("case", CASES, ids=identity)
def test_any_document_is_read_or_unreadable(http, case):
    """An answer of another shape is a value too."""
    for document in ({}, [], {"data": 1}, {"payment": []}, {"element": [1], "APIConnect": "DONE"}):
        http.reset()
        answer(http, case, json=document)

        assert isinstance(ask(case), Found | NotFound | Unavailable)


def test_an_id_never_leaves_its_place_in_the_address(http):
    """An id from an unsigned message is one piece of a path, whatever it holds."""
    case = FIRST["square"]
    http.add(
        "GET", "https://connect.squareup.com/v2/payments/a%2F..%2F..%2Frefunds%3Fx%3D1", json={}, status=404
    )
    api = payment_api(case.source(), requests.Session())

    assert isinstance(api.get(Transaction("a/../../refunds?x=1")), NotFound)
    assert isinstance(api.get(Transaction("..")), NotOffered)


def test_an_answer_that_drips_ends_with_the_deadline():
    """The total time is bounded, not only that of each read."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip():
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")
                while not ended.wait(0.05):
                    connection.sendall(b" ")

        thread = threading.Thread(target=drip)
        thread.start()
        started = time.monotonic()
        question = asking.Question(f"http://127.0.0.1:{server.getsockname()[1]}/x")
        with requests.Session() as session:
            session.trust_env = False
            found = asking.ask(session, question, started + 0.5)
        took = time.monotonic() - started
        ended.set()
        thread.join(10)

    assert (found.reason, took < 5) == ("timeout", True)


def test_no_question_is_asked_after_the_deadline():
    """Further questions about a payment share the time of the first."""
    found = asking.ask(requests.Session(), asking.Question("https://api.example/x"), time.monotonic())

    assert found.reason == "timeout"


def test_a_token_is_kept_until_it_is_refused(http):
    """The grant is asked once for many payments, and again after a 401."""
    case = FIRST["bkash"]
    source = Source("shop", "bkash", api={k: Secret("env:X", f"v{k}") for k in case.keys})
    grant, search = case.answers
    http.add("POST", grant, json=case.answers[grant])
    http.add("POST", search, json=case.answers[search])
    api = payment_api(source, requests.Session())
    api.get(case.asked)
    api.get(case.asked)
    assert [call.request.url for call in http.calls] == [grant, search, search]

    http.replace("POST", search, status=401, json={})
    api.get(case.asked)
    api.get(case.asked)
    assert [call.request.url for call in http.calls][3:] == [search, grant, search]


def test_an_api_without_its_credentials_is_none():
    """Nobody asks with half a pair; what is missing is said by name."""
    source = Source("shop", "razorpay", api={"key_id": Secret("env:X", "x")})

    assert payment_api(source, requests.Session()) is None
    assert missing_credentials(source) == ("key_secret",)
    assert payment_api(Source("shop", "adyen"), requests.Session()) is None


def test_a_failing_refund_code_of_bkash_is_not_found(http):
    """bKash says 200 whatever happened."""
    case = FIRST["bkash"]
    grant, search = case.answers
    http.add("POST", grant, json=case.answers[grant])
    http.add("POST", search, json={"statusCode": "2016", "statusMessage": "Transaction not found"})

    assert isinstance(ask(case), NotFound)


WINDOW = Window(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))


def pages(provider_name):
    """The pages of a window."""
    return list(payment_api(FIRST[provider_name].source(), requests.Session()).list(WINDOW))


def test_stripes_own_events_fill_a_window_under_their_own_ids(http):
    """A catch-up lists the provider's own events, so that one that came already is a duplicate."""
    body = json.loads((PAYLOADS / "stripe-succeeded.json").read_text())
    http.add("GET", "https://api.stripe.com/v1/events", json={"data": [body], "has_more": True})
    http.add("GET", "https://api.stripe.com/v1/events", json={"data": [{**body, "id": "evt_2"}]})
    found = pages("stripe")

    assert [event.provider_event_id for page in found for event in page.events] == [body["id"], "evt_2"]
    assert found[0].events[0].facts.kind == "succeeded"
    assert f"starting_after={body['id']}" in http.calls[1].request.url


def test_stripes_events_are_read_as_the_source_speaks(http):
    """The merchant's own place of the reference holds in a catch-up too: else a payment would be nobody's."""
    text = (PAYLOADS / "stripe-succeeded.json").read_text().replace('"order_id"', '"cart"')
    http.add("GET", "https://api.stripe.com/v1/events", json={"data": [json.loads(text)]})
    source = Source(
        "shop",
        "stripe",
        options={"order_reference": "data.object.metadata.cart"},
        api={"key": Secret("env:K", SECRET)},
    )
    (page,) = payment_api(source, requests.Session()).list(WINDOW)

    assert [event.facts.order_reference for event in page.events] == ["ORD-709694"]
    assert {len(event.payload_sha256) for event in page.events} == {32}


@pytest.mark.parametrize("option", ["custom_id", "invoice_id"])
def test_paypals_events_tell_what_its_messages_mean(http, option):
    """A listed event comes from the API itself, so its facts count: under the ids that reading back gives."""
    bodies = [
        json.loads((PAYLOADS / f"paypal-{name}.json").read_text()) for name in ("succeeded", "refunded")
    ]
    for body in bodies:
        body["resource"]["invoice_id"] = "inv-1"
    other = {"id": "WH-3", "event_type": "CATALOG.PRODUCT.CREATED", "resource": {"id": "P1"}}
    url = "https://api-m.paypal.com/v1/notifications/webhooks-events"
    http.add(
        "POST", "https://api-m.paypal.com/v1/oauth2/token", json={"access_token": "t", "expires_in": 900}
    )
    following = [{"rel": "next", "href": f"{url.replace('paypal', 'evil')}?next_page_token=n2"}]
    http.add("GET", url, json={"events": [bodies[0], other], "links": following})
    http.add("GET", url, json={"events": [bodies[1]], "links": []})
    case = FIRST["paypal"]
    source = Source("shop", "paypal", live=True, api=case.source().api,
                    options={"webhook_id": "W1", "order_reference": f"resource.{option}"})  # fmt: skip
    found = list(payment_api(source, requests.Session()).list(WINDOW))

    facts = [event.facts for page in found for event in page.events]
    assert [event.provider_event_id for page in found for event in page.events] == [
        "api:succeeded:REU8U4I4CG2M1UOWQ:REU8U4I4CG2M1UOWQ:100600:",
        "api:refunded:98BD43KFU65QJQQHB:YCQ7ULEC2T67MQLVJ:249900:",
    ]
    expected = ["ORD-522375", "ORD-664833"] if option == "custom_id" else ["inv-1", "inv-1"]
    assert [each.order_reference for each in facts] == expected
    assert {(each.facts_error, each.live) for each in facts} == {(None, True)}
    assert "next_page_token=n2" in http.calls[2].request.url


@pytest.mark.parametrize("name", sorted(n for n in names() if description(n).listing))
def test_a_list_that_breaks_off_says_so(http, name):
    """The last value of a list that failed is the failure."""
    http.add(
        "GET",
        FIRST[name].source().api_url or description(name).live + description(name).listing.path,
        status=500,
    )

    assert [type(page) for page in pages(name)] == [Unavailable]


def test_a_list_of_payments_gives_each_fact_an_id_of_its_own(http):
    """Read again, the same fact is the same event."""
    item = CASES[3].answers["https://connect.squareup.com/v2/payments/pay_1"]["payment"]
    http.add("GET", "https://connect.squareup.com/v2/payments", json={"payments": [item], "cursor": "c"})
    http.add("GET", "https://connect.squareup.com/v2/payments", json={})
    found = pages("square")

    assert [type(page) for page in found] == [Page, Page]
    ids = [event.provider_event_id for page in found for event in page.events]
    assert ids == ["api:succeeded:pay_1:pay_1:1500:", "api:refund_total:pay_1:::300"]
    assert ids == [read_back_id(event.facts) for page in found for event in page.events]


_PADDLE = {
    "id": "txn_1", "status": "completed", "currency_code": "EUR", "custom_data": {"order_id": "o_1"},
    "details": {"totals": {"grand_total": "1200"}},
}  # fmt: skip
_GOCARDLESS = {"id": "PM1", "amount": 2500, "currency": "GBP", "status": "charged_back"}
_FLUTTERWAVE = {"id": 7, "tx_ref": "o_1", "amount": 10.5, "currency": "NGN", "status": "successful"}
_MOLLIE = {
    "id": "tr_1", "mode": "live", "status": "paid", "description": "o_1", "createdAt": "2026-03-01T12:00:00Z",
    "amount": {"value": "18.60", "currency": "EUR"}, "amountRefunded": {"value": "8.60", "currency": "EUR"},
}  # fmt: skip


@pytest.mark.parametrize(
    "name,first,second,asked,ids",
    [
        (
            "paddle",
            {"data": [_PADDLE], "meta": {"pagination": {"has_more": True, "next": "https://x.example/"}}},
            {"data": [{**_PADDLE, "id": "txn_2", "status": "ready"}], "meta": {"pagination": {}}},
            ["updated_at%5BGTE%5D=2026-03-01T00%3A00%3A00%2B00%3A00", "after=txn_1"],
            ["api:succeeded:txn_1:txn_1:1200:", "api:pending:txn_2::1200:"],
        ),
        (
            "gocardless",
            {"payments": [_GOCARDLESS], "meta": {"cursors": {"before": None, "after": "PM1"}}},
            {"payments": [], "meta": {"cursors": {"before": None, "after": None}}},
            ["created_at%5Bgte%5D=2026-03-01T00%3A00%3A00%2B00%3A00", "after=PM1"],
            ["api:succeeded:PM1:PM1:2500:", "api:dispute_lost:PM1:PM1:2500:"],
        ),
        (
            "flutterwave_v3",
            {"data": [_FLUTTERWAVE], "meta": {"page_info": {"current_page": 1, "total_pages": 2}}},
            {"data": [], "meta": {"page_info": {"current_page": 2, "total_pages": 2}}},
            ["from=2026-03-01", "page=2"],
            ["api:succeeded:7:7:1050:"],
        ),
        (
            "mollie",
            {"_embedded": {"payments": [_MOLLIE]}, "_links": {"next": {"href": "https://x.example/v2?from=tr_0"}}},
            {"_embedded": {"payments": [{**_MOLLIE, "id": "tr_0", "createdAt": "2026-02-27T12:00:00+00:00"}]},
             "_links": {"next": {"href": "https://x.example/v2?from=tr_old"}}},
            ["limit=250", "from=tr_0"],
            ["api:succeeded:tr_1:tr_1:1860:", "api:succeeded:tr_0:tr_0:1860:"],
        ),
    ],
)  # fmt: skip
def test_a_window_is_read_page_by_page(http, name, first, second, asked, ids):
    """Each by its own way of going on, from the configured address alone; Mollie, whose list knows no
    window, no further than behind its start.
    """
    url = description(name).live + description(name).listing.path
    http.add("GET", url, json=first)
    http.add("GET", url, json=second)
    found = pages(name)

    assert [event.provider_event_id for page in found for event in page.events] == ids
    assert {event.facts.facts_error for page in found for event in page.events} == {None}
    assert len(http.calls) == 2
    for call, part in zip(http.calls, asked, strict=True):
        assert part in call.request.url


_ODD_PAGES = [
    {}, [], {"data": 1}, {"data": [1]}, {"payments": {}}, {"_embedded": [], "meta": 1},
    {"items": [{}], "meta": {"cursors": [], "page_info": 1}, "_links": {"next": []}},
    {"data": [], "has_more": True, "meta": {"pagination": {"has_more": True}}, "cursor": 1},
]  # fmt: skip


def test_any_list_is_read_or_unreadable(http):
    """A page of another shape breaks the list off, and raises nothing."""
    for name in (n for n in names() if description(n).listing):
        path = description(name).listing.path
        url = (FIRST[name].source().api_url or description(name).live) + path
        for document in _ODD_PAGES:
            http.reset()
            http.add("GET", url, json=document)

            assert {type(page) for page in pages(name)} <= {Page, Unavailable}


def test_a_list_without_end_is_cut(http):
    """Pages are bounded, whatever the provider says of further ones."""
    http.add("GET", "https://connect.squareup.com/v2/payments", json={"payments": [], "cursor": "c"})
    found = pages("square")

    assert found[-1].reason == "too_many_pages"
    assert len(found) == 51
