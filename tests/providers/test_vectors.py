"""The signature vectors of the cases, at the level of a provider: accept = the signature holds."""

import base64
import contextlib
import json
from pathlib import Path

import pytest
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.reading import UnusableId
from receiver.providers.registry import names, provider, provider_of
from receiver.settings import Secret, Source
from receiver.signature import Unverified

CASES = Path(__file__).parent.parent / "cases"

SPOKEN = {
    "adyen-banking": "adyen_banking",
    "adyen-payments": "adyen",
    "braintree": "braintree",
    "checkout-com": "checkout_com",
    "coinbase-commerce": "coinbase_commerce",
    "demo-legacy": "lesson",
    "demo-v1": "demo",
    "flutterwave-v3": "flutterwave_v3",
    "flutterwave-v4": "flutterwave",
    "github": "github",
    "gocardless": "gocardless",
    "lemonsqueezy": "lemonsqueezy",
    "midtrans": "midtrans",
    "midtrans-snapbi": "midtrans_snapbi",
    "mollie-classic": "mollie_classic",
    "mollie-nextgen": "mollie",
    "paddle": "paddle",
    "paypal": "paypal",
    "paystack": "paystack",
    "razorpay": "razorpay",
    "shopify": "shopify",
    "sns": "bkash",
    "square": "square",
    "sslcommerz": "sslcommerz",
    "sslcommerz-sha2": "sslcommerz",
    "standard-webhooks": "standard",
    "standard-webhooks-v1a": "standard",
    "stripe": "stripe",
    "svix-headers": "standard",
    "xendit": "xendit",
}
"""By scheme of the cases: the provider that speaks it."""

OTHERS = frozenset({"midtrans-snapbi", "paypal", "sns"})
"""Schemes that need certificates or a path besides, whose vectors have a test of their own."""


def vectors():
    files = sorted((CASES / "signatures").glob("*.json"))
    for path in (*files, *sorted(CASES.glob("divergences*.json"))):
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
            if case["scheme"] not in OTHERS:
                yield pytest.param(case, id=f"{case['scheme']}-{case['case']}")


def source_of(case):
    """The source that a case is sent to: its secrets, and its ``config`` as options."""
    secrets = tuple(Secret(f"env:S{i}", value) for i, value in enumerate(case["secrets"]))
    timestamp = "required" if case["scheme"] == "demo-legacy" else None
    return Source(
        "acme", SPOKEN[case["scheme"]], secrets=secrets, timestamp=timestamp, options=case.get("config") or {}
    )


@pytest.mark.parametrize("case", list(vectors()))
def test_a_vector_gets_its_verdict(case):
    """Every vector is accepted or refused as it expects, and what is accepted can be read."""
    source = source_of(case)
    spoken = provider_of(source)
    headers, body = Headers(list(case["headers"].items())), base64.b64decode(case["body_base64"])

    verdict = spoken.verify(source, headers, body, case["now"])

    assert spoken.is_ready(source)
    if case["expect"] == "reject":
        assert isinstance(verdict, Unverified)
        return
    assert isinstance(verdict, Verified)
    assert verdict.key_id in {secret.key_id for secret in source.secrets} | {"unsigned"}
    read_without_flaw(spoken, headers, body, case)


def read_without_flaw(spoken, headers, body, case):
    """An accepted vector reads without a flaw, but for what its own name announces."""
    if "duplicate" in case["case"]:
        with contextlib.suppress(UnusableId):
            assert {e.facts.facts_error for e in spoken.read("acme", headers, body)} <= {
                None,
                "repeated_field",
                "unconfirmed",
            }
        return
    expected = "unreadable_amount" if case["case"] == "amount-above-2-53" else None
    for event in spoken.read("acme", headers, body):
        assert event.facts.facts_error == ("unconfirmed" if event.confirm_by_fetch else expected)


def test_every_scheme_of_the_cases_is_spoken():
    """No scheme is left out by a typing error: it has a provider here, or a test of its own."""
    schemes = {
        case["scheme"]
        for path in (CASES / "signatures").glob("*.json")
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
    }

    assert schemes <= set(SPOKEN) | OTHERS
    assert {name for scheme, name in SPOKEN.items() if scheme not in OTHERS} <= set(names())


def test_a_replayed_lesson_message_with_a_renewed_time_is_known_by_its_id_alone():
    """An unsigned timestamp can be renewed, so the signature still holds: the source's page says so."""
    (case,) = [
        c
        for c in json.loads((CASES / "signatures/demo.json").read_text())["cases"]
        if c["case"] == "legacy-timestamp-not-signed"
    ]
    source = Source("acme", "lesson", secrets=(Secret("env:S", case["secrets"][0]),))
    body = base64.b64decode(case["body_base64"])

    assert isinstance(
        provider("lesson").verify(source, Headers(case["headers"]), body, case["now"]), Verified
    )
