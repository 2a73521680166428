"""Midtrans through SNAP: the configured path, the body without its blanks, and the time are signed."""

import contextlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.midtrans_snapbi import minified
from receiver.providers.payment_event import Kind
from receiver.providers.reading import UnusableId
from receiver.providers.registry import provider
from receiver.providers.strict_json import Unreadable
from receiver.settings import Secret, Source
from receiver.signature import Unverified
from tests.providers.certificates import cases_of, request_of, source_of

VECTORS, _, _ = cases_of("midtrans-snapbi")
FIRST = VECTORS[0]
SNAP = provider("midtrans_snapbi")
T = 1_790_000_000


def pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


KEY = rsa.generate_private_key(65537, 2048)
PRIVATE = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
PUBLIC = Secret("env:K", pem(KEY))
SOURCE = Source("snap", "midtrans_snapbi", (PUBLIC,))
OPTIONS = {"notification_url": "https://pay.example/webhooks/snap"}


def verdict(case=FIRST, body=None, **changes):
    headers, sent = request_of(case)
    source = source_of(case, "midtrans_snapbi", notification_url=case["url"])
    return SNAP.verify(replace(source, **changes), headers, sent if body is None else body, case["now"])


def signed(body=b'{"a":1}', at=T, options=OPTIONS):
    return SNAP.sign_request(PRIVATE, body, at, "", options)


@pytest.mark.parametrize("case", VECTORS, ids=[case["case"] for case in VECTORS])
def test_a_vector_gets_its_verdict(case):
    """Every vector is accepted or refused as it expects, and what is accepted is read without a flaw."""
    found = verdict(case)

    assert isinstance(found, Verified) == (case["expect"] == "accept"), found
    if isinstance(found, Verified):
        (event,) = SNAP.read("snap", *request_of(case))
        assert (event.facts.facts_error, event.confirm_by_fetch) == (None, False)


def test_a_payment_says_what_it_says():
    """Major units as text, the merchant's id as the account, and an id made of what is signed."""
    (event,) = SNAP.read("snap", *request_of(FIRST))
    facts = event.facts

    assert event.provider_event_id == "ORD-247987:00:3076a07f-9c75-4ee3-ae5b-290def3962c5"
    assert (facts.kind, facts.order_reference, facts.transaction_id, facts.effect_id) == (
        Kind.SUCCEEDED,
        "ORD-247987",
        "3076a07f-9c75-4ee3-ae5b-290def3962c5",
        "3076a07f-9c75-4ee3-ae5b-290def3962c5",
    )
    assert (facts.amount_minor, facts.currency, facts.account) == (22900000, "IDR", "G982007202")
    assert facts.occurred_at == datetime(2026, 11, 9, 22, 38, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    ("status", "kind", "effect", "amount"),
    [
        ("01", Kind.PENDING, None, 100),
        ("03", Kind.PENDING, None, 100),
        ("04", Kind.REFUNDED, None, None),
        ("05", Kind.VOIDED, "T1", 100),
        ("06", Kind.FAILED, None, 100),
        ("07", Kind.OTHER, None, None),
        (None, Kind.OTHER, None, None),
    ],
)
def test_a_status_means_what_snap_says(status, kind, effect, amount):
    """A refund names neither itself nor its amount, so a person must look."""
    body = {
        "originalPartnerReferenceNo": "ORD-1",
        "originalReferenceNo": "T1",
        "latestTransactionStatus": status,
        "amount": {"value": "1.00", "currency": "IDR"},
    }
    (event,) = SNAP.read("snap", Headers(), json.dumps(body).encode())

    assert (event.facts.kind, event.facts.effect_id, event.facts.amount_minor) == (kind, effect, amount)


def test_every_refusal_has_its_reason():
    """Path, body and time are signed; a header that is not there is named."""
    headers, body = request_of(FIRST)
    timeless = Headers([(name, value) for name, value in headers.items() if name != "X-TIMESTAMP"])
    source = source_of(FIRST, "midtrans_snapbi", notification_url=FIRST["url"])

    assert verdict(body=body.replace(b"229000", b"1")) == Unverified("signature")
    assert verdict(options={"notification_url": FIRST["url"] + "/"}) == Unverified("signature")
    assert verdict(options={"notification_url": "nowhere"}) == Unverified("missing_setting")
    assert SNAP.verify(source, timeless, body, FIRST["now"]) == Unverified("missing_timestamp")
    assert SNAP.verify(source, Headers(), body, FIRST["now"]) == Unverified("missing_signature")
    assert verdict(secrets=()) == Unverified("unusable_secret")
    odd = Headers({**dict(headers), "X-TIMESTAMP": "soon"})
    assert SNAP.verify(source, odd, body, FIRST["now"]) == Unverified("malformed_timestamp")
    bad = Headers({**dict(headers), "X-SIGNATURE": "ÿ"})
    assert SNAP.verify(source, bad, body, FIRST["now"]) == Unverified("malformed_signature")


def test_the_path_is_the_sources_own_by_default():
    """What a proxy leaves of the path does not matter: it is never looked at."""
    request = signed()

    assert SNAP.verify(SOURCE, Headers(request.headers), request.body, T) == Verified(PUBLIC.key_id)
    elsewhere = replace(SOURCE, name="other")
    assert SNAP.verify(elsewhere, Headers(request.headers), request.body, T) == Unverified("signature")


def test_a_source_may_set_a_window_and_hold_two_keys():
    """By itself the time has no window; a key that is none is passed over."""
    request = signed(at=T - 600)
    headers = Headers(request.headers)
    bad = Secret("env:BAD", "no key")

    assert isinstance(SNAP.verify(SOURCE, headers, request.body, T), Verified)
    narrow = replace(SOURCE, tolerance=timedelta(seconds=300))
    assert SNAP.verify(narrow, headers, request.body, T) == Unverified("timestamp_too_old", -600)
    two = replace(SOURCE, secrets=(bad, PUBLIC))
    assert SNAP.verify(two, headers, request.body, T) == Verified(PUBLIC.key_id)


def test_a_body_that_is_no_json_proves_nothing():
    """Without its blanks it could be another's bytes."""
    request = signed(b"12")

    assert SNAP.verify(SOURCE, Headers(request.headers), b"1 2", T) == Unverified("unreadable_body")


def test_a_key_is_a_public_rsa_key_in_pem():
    """Its lines may be parted by backslash and n; anything else is told and verifies nothing."""
    escaped = PUBLIC.value.replace("\n", "\\n")
    other = pem(ec.generate_private_key(ec.SECP256R1()))

    assert SNAP.is_ready(replace(SOURCE, secrets=(Secret("env:K", escaped),)))
    for bad in ("", "x", "é", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", other, PRIVATE):
        misspelt = replace(SOURCE, secrets=(Secret("env:BAD", bad),))
        assert not SNAP.is_ready(misspelt)
        assert SNAP.faults(misspelt) == [
            "secret env:BAD is not an RSA public key in PEM as midtrans_snapbi secrets are"
        ]
    assert len(SNAP.faults(replace(SOURCE, options={"notification_url": 5, "x": 1}))) == 2
    for secret, options in ((PUBLIC.value, OPTIONS), (PRIVATE, {"notification_url": "http://[x"})):
        with pytest.raises(ValueError, match="cannot sign"):
            SNAP.sign_request(secret, b"{}", T, "", options)


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
))  # fmt: skip
def test_minified_is_the_same_document_without_blanks(value):
    """However it was laid out; blanks inside texts stay."""
    compact = json.dumps(value, separators=(",", ":")).encode()

    assert minified(json.dumps(value, indent=3).encode()) == minified(compact) == compact


WIRE = st.text(st.characters(max_codepoint=255), max_size=60)


@settings(max_examples=100, deadline=None)
@given(signature=WIRE, stamp=WIRE, body=st.binary(max_size=60))
def test_no_bytes_on_the_wire_raise(signature, stamp, body):
    """A stranger gets a refusal; what is authentic is read or refused by name."""
    for headers in (
        {"X-SIGNATURE": signature, "X-TIMESTAMP": stamp},
        {**FIRST["headers"], "X-TIMESTAMP": stamp},
    ):
        safe = Headers([(name, value.replace("\r", "").replace("\n", "")) for name, value in headers.items()])
        assert isinstance(SNAP.verify(SOURCE, safe, body, T), Unverified)
    with contextlib.suppress(Unreadable, UnusableId):
        SNAP.read("snap", Headers(), body)
