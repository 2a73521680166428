"""The generic source: a provider described by a user, its faults named together, its description kept."""

import base64
import json
from pathlib import Path

import pytest
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.payment_event import Kind
from receiver.providers.registry import provider, provider_of
from receiver.settings import Secret, Source
from receiver.signature import Unverified

CASES = Path(__file__).parent.parent / "cases" / "signatures"
NOW = 1_790_000_000

STRIPE = {
    "header": "Stripe-Signature",
    "parse": "pairs",
    "pair": "v1",
    "template": "{ts}.{body}",
    "timestamp_pair": "t",
    "future_seconds": 86400,
    "id": "id",
    "type": "type",
    "time": "unix",
    "paths": {
        "order_reference": "data.object.metadata.order_id",
        "transaction_id": "data.object.id",
        "amount": "data.object.amount_received",
        "currency": "data.object.currency",
        "live": "livemode",
        "occurred_at": "created",
    },
    "kinds": {"payment_intent.succeeded": "succeeded"},
}
STANDARD = {
    "header": "webhook-signature",
    "parse": "list",
    "separator": " ",
    "prefix": "v1,",
    "template": "{header:webhook-id}.{ts}.{body}",
    "encoding": "base64",
    "key": "base64",
    "key_prefix": "whsec_",
    "timestamp_header": "webhook-timestamp",
    "id_header": "webhook-id",
    "type": "type",
}
PAYSTACK = {"header": "x-paystack-signature", "algorithm": "sha512", "id": "data.id"}
FLUTTERWAVE = {"header": "flutterwave-signature", "encoding": "base64", "id": "webhook_id"}
MOLLIE = {"header": "X-Mollie-Signature", "prefix": "sha256=", "id": "id"}
GITHUB = {"header": "X-Hub-Signature-256", "parse": "prefix", "prefix": "sha256=", "id": "sender.id"}
PADDLE = {
    "header": "Paddle-Signature", "parse": "pairs", "separator": ";", "pair": "h1", "template": "{ts}:{body}",
    "timestamp_pair": "ts", "past_seconds": 5, "future_seconds": 5, "id": "event_id",
}  # fmt: skip
ADYEN = {"header": "HmacSignature", "encoding": "base64", "key": "hex", "id": "data.id"}

DESCRIBED = {
    ("stripe.json", "stripe"): STRIPE,
    ("standard_webhooks.json", "standard-webhooks"): STANDARD,
    ("paystack.json", "paystack"): PAYSTACK,
    ("flutterwave.json", "flutterwave-v4"): FLUTTERWAVE,
    ("mollie.json", "mollie-nextgen"): MOLLIE,
    ("github.json", "github"): GITHUB,
    ("paddle.json", "paddle"): PADDLE,
    ("adyen.json", "adyen-banking"): ADYEN,
}


def described_vectors():
    for (file, scheme), options in DESCRIBED.items():
        for case in json.loads((CASES / file).read_text(encoding="utf-8"))["cases"]:
            if case["scheme"] == scheme:
                yield pytest.param(options, case, id=f"{scheme}-{case['case']}")


def source_of(options, *secrets):
    """A source of the generic provider."""
    return Source(
        "acme", "hmac", tuple(Secret(f"env:S{i}", s) for i, s in enumerate(secrets)), options=options
    )


@pytest.mark.parametrize("options, case", list(described_vectors()))
def test_a_described_source_gives_the_verdicts_of_the_provider_it_describes(options, case):
    """Eight real protocols, written down as a user would, without any code."""
    source = source_of(options, *case["secrets"])
    spoken = provider_of(source)
    headers, body = Headers(list(case["headers"].items())), base64.b64decode(case["body_base64"])

    assert spoken.faults(source) == []
    assert isinstance(spoken.verify(source, headers, body, case["now"]), Verified) == (
        case["expect"] == "accept"
    )


def test_a_described_source_reads_facts_and_kinds():
    """Paths and kinds of the description make a payment event; other types have no money meaning."""
    source = source_of(STRIPE, "whsec_x")
    spoken = provider_of(source)
    body = (CASES.parent / "payloads/stripe-succeeded.json").read_bytes()
    request = spoken.sign_request("whsec_x", body, NOW, "evt")

    assert isinstance(spoken.verify(source, Headers(request.headers), body, NOW), Verified)
    (event,) = spoken.read("acme", Headers(request.headers), body)
    facts = event.facts
    assert (facts.kind, facts.order_reference, facts.amount_minor, facts.currency, facts.live) == (
        Kind.SUCCEEDED, "ORD-709694", 76800, "USD", False,
    )  # fmt: skip
    assert (facts.transaction_id, facts.effect_id) == ("pi_3s4eRy9wQsnHaux3irr3g09j",) * 2
    assert spoken.never_carries == {"sequence", "account"}
    (other,) = spoken.read("acme", Headers(), b'{"id":"evt_2","type":"customer.created"}')
    assert other.facts.kind is Kind.OTHER


def test_every_fault_of_a_description_is_named_and_the_source_is_not_ready():
    """A description that is half understood lets nothing in."""
    wrong = {
        "header": "X Signature",
        "parse": "guess",
        "algorithm": "md5",
        "template": "{ts}{url}",
        "past_seconds": True,
        "required_headers": "X",
        "id_header": "X-Id",
        "colour": "red",
        "type": "a..b",
        "paths": {"amount": 3, "price": "x"},
        "kinds": {"paid": "gone"},
        "effects": {"refunded": ""},
        "amount_unit": "cents",
    }
    source = source_of(wrong, "hush")
    faults = provider("hmac").faults(source)

    for named in (
        "options.colour", "options.header", "options.parse", "options.algorithm", "{body}", "{header:NAME}",
        "options.past_seconds", "options.required_headers", "options.id_header", "options.type",
        "options.paths.amount", "options.paths.price", "options.kinds.paid", "options.amount_unit",
    ):  # fmt: skip
        assert any(named in fault for fault in faults), named
    assert "hush" not in "".join(faults)
    assert not provider_of(source).is_ready(source)
    assert provider_of(source).verify(source, Headers(), b"{}", NOW) == Unverified("missing_setting")


@pytest.mark.parametrize(
    "options, named",
    [
        ({}, "options.header"),
        ({"header": "X-S"}, "options.id"),
        ({"header": "X-S", "id": "id", "kinds": {"paid": "succeeded"}}, "options.paths.amount"),
        ({"header": "X-S", "id": "id", "template": "{ts}.{body}"}, "options.template"),
        ({"header": "X-S", "id": "id", "timestamp_pair": "t"}, "options.template"),
        ({"header": "X-S", "id": "id", "parse": "pairs"}, "options.pair"),
        ({"header": "X-S", "id": "id", "id_header": "X-Id", "template": "{header:X-Id}{body}"}, "both"),
        ({"header": "X-S", "id": "id", "paths": []}, "options.paths must be a table"),
    ],
)
def test_what_a_description_lacks_is_said(options, named):
    """Each thing that is missing or contradicts another is a sentence of its own."""
    assert any(named in fault for fault in provider("hmac").faults(source_of(options, "s")))


def test_a_described_secret_that_is_no_key_is_a_fault():
    """A secret is checked against the description's key form."""
    (fault,) = provider("hmac").faults(source_of(ADYEN, "not hex"))

    assert "env:S0 is not hex" in fault
