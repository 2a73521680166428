"""A provider as the endpoint asks it: verify under a source's settings, sign, and say what is wrong."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import EnvironHeaders

from receiver.providers.provider import Verified
from receiver.providers.registry import UnknownProvider, names, provider
from receiver.settings import Secret, Source
from receiver.signature import Unverified

T = 1_790_584_266
BODY = b'{"id":"evt_1"}'
SECRETS = {
    "demo": Secret("env:DEMO", "dsec_1"),
    "lesson": Secret("env:LESSON", "lsec_1"),
    "standard": Secret("env:STANDARD", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
}


def source(name, **changes):
    return replace(Source("acme", name, (SECRETS[name],)), **changes)


def environ(headers):
    """The headers as a WSGI server hands them on: each byte one Latin-1 character."""
    return EnvironHeaders(
        {"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items()}
    )


def signed(name, body=BODY, now=T):
    return provider(name).sign(SECRETS[name].value, body, now, "msg_1")


def verdict(name, headers, body=BODY, now=T, **changes):
    return provider(name).verify(source(name, **changes), environ(headers), body, now)


def test_the_registry_knows_its_names():
    """An unknown provider is named, with those that are known."""
    assert {"demo", "lesson", "standard"} < set(names())
    with pytest.raises(UnknownProvider, match=r"known are .*demo, .*lesson, .*standard"):
        provider("nobody")


@pytest.mark.parametrize("name", ["demo", "lesson", "standard"])
def test_a_signed_body_is_verified_and_names_its_key(name):
    """The key id says which secret matched and nothing of it."""
    assert verdict(name, signed(name)) == Verified(SECRETS[name].key_id)
    assert verdict(name, signed(name), BODY + b" ") == Unverified("signature")
    two = (Secret("env:NEW", "whsec_" + "A" * 32), SECRETS[name])
    assert verdict(name, signed(name), secrets=two) == Verified(SECRETS[name].key_id)


@pytest.mark.field_case(3)
@pytest.mark.field_case(4)
@pytest.mark.parametrize(
    "body",
    [
        '{"id":"evt_21","note":"Zoë ☕ 😀"}'.encode(),
        rb'{"id":"evt_22","note":"Zo\u00eb \u2615 \ud83d\ude00"}',
        b'{"z":  "\\u0026 \\/ \\u2028",  "id":  "evt_23"}\r\n',
    ],
)
def test_the_signature_is_over_the_bytes_as_they_came(body):
    """Escapes, blanks and the last line break are part of what was signed."""
    for name in SECRETS:
        assert isinstance(verdict(name, signed(name, body), body), Verified)
    assert verdict("lesson", signed("lesson", b'{"id":"e"}\r\n'), b'{"id":"e"}') == Unverified("signature")


def test_a_lesson_signature_can_never_be_read_as_a_demo_one():
    """No downgrade, and no lesson body that begins like a signed time passes for a v1 message."""
    secret = SECRETS["demo"].value
    bare = provider("lesson").sign(secret, BODY, T, "")
    crafted = provider("lesson").sign(secret, f"{T}:".encode() + BODY, T, "")

    assert verdict("demo", bare) == Unverified("malformed_signature")
    crafted["X-Signature"] = "v1=" + crafted["X-Signature"]
    assert verdict("demo", crafted) == Unverified("signature")


def test_the_time_of_a_lesson_message_is_checked_where_it_is_there():
    """Optional by default, demanded by the source's setting, inside the window in either case."""
    fresh = signed("lesson")
    timeless = {"X-Signature": fresh["X-Signature"]}

    assert isinstance(verdict("lesson", timeless), Verified)
    assert verdict("lesson", timeless, timestamp="required") == Unverified("missing_timestamp")
    assert verdict("lesson", {**fresh, "X-Timestamp": str(T - 301)}) == Unverified("timestamp_too_old", -301)
    assert verdict("lesson", {**fresh, "X-Timestamp": "soon"}) == Unverified("malformed_timestamp")


def test_a_demo_source_cannot_make_the_time_optional():
    """Its timestamp is signed: the setting has no effect, and the doctor says so."""
    headers = signed("demo")
    del headers["X-Timestamp"]

    assert verdict("demo", headers, timestamp="optional") == Unverified("missing_timestamp")
    assert provider("demo").faults(source("demo", timestamp="optional")) == [
        'timestamp = "optional" has no effect: the timestamp is signed'
    ]


@pytest.mark.field_case(18)
def test_a_source_has_its_own_window():
    """tolerance_seconds replaces the protocol's window on both sides."""
    for skew, reason in ((-9, "timestamp_too_old"), (9, "timestamp_in_future")):
        headers = signed("demo", now=T + skew)
        assert isinstance(verdict("demo", headers, tolerance=timedelta(seconds=9)), Verified)
        assert verdict("demo", headers, tolerance=timedelta(seconds=8)) == Unverified(reason, skew)


def test_svix_headers_and_standard_headers_are_never_mixed():
    """One family signs and the same family names the id; halves of both are nothing."""
    headers = signed("standard")
    svix = {name.replace("webhook", "svix"): value for name, value in headers.items()}

    assert isinstance(verdict("standard", svix), Verified)
    mixed = {**svix, "webhook-id": svix.pop("svix-id")}
    del mixed["svix-id"]
    assert verdict("standard", mixed) == Unverified("missing_header")
    assert isinstance(verdict("standard", {**headers, "svix-signature": "v1,junk"}), Verified)


def test_secrets_that_cannot_verify_are_named_by_reference_alone():
    """The doctor names missing and misspelt secrets and never shows one."""
    bad = Secret("env:BAD", "whpk_p4ssw0rd")
    broken = source("standard", secrets=(bad,), missing_secrets=("env:GONE",))
    faults = provider("standard").faults(broken)

    assert provider("standard").usable_secrets(broken) == ()
    assert verdict("standard", signed("standard"), secrets=(bad,)) == Unverified("unusable_secret")
    assert len(faults) == 2
    assert "env:GONE" in faults[0]
    assert "env:BAD" in faults[1]
    assert "p4ssw0rd" not in "".join(faults)
    assert provider("standard").faults(source("standard")) == []


def test_what_a_protocol_never_carries_is_declared():
    """A fact that no event can have is not checked; one that an event may have is."""
    assert provider("standard").never_carries == {"account", "live", "sequence"}
    assert provider("demo").never_carries == provider("lesson").never_carries == frozenset()


WIRE = st.text(st.characters(max_codepoint=255), max_size=200)


@given(
    name=st.sampled_from(["demo", "lesson", "standard"]),
    headers=st.dictionaries(
        st.sampled_from(
            [
                "X-Signature",
                "X-Timestamp",
                "webhook-id",
                "webhook-timestamp",
                "webhook-signature",
                "svix-signature",
            ]
        ),
        WIRE,
    ),
    body=st.binary(),
)
def test_no_bytes_on_the_wire_raise(name, headers, body):
    """A stranger gets a refusal, whatever he sends."""
    assert isinstance(verdict(name, headers, body), Unverified)
