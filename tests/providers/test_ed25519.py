"""Standard Webhooks' v1a: public keys beside shared secrets, and never one for the other."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.registry import provider
from receiver.settings import Secret, Source
from receiver.signature import Unverified

CASES = [
    case
    for case in json.loads(
        (Path(__file__).parent.parent / "cases/signatures/standard_webhooks.json").read_text()
    )["cases"]
    if case["scheme"] == "standard-webhooks-v1a"
]
T = 1_793_818_770
BODY = b'{"type":"payment.failed"}'
PRIVATE = "whsk_" + base64.b64encode(bytes(range(32))).decode()
PUBLIC = Secret("env:P", "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=")
SHARED = Secret("env:S", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
STANDARD = provider("standard")


def source(*secrets, **changes):
    return Source("acme", "standard", secrets=secrets, **changes)


def signed(secret=PRIVATE, at=T):
    return STANDARD.sign(secret, BODY, at, "msg_1")


def verdict(headers, *secrets, body=BODY, at=T):
    return STANDARD.verify(source(*secrets), Headers(headers), body, at)


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_a_vector_gets_its_verdict(case):
    """Each vector of v1a is accepted or refused as it expects."""
    secrets = [Secret(f"env:S{i}", value) for i, value in enumerate(case["secrets"])]
    found = STANDARD.verify(
        source(*secrets), Headers(case["headers"]), base64.b64decode(case["body_base64"]), case["now"]
    )

    assert isinstance(found, Verified) == (case["expect"] == "accept")
    assert STANDARD.is_ready(source(*secrets))


def test_a_source_may_hold_keys_of_both_kinds():
    """While a sender goes over to public keys, either signature is enough, and its key is named."""
    assert verdict(signed(), SHARED, PUBLIC) == Verified(PUBLIC.key_id)
    assert verdict(signed(SHARED.value), SHARED, PUBLIC) == Verified(SHARED.key_id)
    both = {**signed(), "webhook-signature": "v1,AAAA " + signed()["webhook-signature"]}
    assert verdict(both, SHARED, PUBLIC) == Verified(PUBLIC.key_id)


def test_every_refusal_has_its_reason():
    """Changed bytes, another version, junk, and a time outside the window."""
    assert verdict(signed(), PUBLIC, body=BODY + b" ") == Unverified("signature")
    assert verdict(signed(SHARED.value), PUBLIC) == Unverified("signature_version")
    assert verdict(signed(), SHARED) == Unverified("signature_version")
    assert verdict({**signed(), "webhook-signature": "v1a,zz"}, PUBLIC) == Unverified("malformed_signature")
    assert verdict(signed(), PUBLIC, at=T + 301) == Unverified("timestamp_too_old", -301)
    assert verdict(signed(), SHARED, PUBLIC, at=T - 301) == Unverified("timestamp_in_future", 301)
    assert verdict({}, PUBLIC) == Unverified("missing_signature")


def test_the_bytes_of_a_public_key_are_no_shared_secret():
    """Whoever knows the public key cannot make a v1 signature of it."""
    forged = STANDARD.sign("whsec_" + PUBLIC.value.removeprefix("whpk_"), BODY, T, "msg_1")

    assert isinstance(verdict(forged, PUBLIC), Unverified)
    assert isinstance(verdict(forged, SHARED, PUBLIC), Unverified)


@pytest.mark.parametrize("bad", ["whpk_", "whpk_!!", "whpk_AAAA", "whpk_é", "whpk_" + "A" * 44])
def test_a_misspelt_public_key_is_told_and_verifies_nothing(bad):
    """It is no key, so the source is not ready, and `receiver check` names it."""
    misspelt = source(Secret("env:BAD", bad))

    if STANDARD.is_ready(misspelt):
        pytest.fail("a key that is none")
    assert STANDARD.faults(misspelt)
    assert verdict(signed(), Secret("env:BAD", bad)) == Unverified("unusable_secret")
    with pytest.raises(ValueError, match="cannot sign"):
        signed(bad)


@given(st.text(st.characters(max_codepoint=255), max_size=120), st.binary(max_size=20))
def test_no_header_raises(value, body):
    """A stranger gets a refusal, whatever he sends."""
    headers = {**signed(), "webhook-signature": "v1a," + value.replace("\n", "").replace("\r", "")}

    assert isinstance(verdict(headers, SHARED, PUBLIC, body=body), Unverified)
