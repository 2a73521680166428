"""Braintree: the pair of keys, the challenge, and the XML inside the form."""

import base64
import contextlib
import hashlib
import hmac
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.braintree import MAX_PAIRS, answer_challenge
from receiver.providers.payment_event import Kind
from receiver.providers.reading import UnusableId
from receiver.providers.registry import provider
from receiver.providers.strict_json import Unreadable
from receiver.providers.xml_text import parse_xml
from receiver.settings import Secret, Source
from receiver.signature import Unverified
from tests.providers.certificates import cases_of, request_of, source_of

VECTORS, _, _ = cases_of("braintree")
BRAINTREE = provider("braintree")
SECRET = Secret("env:S", "ffmrxik6hvy9izr6|acc499e714ed1605d3e1b6b6dbe7ab9f")
SOURCE = Source("acme", "braintree", (SECRET,))


def notification(kind, subject, at="2026-10-21T16:24:49Z"):
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<notification>\n<timestamp type="datetime">{at}</timestamp>'
        f"<kind>{kind}</kind><subject>{subject}</subject></notification>"
    ).encode()


def request(xml, secret=SECRET.value):
    return BRAINTREE.sign_request(secret, xml, 0, "").body


def form(payload, signature=None):
    key = hashlib.sha1(SECRET.value.partition("|")[2].encode()).digest()
    made = f"ffmrxik6hvy9izr6|{hmac.digest(key, payload.encode(), 'sha1').hex()}"
    return urlencode(
        {"bt_signature": made if signature is None else signature, "bt_payload": payload}
    ).encode()


def verdict(body, source=SOURCE):
    return BRAINTREE.verify(source, Headers(), body, 0)


def facts_of(kind, subject):
    (event,) = BRAINTREE.read("acme", Headers(), request(notification(kind, subject)))
    return event.facts


@pytest.mark.parametrize("case", VECTORS, ids=[case["case"] for case in VECTORS])
def test_a_vector_gets_its_verdict(case):
    """Every vector is accepted or refused as it expects, and what is accepted is read without a flaw."""
    headers, body = request_of(case)
    found = BRAINTREE.verify(source_of(case, "braintree"), headers, body, case["now"])

    assert isinstance(found, Verified) == (case["expect"] == "accept"), found
    if isinstance(found, Verified):
        (event,) = BRAINTREE.read("acme", headers, body)
        assert (event.facts.kind, event.facts.facts_error) == (Kind.SUCCEEDED, None)


def test_a_settled_transaction_is_paid():
    """The facts of the first vector, and an id made of what is signed."""
    (event,) = BRAINTREE.read("acme", *request_of(VECTORS[0]))
    facts = event.facts

    assert event.provider_event_id == "transaction_settled:v2hqf6xl:2026-10-21T16%3A24%3A49Z"
    assert (facts.order_reference, facts.transaction_id, facts.effect_id) == (
        "ORD-555878",
        "v2hqf6xl",
        "v2hqf6xl",
    )
    assert (facts.amount_minor, facts.currency) == (274300, "USD")
    assert facts.occurred_at == datetime(2026, 10, 21, 16, 24, 49, tzinfo=UTC)


def transaction(kind="sale", **more):
    rest = "".join(
        f"<{name.replace('_', '-')}>{value}</{name.replace('_', '-')}>" for name, value in more.items()
    )
    return (
        f"<transaction><id>t2</id><type>{kind}</type><amount>500</amount>"
        f'<currency-iso-code>JPY</currency-iso-code><order-id nil="true"/>{rest}</transaction>'
    )


DISPUTE = (
    "<dispute><id>d1</id><amount>250.00</amount>{}<currency-iso-code>USD</currency-iso-code>"
    "<transaction><id>t1</id><order-id>ORD-1</order-id><amount>300.00</amount></transaction></dispute>"
)
DISPUTED = DISPUTE.format("<amount-disputed>240.5</amount-disputed>")
MEANINGS = [
    ("transaction_settled", transaction("credit", refunded_transaction_id="t1"),
     Kind.REFUNDED, "t1", "t2", 500),
    ("transaction_settlement_declined", transaction(), Kind.FAILED, "t2", None, 500),
    ("transaction_settlement_declined", transaction("credit", refunded_transaction_id="t1"),
     Kind.REFUND_FAILED, "t1", "t2", 500),
    ("refund_failed", transaction("credit", refunded_transaction_id="t1"),
     Kind.REFUND_FAILED, "t1", "t2", 500),
    ("dispute_opened", DISPUTED, Kind.DISPUTE_OPENED, "t1", "d1", 24050),
    ("dispute_won", DISPUTE.format(""), Kind.DISPUTE_WON, "t1", "d1", 25000),
    ("dispute_lost", DISPUTED, Kind.DISPUTE_LOST, "t1", "d1", 24050),
    ("dispute_accepted", DISPUTED, Kind.DISPUTE_LOST, "t1", "d1", 24050),
    ("transaction_disbursed", transaction(), Kind.OTHER, "t2", None, None),
    ("check", '<check type="boolean">true</check>', Kind.OTHER, None, None, None),
]  # fmt: skip


@pytest.mark.parametrize("row", MEANINGS, ids=[f"{row[0]}-{row[2]}" for row in MEANINGS])
def test_a_kind_means_what_braintree_says(row):
    """A settled credit is a refund of the transaction that it names; a disbursement pays nobody twice."""
    kind, subject, meant, transaction_id, effect, amount = row
    facts = facts_of(kind, subject)

    assert (facts.kind, facts.transaction_id, facts.effect_id, facts.amount_minor, facts.facts_error) == (
        meant,
        transaction_id,
        effect,
        amount,
        None,
    )


def test_a_value_that_stands_twice_is_flawed():
    """Nobody can tell which amount was meant."""
    twice = transaction().replace("<amount>500</amount>", "<amount>500</amount><amount>5</amount>")

    assert facts_of("transaction_settled", twice).facts_error == "repeated_field"


def test_the_challenge_is_answered_under_the_first_usable_pair():
    """A GET asks whether we hold the keys; what is no challenge gets no answer."""
    challenge = "20f9f8ed05f77439fe955c977e4c8a53"
    pair = Secret("env:S", "integration_public_key|integration_private_key")
    source = Source("acme", "braintree", (Secret("env:BAD", "x"), pair))

    assert answer_challenge(source, {"bt_challenge": challenge}) == (
        "integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4"
    )
    for bad in ("", "xyz", challenge.upper(), challenge + "\n", challenge * 2):
        assert BRAINTREE.challenge(source, {"bt_challenge": bad}) is None
    assert BRAINTREE.challenge(source, {}) is None
    assert BRAINTREE.challenge(Source("acme", "braintree"), {"bt_challenge": challenge}) is None


def test_a_challenges_answer_is_no_signature_of_a_message():
    """Anyone may ask for the MAC of a challenge, so a payload that looks like one is refused."""
    challenge = "20f9f8ed05f77439fe955c977e4c8a53"
    answer = answer_challenge(SOURCE, {"bt_challenge": challenge})

    assert verdict(form(challenge, answer)) == Unverified("unreadable_body")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "unreadable_body"),
        (b"bt_payload=aa", "missing_signature"),
        (form("QUFBQQ==") + b"&bt_payload=QUFBQg%3D%3D", "ambiguous_field"),
        (form("QUFBQQ==", "x"), "malformed_signature"),
        (form("QUFBQQ==", "|"), "malformed_signature"),
        (form("QUFBQQ==", "&".join(["a|b"] * (MAX_PAIRS + 1))), "too_many_signatures"),
        (form("QUFBQQ==", "ffmrxik6hvy9izr6|" + "0" * 40), "signature"),
        (form("QUFBQQ==", "ffmrxik6hvy9izr6|é"), "malformed_signature"),
    ],
)
def test_a_refusal_names_its_reason(body, reason):
    """An operator sees what was wrong."""
    assert verdict(body) == Unverified(reason)


def test_a_secret_is_a_pair():
    """One without a bar is told, and verifies nothing."""
    bad = Source("acme", "braintree", (Secret("env:S", "private"),))

    assert not BRAINTREE.is_ready(bad)
    assert BRAINTREE.faults(bad) == ["secret env:S is not public_key|private_key as braintree secrets are"]
    assert isinstance(verdict(form("QUFBQQ=="), bad), Unverified)
    for secret, body in (("private", b"<a/>"), (SECRET.value, b"x=1"), (SECRET.value, b"")):
        with pytest.raises(ValueError, match="cannot sign"):
            BRAINTREE.sign_request(secret, body, 0, "")


def test_what_we_sign_we_verify():
    """From XML, and from a form that is signed anew; a form without the last newline too."""
    body = request(notification("check", ""))

    assert verdict(body) == Verified(SECRET.key_id)
    assert BRAINTREE.sign_request(SECRET.value, body, 0, "").body == body
    payload = base64.encodebytes(notification("check", "")).decode()
    signature = dict([pair.split("=") for pair in form(payload).decode().split("&")])["bt_signature"]
    assert isinstance(verdict(form(payload[:-1], signature.replace("%7C", "|"))), Verified)


BOMB = (
    b'<!DOCTYPE n [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    b"<notification><kind>&b;</kind></notification>"
)


@pytest.mark.parametrize(
    ("xml", "code"),
    [
        (BOMB, "not_xml"),
        (b'<!DOCTYPE n SYSTEM "file:///etc/passwd"><notification><kind>x</kind></notification>', "not_xml"),
        (b"<notification><kind>&x;</kind></notification>", "not_xml"),
        (b"<notification><kind>\xff</kind></notification>", "not_utf8"),
        ("<notification><kind>x</kind></notification>".encode("utf-16"), "not_utf8"),
        (b"<notification>", "not_xml"),
        (b"<notification/>", "not_xml"),
        (b"<other><kind>x</kind></other>", "not_xml"),
        (b"plain", "not_xml"),
        (b"", "not_xml"),
        (b"<a>" * 100 + b"</a>" * 100, "too_deep"),
    ],
)
def test_xml_is_read_strictly(xml, code):
    """No entity is expanded or fetched, and no nesting is followed without end."""
    with pytest.raises(Unreadable) as refused:
        BRAINTREE.read("acme", Headers(), form(base64.encodebytes(xml).decode() or "\n"))
    assert refused.value.code == code


def test_xml_becomes_a_document():
    """Lists, null, repeated elements, and texts as they stand."""
    name, document = parse_xml(
        b'<r><a type="array"><x>1</x><x><y>2</y></x></a><n nil="true">z</n><t> t </t><e/><d>1</d><d>2</d></r>'
    )

    assert name == "r"
    assert document == {"a": ["1", {"y": "2"}], "n": None, "t": " t ", "e": "", "d": "2"}
    assert document.repeated == {"d"}


def test_an_event_without_kind_or_time_has_no_identity():
    """What names it must be there."""
    for xml in (b"<notification><kind>check</kind></notification>", b"<notification><a>b</a></notification>"):
        with pytest.raises(UnusableId):
            BRAINTREE.read("acme", Headers(), form(base64.encodebytes(xml).decode()))


XML = st.recursive(
    st.text(st.characters(codec="utf-8"), max_size=6).map(lambda text: text.replace("<", "&lt;")),
    lambda inner: st.lists(
        st.tuples(st.sampled_from(["subject", "transaction", "id", "amount", "kind", "timestamp"]), inner),
        max_size=4,
    ).map(lambda children: "".join(f"<{name}>{value}</{name}>" for name, value in children)),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    xml=XML | st.binary(max_size=40),
    kind=st.sampled_from(["transaction_settled", "dispute_opened", "check"]),
    raw=st.binary(max_size=60),
    signature=st.text(max_size=60),
)
def test_no_body_raises(xml, kind, raw, signature):
    """A stranger gets a refusal; what is authentic is read or refused by name."""
    signed = (
        request(notification(kind, xml)) if isinstance(xml, str) else form(base64.encodebytes(xml).decode())
    )
    for body in (raw, signed, form("QUFB", signature.encode("utf-8", "ignore").decode())):
        assert isinstance(verdict(body), Unverified | Verified)
        with contextlib.suppress(Unreadable, UnusableId):
            BRAINTREE.read("acme", Headers(), body)
