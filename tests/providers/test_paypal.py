"""PayPal: whose certificate, for which endpoint, over which body; and that no body counts by itself."""

import base64
import contextlib
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.certificates import CertificateUnavailable
from receiver.providers.payment_event import Kind
from receiver.providers.paypal_certificate import contradicts_itself
from receiver.providers.reading import UnusableId
from receiver.providers.registry import provider
from receiver.providers.strict_json import Unreadable
from receiver.settings import Secret, Source
from receiver.signature import Unverified
from tests.providers.certificates import CASES, Served, cases_of, invented, request_of, source_of, speaking

VECTORS, CERTS, ROOTS = cases_of("paypal")
FIRST = VECTORS[0]
PAYPAL = provider("paypal")


def verdict(case=FIRST, served=None, **changes):
    headers, body = request_of(case)
    spoken = speaking("paypal", served or Served(CERTS))
    return spoken.verify(
        replace(source_of(case, "paypal", trust_roots=ROOTS), **changes), headers, body, case["now"]
    )


def with_header(name, value):
    return {**FIRST, "headers": {**FIRST["headers"], name: value}}


@pytest.mark.parametrize("case", VECTORS, ids=[case["case"] for case in VECTORS])
def test_a_vector_gets_its_verdict(case):
    """Every vector is accepted or refused as it expects; what is accepted waits for being read back."""
    found = verdict(case)

    assert isinstance(found, Verified) == (case["expect"] == "accept"), found
    if isinstance(found, Verified):
        (event,) = PAYPAL.read("paypal", *request_of(case))
        assert (event.confirm_by_fetch, event.facts.facts_error) == (True, "unconfirmed")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wrong-key", "signature"),
        ("certificate-wrong-name", "certificate_untrusted"),
        ("certificate-self-signed", "certificate_untrusted"),
        ("certificate-url-unknown", "certificate_unknown"),
        ("certificate-url-foreign-host", "certificate_url"),
        ("missing-transmission-sig", "missing_signature"),
        ("malformed-signature", "malformed_signature"),
        ("sha1-algorithm", "signature_version"),
    ],
)
def test_a_refusal_names_its_reason(name, reason):
    """An operator sees what was wrong."""
    (case,) = [case for case in VECTORS if case["case"] == name]

    assert verdict(case) == Unverified(reason)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.paypal.com/v1/notifications/certs/CERT-1",
        "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1",
        "https://evilpaypal.com/v1/notifications/certs/CERT-1",
        "https://evil.example/api.paypal.com/v1/notifications/certs/CERT-1",
        "https://api.paypal.com@evil.example/v1/notifications/certs/CERT-1",
        "https://api.paypal.com:8443/v1/notifications/certs/CERT-1",
        "https://api.paypal.com/v1/notifications/certs/../../x",
        "https://api.paypal.com/v1/notifications/certs/CERT-1?x=https://evil.example",
        "https://api.paypal.com/v1/notifications/certs/CERT-1#",
        "HTTPS://api.paypal.com/v1/notifications/certs/CERT-1",
        "https://169.254.169.254/v1/notifications/certs/CERT-1",
        "file:///etc/passwd",
        "x",
    ],
)
def test_a_foreign_url_is_never_fetched(url):
    """A stranger cannot make us ask another host."""
    served = Served(CERTS)

    assert verdict(with_header("PAYPAL-CERT-URL", url), served) == Unverified("certificate_url")
    assert served.asked == []


def test_nothing_is_fetched_for_a_request_that_is_malformed_anyway():
    """The cheap looks come first."""
    served = Served(CERTS)
    for name, value in (
        ("PAYPAL-TRANSMISSION-SIG", ""),
        ("PAYPAL-TRANSMISSION-SIG", "not base64"),
        ("PAYPAL-TRANSMISSION-ID", "a|b"),
        ("PAYPAL-TRANSMISSION-TIME", "yesterday"),
        ("PAYPAL-AUTH-ALGO", "none"),
    ):
        assert isinstance(verdict(with_header(name, value), served), Unverified)

    assert served.asked == []


def test_a_certificate_that_cannot_be_had_now_is_no_wrong_signature():
    """The door answers 503, so that PayPal comes again."""

    def down(url):
        raise CertificateUnavailable("down")

    assert verdict(served=down) == Unverified("certificate_unavailable")


def test_a_source_may_set_a_window():
    """By itself there is none: PayPal tries for three days and may not sign anew."""
    sent, old = dict(FIRST), dict(FIRST)
    old["now"] = FIRST["now"] + 600

    assert isinstance(verdict(old), Verified)
    found = verdict(old, tolerance=timedelta(seconds=300))
    assert found.reason == "timestamp_too_old"
    assert found.skew_seconds < -300
    assert isinstance(verdict(sent, tolerance=timedelta(seconds=300)), Verified)
    early = {**FIRST, "now": FIRST["now"] - 3600}
    assert verdict(early, tolerance=timedelta(seconds=300)).reason == "timestamp_in_future"


def test_the_public_roots_are_the_default():
    """An invented root is trusted only where the source says so."""
    headers, body = request_of(FIRST)
    found = speaking("paypal", Served(CERTS)).verify(source_of(FIRST, "paypal"), headers, body, FIRST["now"])

    assert found == Unverified("certificate_untrusted")


def test_without_its_webhook_id_a_source_is_not_ready():
    """The webhook id is the audience: without it every merchant's events would do."""
    bare = Source("acme", "paypal")

    assert not PAYPAL.is_ready(bare)
    assert PAYPAL.faults(bare) == ["options.webhook_id is not set: it is part of what is signed"]
    assert PAYPAL.verify(bare, *request_of(FIRST), FIRST["now"]) == Unverified("missing_setting")
    ready = Source("acme", "paypal", options={"webhook_id": "W"})
    assert PAYPAL.is_ready(ready)
    assert PAYPAL.faults(ready) == []
    odd = Source(
        "a", "paypal", (Secret("env:S", "s"),), options={"webhook_id": 1, "trust_roots": "x", "y": 2}
    )
    assert len(PAYPAL.faults(odd)) == 4


def test_a_second_body_under_one_transmission_is_the_same_event_with_other_facts():
    """A forgery with an equal CRC meets the row of the first delivery, as a conflict; it makes no new one."""
    (case,) = [case for case in VECTORS if case["case"] == "crc-collision-forgery"]
    headers, forged = request_of(case)
    true = forged.replace(b"9999.00", b"3635.00").replace(b"ORD-000001", b"ORD-524260")
    (first,) = PAYPAL.read("paypal", headers, true)
    (second,) = PAYPAL.read("paypal", headers, forged)

    assert first.provider_event_id == second.provider_event_id == case["headers"]["PAYPAL-TRANSMISSION-ID"]
    assert first.facts_sha256 != second.facts_sha256
    assert first.facts.facts_error == second.facts.facts_error == "unconfirmed"
    assert (contradicts_itself(true), contradicts_itself(forged)) == (False, True)


URL = "https://api.paypal.com/v1/notifications/certs/CERT-1"
KEY, CHAIN, ROOT = invented("messageverificationcerts.paypal.com")
OPTIONS = {"webhook_id": "W1", "certificate_url": URL, "trust_roots": ROOT}
NOW = 1_790_000_000


PAYLOADS = {
    "paypal-succeeded": (Kind.SUCCEEDED, "ORD-522375", "REU8U4I4CG2M1UOWQ", "REU8U4I4CG2M1UOWQ", 100600),
    "paypal-pending": (Kind.PENDING, "ORD-353981", "4DMGN9KMUKRSK0H9X", None, 451850),
    "paypal-refunded": (Kind.REFUNDED, "ORD-664833", "98BD43KFU65QJQQHB", "YCQ7ULEC2T67MQLVJ", 249900),
}


@pytest.mark.parametrize("name", sorted(PAYLOADS))
def test_a_payload_signed_anew_gives_the_facts_of_the_table(name):
    """The transaction is the capture, in a refund's event too; the facts stay a hint."""
    body = (CASES / "payloads" / f"{name}.json").read_bytes()
    request = PAYPAL.sign_request(KEY, body, NOW, "t-1", OPTIONS)
    headers = Headers(request.headers)
    source = Source("acme", "paypal", options=OPTIONS)

    assert isinstance(speaking("paypal", Served({URL: CHAIN})).verify(source, headers, body, NOW), Verified)
    (event,) = PAYPAL.read("paypal", headers, request.body)
    facts = event.facts
    assert PAYLOADS[name] == (
        facts.kind,
        facts.order_reference,
        facts.transaction_id,
        facts.effect_id,
        facts.amount_minor,
    )
    assert (facts.currency, facts.facts_error, event.confirm_by_fetch) == ("USD", "unconfirmed", True)


def resource(**fields):
    return json.dumps({"id": "WH-1", "create_time": "2026-01-02T03:04:05Z", **fields}).encode()


MONEY = {"currency_code": "JPY", "value": "500"}
DISPUTE = {
    "dispute_id": "PP-D-1",
    "disputed_transactions": [{"seller_transaction_id": "CAP1", "custom": "ORD-1"}],
    "dispute_amount": MONEY,
}
MEANINGS = [
    ("PAYMENT.AUTHORIZATION.CREATED", {"id": "A", "amount": MONEY}, Kind.AUTHORIZED, "A", "A", 500),
    ("PAYMENT.CAPTURE.DENIED", {"id": "C", "amount": MONEY}, Kind.FAILED, "C", None, 500),
    ("PAYMENT.SALE.COMPLETED", {"id": "S", "amount": {"total": "5.25", "currency": "EUR"}}, Kind.SUCCEEDED,
     "S", "S", 525),
    ("PAYMENT.SALE.REFUNDED", {"id": "R", "sale_id": "S", "amount": {"total": "5.25", "currency": "EUR"}},
     Kind.REFUNDED, "S", "R", 525),
    ("CUSTOMER.DISPUTE.CREATED", DISPUTE, Kind.DISPUTE_OPENED, "CAP1", "PP-D-1", 500),
    ("CUSTOMER.DISPUTE.RESOLVED", {**DISPUTE, "dispute_outcome": {"outcome_code": "RESOLVED_BUYER_FAVOUR"}},
     Kind.DISPUTE_LOST, "CAP1", "PP-D-1", 500),
    ("CUSTOMER.DISPUTE.RESOLVED", {**DISPUTE, "dispute_outcome": {"outcome_code": "RESOLVED_SELLER_FAVOUR"}},
     Kind.DISPUTE_WON, "CAP1", "PP-D-1", 500),
    ("CHECKOUT.ORDER.APPROVED", {"id": "O"}, Kind.OTHER, "O", None, None),
]  # fmt: skip


@pytest.mark.parametrize("row", MEANINGS, ids=[f"{row[0]}-{row[2]}" for row in MEANINGS])
def test_a_type_means_what_paypal_says(row):
    """Both generations of the API, authorizations and disputes."""
    event_type, inside, kind, transaction, effect, amount = row
    headers = Headers({"PAYPAL-TRANSMISSION-ID": "t-1"})
    (event,) = PAYPAL.read("paypal", headers, resource(event_type=event_type, resource=inside))
    facts = event.facts

    assert (facts.kind, facts.transaction_id, facts.effect_id, facts.amount_minor) == (
        kind,
        transaction,
        effect,
        amount,
    )


def test_what_we_sign_has_paypals_shape():
    """The sender's side and ours are one description."""
    request = PAYPAL.sign_request(KEY, b"{}", NOW, "t-1", OPTIONS)

    assert {name.upper() for name in request.headers} == {name.upper() for name in FIRST["headers"]} - {
        "CONTENT-TYPE"
    }
    for secret, wrong in (("no key", OPTIONS), (KEY, {}), (KEY, {"webhook_id": "W1"})):
        with pytest.raises(ValueError, match="cannot sign"):
            PAYPAL.sign_request(secret, b"{}", NOW, "t-1", wrong)


def test_the_authority_between_must_come_along():
    """A certificate that leads to no root by itself is not trusted."""
    request = PAYPAL.sign_request(KEY, b"{}", NOW, "t-1", OPTIONS)
    alone = CHAIN[: CHAIN.index("-----END CERTIFICATE-----") + 26]
    spoken = speaking("paypal", Served({URL: alone}))

    found = spoken.verify(
        Source("acme", "paypal", options=OPTIONS), Headers(request.headers), request.body, NOW
    )
    assert found == Unverified("certificate_untrusted")


WIRE = st.text(st.characters(max_codepoint=255, blacklist_characters="\r\n"), max_size=40)


@settings(max_examples=100, deadline=None)
@given(
    changed=st.dictionaries(st.sampled_from(sorted(FIRST["headers"])), WIRE),
    body=st.binary(max_size=60),
    now=st.sampled_from([0.0, FIRST["now"], 1e12]),
)
def test_no_bytes_on_the_wire_raise(changed, body, now):
    """A stranger gets a refusal; what is authentic is read or refused by name."""
    headers = Headers({**FIRST["headers"], **changed})
    source = source_of(FIRST, "paypal", trust_roots=ROOTS)

    assert isinstance(speaking("paypal", Served(CERTS)).verify(source, headers, body, now), Unverified)
    with contextlib.suppress(Unreadable, UnusableId):
        PAYPAL.read("paypal", headers, body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(
    name=st.sampled_from(["amount", "links", "seller_receivable_breakdown", "custom_id", "id"]),
    value=JSON,
    key=st.sampled_from(
        ["PAYMENT.CAPTURE.COMPLETED", "PAYMENT.CAPTURE.REFUNDED", "CUSTOMER.DISPUTE.CREATED"]
    ),
)
def test_any_value_anywhere_is_read_or_flawed(name, value, key):
    """One field of a real event replaced by anything."""
    document = json.loads(base64.b64decode(FIRST["body_base64"]))
    document["event_type"] = key
    document["resource"][name] = value
    body = json.dumps(document).encode()

    contradicts_itself(body)
    (event,) = PAYPAL.read("paypal", Headers({"PAYPAL-TRANSMISSION-ID": "t-1"}), body)
    assert event.confirm_by_fetch
