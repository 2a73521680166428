"""Every payload in its provider's true shape, signed anew and posted: what it says and does to its order.

The table was written from the providers' documentation and the payload files, never from the code: amounts
in the currency's minor units, one transaction id for a payment over all its events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import responses

from receiver.clock import FixedClock
from receiver.inbox.process import Processor
from receiver.providers.certificates import STORE
from receiver.providers.registry import provider
from receiver.settings import Secret, Source
from receiver.web import webhooks
from tests.conftest import MakeDeps
from tests.doors import Door
from tests.inbox.gestures import event, store
from tests.providers.certificates import Served, invented

PAYLOADS = Path(__file__).parent.parent / "cases" / "payloads"
NOW = datetime(2026, 9, 21, 14, 14, tzinfo=UTC)
SNS_URL = "https://sns.ap-southeast-1.amazonaws.com/SimpleNotificationService-invented.pem"
PAYPAL_URL = "https://api.paypal.com/v1/notifications/certs/CERT-1"
TOPIC = "arn:aws:sns:ap-southeast-1:000000000000:bkash-example-01000000001"
SNS_KEY, SNS_CHAIN, _ = invented("sns.amazonaws.com")
PAYPAL_KEY, PAYPAL_CHAIN, PAYPAL_ROOT = invented("messageverificationcerts.paypal.com")

SECRETS = {
    "adyen": "0B056BF63DFC53F55DC7BBBF7213E4C2088E105CCBF5B1690407FD7079F863BF",
    "bkash": SNS_KEY,
    "paddle": "pdl_ntfset_01_secret",
    "paypal": PAYPAL_KEY,
    "paystack": "sk_test_1",
    "razorpay": "a webhook secret",
    "square": "signature-key",
    "sslcommerz": "invented@ssl",
    "standard": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "stripe": "whsec_LvOIoqsbf8idps",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "bkash": {"topic_arns": [TOPIC], "certificate_url": SNS_URL, "signature_version": "2"},
    "paypal": {"webhook_id": "W1", "certificate_url": PAYPAL_URL, "trust_roots": PAYPAL_ROOT},
    "square": {"notification_url": "https://inbox.example/webhooks/square"},
}

PAYPAL_API = "https://api-m.paypal.com"
PAYPAL_TOKEN = {"access_token": "tok", "expires_in": 32400}
CAPTURE = f"{PAYPAL_API}/v2/payments/captures"
REFUND = f"{PAYPAL_API}/v2/payments/refunds"


@dataclass(frozen=True)
class Row:
    """The order before (``paid_by``: the transaction that paid it already), the event, the order after.

    ``amount`` is in minor units; ``total`` a running total of refunds. ``read_back`` answers the provider's
    API, where the message alone proves too little. ``answer`` is the endpoint's.
    """

    order: tuple[str, int, str]
    kind: str
    transaction: str | None
    effect: str | None
    amount: int | None
    currency: str | None
    after: str
    paid_by: str | None = None
    total: int | None = None
    read_back: dict[str, Any] | None = None
    outcome: str = "applied"


def paid(reference: str, transaction: str, amount: int, currency: str, **more: Any) -> Row:
    """A payment of the whole order."""
    order = (reference, amount, currency)
    return Row(order, "succeeded", transaction, transaction, amount, currency, "paid", **more)


def failed(reference: str, transaction: str, amount: int | None, currency: str) -> Row:
    """A payment that failed; the order is still to be paid."""
    order = (reference, amount or 1, currency)
    return Row(order, "failed", transaction, None, amount, currency, "failed")


TABLE = {
    # Adyen captures at once unless told otherwise: AUTHORISATION is then its one word of the payment.
    "adyen-succeeded": paid("ORD-746211", "RARQA5OLV8EV6TR3", 221950, "EUR"),
    "adyen-failed": failed("ORD-330360", "C0DYTQ3BC37K2ZCN", 464900, "EUR"),
    "adyen-refunded": Row(
        ("ORD-844254", 322100, "EUR"), "refunded", "P6KO6TIBO1XVVFET", "JC533BRGZRCOL3S5", 322100, "EUR",
        "refunded", paid_by="P6KO6TIBO1XVVFET",
    ),
    # bKash: amounts are text in taka; the invoice number is what the merchant gave at the payment's start.
    "bkash-succeeded": paid("INV874636", "X9JODYNKC4", 299500, "BDT"),
    "bkash-subscription-confirmation": Row(
        ("INV874636", 299500, "BDT"), "other", None, None, None, None, "pending", outcome="ignored"
    ),
    "paddle-succeeded": paid("ORD-718748", "txn_010ahvkjatsyacz5hzez3034aj", 501860, "USD"),
    "paddle-failed": failed("ORD-118511", "txn_01t79jztcgmsm5qyn2gkq1scrr", 46000, "USD"),
    # An adjustment names the transaction alone.
    "paddle-refunded": Row(
        ("ORD-1", 500000, "USD"), "refunded", "txn_01ss5tkka8b0he11wxff1avdta",
        "adj_01trny0eg8w9g5268npkm3zbyw", 439932, "USD", "partially_refunded",
        paid_by="txn_01ss5tkka8b0he11wxff1avdta",
    ),
    # PayPal's signature covers a checksum of the body alone: its API says what counts.
    "paypal-succeeded": paid(
        "ORD-522375", "REU8U4I4CG2M1UOWQ", 100600, "USD",
        read_back={f"{CAPTURE}/REU8U4I4CG2M1UOWQ": {
            "id": "REU8U4I4CG2M1UOWQ", "status": "COMPLETED", "custom_id": "ORD-522375",
            "amount": {"currency_code": "USD", "value": "1006.00"}}},
    ),
    "paypal-pending": Row(
        ("ORD-353981", 451850, "USD"), "pending", "4DMGN9KMUKRSK0H9X", None, 451850, "USD", "pending",
        read_back={f"{CAPTURE}/4DMGN9KMUKRSK0H9X": {
            "id": "4DMGN9KMUKRSK0H9X", "status": "PENDING", "custom_id": "ORD-353981",
            "amount": {"currency_code": "USD", "value": "4518.50"}}},
    ),
    "paypal-refunded": Row(
        ("ORD-664833", 249900, "USD"), "refunded", "98BD43KFU65QJQQHB", "YCQ7ULEC2T67MQLVJ", 249900, "USD",
        "refunded", paid_by="98BD43KFU65QJQQHB",
        read_back={f"{REFUND}/YCQ7ULEC2T67MQLVJ": {
            "id": "YCQ7ULEC2T67MQLVJ", "status": "COMPLETED", "custom_id": "ORD-664833",
            "amount": {"currency_code": "USD", "value": "2499.00"},
            "links": [{"rel": "up", "href": f"{CAPTURE}/98BD43KFU65QJQQHB"}]}},
    ),
    # Paystack: kobo. A refund names the transaction by its reference.
    "paystack-succeeded": paid("ORD-600233", "T589857373374464", 170000, "NGN"),
    "paystack-refunded": Row(
        ("ORD-2", 447150, "NGN"), "refunded", "T816749152426792", "400919703447", 447150, "NGN", "refunded",
        paid_by="T816749152426792",
    ),
    "paystack-refund-pending": Row(
        ("ORD-3", 226550, "NGN"), "other", "T734706911568087", None, None, None, "paid",
        paid_by="T734706911568087", outcome="ignored",
    ),
    "razorpay-succeeded": paid("ORD-492283", "pay_FAXpFROyYwPIro", 434600, "INR"),
    "razorpay-failed": failed("ORD-989134", "pay_NsMRkFZo6MtOm9", 326400, "INR"),
    "razorpay-refunded": Row(
        ("ORD-197232", 316150, "INR"), "refunded", "pay_ulxYOwW02rJwJx", "rfnd_aeFfHUfwcJFhFE", 316150, "INR",
        "refunded", paid_by="pay_ulxYOwW02rJwJx",
    ),
    "square-succeeded": paid("ORD-656002", "2IARRwX8yRsXlM454vFkCtxzVaY", 73400, "USD"),
    "square-failed": failed("ORD-625797", "zoxfi2PIbiuPdjW2YqYTt7xzVaY", 307050, "USD"),
    "square-refunded": Row(
        ("ORD-4", 400000, "USD"), "refunded", "uud4YNyJxrjaxl7jDrQhiqxzVaY",
        "uud4YNyJxrjaxl7jDrQhiqxzVaY_ABsAPV9yjCCgm65QWavz9PaTmsKw4fvjuO0cu0Y1vtO", 330000, "USD",
        "partially_refunded", paid_by="uud4YNyJxrjaxl7jDrQhiqxzVaY",
    ),
    # SSLCommerz: text in taka; tran_id is the merchant's, bank_tran_id the payment's.
    "sslcommerz-succeeded": paid("ORD894801", "260921201300HreDXyM79sEMwte0NV", 51650, "BDT"),
    "sslcommerz-failed": failed("ORD913267", "260921201300ZY6ts5gZ5qU90gxc59", 196000, "BDT"),
    "standard-webhooks-succeeded": paid("ORD-997441", "pay_bhNUdKirlsl2wtlT1XCH", 480700, "BDT"),
    "standard-webhooks-failed": failed("ORD-774818", "pay_d53tSIlUAwQ0f1F80oiC", 227600, "BDT"),
    "standard-webhooks-refunded": Row(
        ("ORD-976167", 200800, "BDT"), "refunded", "pay_v0ezJpaGRzR3Lm07eMsd", "re_2wPdc68PzXMbyLRMkG",
        200800, "BDT", "refunded", paid_by="pay_v0ezJpaGRzR3Lm07eMsd",
    ),
    "stripe-succeeded": paid("ORD-709694", "pi_3s4eRy9wQsnHaux3irr3g09j", 76800, "USD"),
    "stripe-failed": failed("ORD-877043", "pi_3TAvHDkoTDvRjVYrjd7mWR5R", 158350, "USD"),
    # charge.refunded carries the running total; the payment intent is the payment in charge events too.
    "stripe-refunded": Row(
        ("ORD-821721", 352650, "USD"), "refund_total", "pi_3MFakkjmypfOdZtEtYZx1hmz", None, None, "USD",
        "partially_refunded", paid_by="pi_3MFakkjmypfOdZtEtYZx1hmz", total=176325,
    ),
}  # fmt: skip

NO_WEBHOOKS = {"bkash-failed-callback", "bkash-refunded-api", "sslcommerz-refunded-api"}
"""Shapes that come another way (a browser's redirect, answers of an API): nobody signs them."""


def body_of(payload: str) -> bytes:
    """The bytes of a payload file: its form's, where it is one."""
    text = (PAYLOADS / f"{payload}.json").read_text(encoding="utf-8")
    document = json.loads(text)
    return document["raw_body"].encode() if "raw_body" in document else text.encode()


def source_of(name: str) -> Source:
    """The source of a provider, as a merchant would describe it."""
    secrets = () if name in ("bkash", "paypal") else (Secret("env:S", SECRETS[name]),)
    api = (
        {key: Secret(f"env:{key}", key) for key in ("client_id", "client_secret")} if name == "paypal" else {}
    )
    return Source(name, name, secrets, options=OPTIONS.get(name, {}), api=api)


@pytest.fixture
def door(make_deps: MakeDeps, clock: FixedClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    """A door with every provider's source, on the day of the payloads; certificates are served."""
    clock.at = NOW
    monkeypatch.setattr(STORE, "fetch", Served({SNS_URL: SNS_CHAIN, PAYPAL_URL: PAYPAL_CHAIN}))
    monkeypatch.setattr(STORE, "_kept", {})
    monkeypatch.setattr(STORE, "_fetched_at", [])
    monkeypatch.setattr(webhooks, "visit", lambda _source, _url: None)
    door = Door(make_deps(sources={name: source_of(name) for name in SECRETS}))
    yield door
    door.close()


def name_of(payload: str) -> str:
    """The provider of a payload file."""
    return "standard" if payload.startswith("standard") else payload.split("-")[0]


@pytest.mark.parametrize("payload", sorted(TABLE))
def test_a_payload_says_and_does_what_the_table_says(door: Door, payload: str) -> None:
    """Posted through the endpoint and worked, the facts are the table's and the order is where it must be."""
    row, name = TABLE[payload], name_of(payload)
    reference, amount, currency = row.order
    door.order(reference, amount, currency)
    if row.paid_by is not None:
        facts = {"amount_minor": amount, "currency": currency, "transaction_id": row.paid_by}
        first = event("succeeded", **{**facts, "source": name, "order_reference": reference})
        store(door.deps, replace(first, effect_id=row.paid_by))
        door.work()
    request = provider(name).sign_request(
        SECRETS[name], body_of(payload), NOW.timestamp(), "msg_1", OPTIONS.get(name, {})
    )

    assert door.post(name, request.body, request.headers).status_code in (200, 202)
    with responses.RequestsMock(assert_all_requests_are_fired=False) as api:
        api.post(f"{PAYPAL_API}/v1/oauth2/token", json=PAYPAL_TOKEN)
        for url, answer in (row.read_back or {}).items():
            api.get(url, json=answer)
        Processor(door.deps, "w1").tick()

    (found,) = door.rows(
        "SELECT e.*, (SELECT state FROM orders WHERE reference = :reference) AS order_state"
        " FROM webhook_events e WHERE source = :source AND payload_id IS NOT NULL",
        source=name,
        reference=reference,
    )
    assert (found["kind"], found["transaction_id"], found["effect_id"]) == (
        row.kind,
        row.transaction,
        row.effect,
    )
    assert (found["amount_minor"], found["currency"], found["refund_total_minor"]) == (
        row.amount,
        row.currency,
        row.total,
    )
    assert (found["state"], found["outcome"], found["facts_error"]) == ("processed", row.outcome, None)
    assert found["order_state"] == row.after


@pytest.mark.parametrize(
    "code", ["CANCELLATION", "TECHNICAL_CANCEL", "EXPIRE", "CANCEL_OR_REFUND", "CAPTURE_FAILED"]
)
@pytest.mark.parametrize("late", [False, True])
def test_an_adyen_payment_that_ends_after_its_authorisation_is_not_paid(
    door: Door, code: str, late: bool
) -> None:
    """AUTHORISATION counts as the payment, so what undoes it takes the money away, whichever comes first."""
    door.order("ORD-746211", 221950, "EUR")
    authorised = json.loads(body_of("adyen-succeeded"))
    undone = json.loads(body_of("adyen-succeeded"))
    item = undone["notificationItems"][0]["NotificationRequestItem"]
    item |= {"eventCode": code, "originalReference": item["pspReference"], "pspReference": "UNDONE0000000001"}
    for document in (undone, authorised) if late else (authorised, undone):
        request = provider("adyen").sign_request(
            SECRETS["adyen"], json.dumps(document).encode(), NOW.timestamp(), "", {}
        )
        assert door.post("adyen", request.body, request.headers).status_code == 200
        door.work()

    assert door.state_of("ORD-746211") == "refunded"


@pytest.mark.parametrize("said,state", [("51650", "pending"), ("516.50", "paid")])
def test_sslcommerz_is_read_back_where_the_source_wants_it(
    door: Door, make_deps: MakeDeps, said: str, state: str
) -> None:
    """Then the signed message is a hint, and the validation API's word alone counts."""
    api = {name: Secret(f"env:{name}", name) for name in ("store_id", "store_password")}
    source = replace(source_of("sslcommerz"), api=api, options={"read_back": True})
    reading = Door(make_deps(sources={"sslcommerz": source}))
    reading.order("ORD894801", 51650, "BDT")
    request = provider("sslcommerz").sign_request(
        SECRETS["sslcommerz"], body_of("sslcommerz-succeeded"), NOW.timestamp(), "", {}
    )
    assert reading.post("sslcommerz", request.body, request.headers).status_code == 200
    element = {
        "status": "VALID", "tran_id": "ORD894801", "bank_tran_id": "260921201300HreDXyM79sEMwte0NV",
        "currency_type": "BDT", "currency_amount": said, "tran_date": "2026-09-21 20:13:00",
    }  # fmt: skip
    with responses.RequestsMock() as mock:
        mock.get(
            "https://securepay.sslcommerz.com/validator/api/merchantTransIDvalidationAPI.php",
            json={"APIConnect": "DONE", "no_of_trans_found": 1, "element": [element]},
        )
        Processor(reading.deps, "w1").tick()
    reading.close()

    assert reading.state_of("ORD894801") == state


@pytest.mark.parametrize("payload", sorted(NO_WEBHOOKS))
def test_what_nobody_signs_moves_nothing(door: Door, payload: str) -> None:
    """A browser's redirect and the answers of an API are refused at the endpoint, and nothing is stored."""
    name = name_of(payload)
    document = json.loads(body_of(payload))
    door.order("ORD-5", 45000, "BDT")
    if document.get("method") == "GET":
        answer = door.client.get(f"/webhooks/{name}", query_string=document["query"])
        assert answer.status_code == 405
    else:
        answer = door.post(name, json.dumps(document["response"]).encode(), {})
        assert answer.status_code == 401

    assert door.rows("SELECT id FROM webhook_events") == []
    assert door.rows("SELECT state FROM orders") == [{"state": "pending"}]


def test_every_payload_stands_in_the_table() -> None:
    """No payload file is left out."""
    assert {path.stem for path in PAYLOADS.glob("*.json")} == set(TABLE) | NO_WEBHOOKS
