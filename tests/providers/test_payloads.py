"""What the providers' own event bodies mean, by a table written from their documentation."""

import json
from pathlib import Path

import pytest
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.payment_event import Kind
from receiver.providers.registry import provider
from receiver.settings import Secret, Source

PAYLOADS = Path(__file__).parent.parent / "cases" / "payloads"
NOW = 1_790_000_000

SECRETS = {
    "adyen": "0B056BF63DFC53F55DC7BBBF7213E4C2088E105CCBF5B1690407FD7079F863BF",
    "paddle": "pdl_ntfset_01_secret",
    "paystack": "sk_test_1",
    "razorpay": "a webhook secret",
    "square": "signature-key",
    "sslcommerz": "invented@ssl",
    "standard": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "stripe": "whsec_LvOIoqsbf8idps",
}
OPTIONS = {"square": {"notification_url": "https://inbox.example/webhooks/square"}}

# fmt: off
TABLE = [
    # payload, kind, order reference, transaction, effect, amount in minor units, currency, refund total
    ("adyen-succeeded", Kind.SUCCEEDED, "ORD-746211", "RARQA5OLV8EV6TR3", "RARQA5OLV8EV6TR3",
     221950, "EUR", None),
    ("adyen-failed", Kind.FAILED, "ORD-330360", "C0DYTQ3BC37K2ZCN", None, 464900, "EUR", None),
    ("adyen-refunded", Kind.REFUNDED, "ORD-844254", "P6KO6TIBO1XVVFET", "JC533BRGZRCOL3S5",
     322100, "EUR", None),
    ("paddle-succeeded", Kind.SUCCEEDED, "ORD-718748", "txn_010ahvkjatsyacz5hzez3034aj",
     "txn_010ahvkjatsyacz5hzez3034aj", 501860, "USD", None),
    ("paddle-failed", Kind.FAILED, "ORD-118511", "txn_01t79jztcgmsm5qyn2gkq1scrr", None, 46000, "USD", None),
    ("paddle-refunded", Kind.REFUNDED, None, "txn_01ss5tkka8b0he11wxff1avdta",
     "adj_01trny0eg8w9g5268npkm3zbyw", 439932, "USD", None),
    ("paystack-succeeded", Kind.SUCCEEDED, "ORD-600233", "T589857373374464", "T589857373374464",
     170000, "NGN", None),
    ("paystack-refunded", Kind.REFUNDED, None, "T816749152426792", "400919703447", 447150, "NGN", None),
    ("paystack-refund-pending", Kind.OTHER, None, "T734706911568087", None, None, None, None),
    ("razorpay-succeeded", Kind.SUCCEEDED, "ORD-492283", "pay_FAXpFROyYwPIro", "pay_FAXpFROyYwPIro",
     434600, "INR", None),
    ("razorpay-failed", Kind.FAILED, "ORD-989134", "pay_NsMRkFZo6MtOm9", None, 326400, "INR", None),
    ("razorpay-refunded", Kind.REFUNDED, "ORD-197232", "pay_ulxYOwW02rJwJx", "rfnd_aeFfHUfwcJFhFE",
     316150, "INR", None),
    ("square-succeeded", Kind.SUCCEEDED, "ORD-656002", "2IARRwX8yRsXlM454vFkCtxzVaY",
     "2IARRwX8yRsXlM454vFkCtxzVaY", 73400, "USD", None),
    ("square-failed", Kind.FAILED, "ORD-625797", "zoxfi2PIbiuPdjW2YqYTt7xzVaY", None, 307050, "USD", None),
    ("square-refunded", Kind.REFUNDED, None, "uud4YNyJxrjaxl7jDrQhiqxzVaY",
     "uud4YNyJxrjaxl7jDrQhiqxzVaY_ABsAPV9yjCCgm65QWavz9PaTmsKw4fvjuO0cu0Y1vtO", 330000, "USD", None),
    ("sslcommerz-succeeded", Kind.SUCCEEDED, "ORD894801", "260921201300HreDXyM79sEMwte0NV",
     "260921201300HreDXyM79sEMwte0NV", 51650, "BDT", None),
    ("sslcommerz-failed", Kind.FAILED, "ORD913267", "260921201300ZY6ts5gZ5qU90gxc59", None,
     196000, "BDT", None),
    ("standard-webhooks-succeeded", Kind.SUCCEEDED, "ORD-997441", "pay_bhNUdKirlsl2wtlT1XCH",
     "pay_bhNUdKirlsl2wtlT1XCH", 480700, "BDT", None),
    ("standard-webhooks-failed", Kind.FAILED, "ORD-774818", "pay_d53tSIlUAwQ0f1F80oiC", None,
     227600, "BDT", None),
    ("standard-webhooks-refunded", Kind.REFUNDED, "ORD-976167", "pay_v0ezJpaGRzR3Lm07eMsd",
     "re_2wPdc68PzXMbyLRMkG", 200800, "BDT", None),
    ("stripe-succeeded", Kind.SUCCEEDED, "ORD-709694", "pi_3s4eRy9wQsnHaux3irr3g09j",
     "pi_3s4eRy9wQsnHaux3irr3g09j", 76800, "USD", None),
    ("stripe-failed", Kind.FAILED, "ORD-877043", "pi_3TAvHDkoTDvRjVYrjd7mWR5R", None, 158350, "USD", None),
    ("stripe-refunded", Kind.REFUND_TOTAL, "ORD-821721", "pi_3MFakkjmypfOdZtEtYZx1hmz", None,
     None, "USD", 176325),
]
# fmt: on


def body_of(payload):
    """The bytes of a payload file: its form's, where it is one."""
    text = (PAYLOADS / f"{payload}.json").read_text(encoding="utf-8")
    document = json.loads(text)
    return document["raw_body"].encode() if "raw_body" in document else text.encode()


def name_of(payload):
    """The provider of a payload file."""
    return "standard" if payload.startswith("standard") else payload.split("-")[0]


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_a_payload_signed_anew_gives_the_facts_of_the_table(row):
    """One transaction id per payment over all its events, amounts in minor units, totals as totals."""
    payload, kind, reference, transaction, effect, amount, currency, total = row
    name = name_of(payload)
    spoken = provider(name)
    source = Source(name, name, (Secret("env:S", SECRETS[name]),), options=OPTIONS.get(name, {}))
    request = spoken.sign_request(SECRETS[name], body_of(payload), NOW, "msg_1", source.options)
    headers = Headers(request.headers)

    assert isinstance(spoken.verify(source, headers, request.body, NOW), Verified)
    (event,) = spoken.read(name, headers, request.body)
    facts = event.facts
    assert (facts.kind, facts.order_reference, facts.transaction_id, facts.effect_id) == (
        kind,
        reference,
        transaction,
        effect,
    )
    assert (facts.amount_minor, facts.currency, facts.refund_total_minor) == (amount, currency, total)
    assert facts.facts_error is None
    assert not event.confirm_by_fetch


@pytest.mark.parametrize(
    "payload", ["adyen-succeeded", "adyen-failed", "adyen-refunded", "sslcommerz-failed"]
)
def test_a_payload_file_keeps_its_own_signature_where_it_has_one_for_our_secret(payload):
    """The signatures inside the files of SSLCommerz hold under the store password that they name."""
    name = name_of(payload)
    source = Source(name, name, (Secret("env:S", SECRETS[name]),))
    verdict = provider(name).verify(source, Headers(), body_of(payload), NOW)

    assert isinstance(verdict, Verified) == (name == "sslcommerz")
