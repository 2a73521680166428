"""bKash through SNS: whose topic, whose certificate, which fields; and what a completed payment says."""

import contextlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.certificates import CertificateUnavailable
from receiver.providers.payment_event import Kind
from receiver.providers.reading import UnusableId
from receiver.providers.registry import provider
from receiver.providers.sns import subscription_url
from receiver.providers.strict_json import Unreadable
from receiver.settings import Secret, Source
from receiver.signature import Unverified
from tests.providers.certificates import CASES, Served, cases_of, invented, request_of, source_of, speaking

VECTORS, CERTS, _ = cases_of("sns")
BY_NAME = {case["case"]: case for case in VECTORS}
FIRST = VECTORS[0]
BKASH = provider("bkash")
KEY, CHAIN, _ = invented("sns.amazonaws.com")
TOPIC = FIRST["config"]["topic_arns"][0]


def verdict(body, served=None, now=FIRST["now"], headers=None, **changes):
    spoken = speaking("bkash", served or Served(CERTS))
    return spoken.verify(replace(source_of(FIRST, "bkash"), **changes), headers or Headers(), body, now)


def document_of(name="valid"):
    return json.loads(request_of(BY_NAME[name])[1])


def changed(name="valid", **fields):
    return json.dumps({**document_of(name), **fields}).encode()


@pytest.mark.parametrize("case", VECTORS, ids=[case["case"] for case in VECTORS])
def test_a_vector_gets_its_verdict(case):
    """Every vector is accepted or refused as it expects, and what is accepted is read without a flaw."""
    headers, body = request_of(case)
    found = speaking("bkash", Served(CERTS)).verify(source_of(case, "bkash"), headers, body, case["now"])

    assert isinstance(found, Verified) == (case["expect"] == "accept"), found
    if isinstance(found, Verified):
        (event,) = BKASH.read("bkash", headers, body)
        assert (event.facts.facts_error, event.confirm_by_fetch) == (None, False)
        paid = json.loads(body)["Type"] == "Notification"
        assert event.facts.kind == (Kind.SUCCEEDED if paid else Kind.OTHER)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (changed(TopicArn="arn:aws:sns:ap-southeast-1:999999999999:bkash"), "foreign_topic"),
        (changed(TopicArn=None), "foreign_topic"),
        (changed(TopicArn=[TOPIC]), "foreign_topic"),
        (changed(Type="Alarm"), "unknown_type"),
        (changed(Type=["Notification"]), "unknown_type"),
        (changed(MessageId=None), "missing_field"),
        (changed(Message={"amount": 1}), "missing_field"),
        (changed(MessageId="a\nb"), "ambiguous_field"),
        (changed(Signature=None), "missing_signature"),
        (changed(Signature=5), "missing_signature"),
        (changed(SignatureVersion=1), "signature_version"),
        (changed(SignatureVersion="3"), "signature_version"),
        (changed()[:-1] + b', "MessageId": "x"}', "ambiguous_field"),
        (changed(Message=document_of()["Message"].replace("3575", "1")), "signature"),
        (b"{", "unreadable_body"),
        (b"[]", "unreadable_body"),
        (b"", "unreadable_body"),
    ],
)
def test_a_refusal_names_its_reason(body, reason):
    """An operator sees what was wrong."""
    assert verdict(body) == Unverified(reason)


@pytest.mark.parametrize(
    "url",
    [
        "http://sns.ap-southeast-1.amazonaws.com/SimpleNotificationService-00.pem",
        "https://sns.ap-southeast-1.amazonaws.com.evil.example/SimpleNotificationService-00.pem",
        "https://evil.example/sns.ap-southeast-1.amazonaws.com/SimpleNotificationService-00.pem",
        "https://sns.ap-southeast-1.amazonaws.com@evil.example/SimpleNotificationService-00.pem",
        "https://sns.ap-southeast-1.amazonaws.com:444/SimpleNotificationService-00.pem",
        "https://sns.ap-southeast-1.amazonaws.com/other.pem",
        "https://sns.ap-southeast-1.amazonaws.com/SimpleNotificationService-00.pem?x",
        "https://bucket.s3.amazonaws.com/SimpleNotificationService-00.pem",
        "https://sns.amazonaws.com.pem",
        5,
    ],
)
def test_a_foreign_url_is_never_fetched(url):
    """A stranger cannot make us ask another host."""
    served = Served(CERTS)

    assert verdict(changed(SigningCertURL=url), served) == Unverified("certificate_url")
    assert served.asked == []


def test_nothing_is_fetched_for_a_foreign_topic():
    """Anyone with an AWS account can send what is rightly signed."""
    served = Served(CERTS)

    assert verdict(request_of(BY_NAME["foreign-topic"])[1], served) == Unverified("foreign_topic")
    assert served.asked == []


def test_nothing_is_fetched_for_a_request_that_is_malformed_anyway():
    """The cheap looks come first."""
    served = Served(CERTS)
    for fields in ({"Signature": "not base64"}, {"SignatureVersion": "3"}, {"Token": 1, "Timestamp": None}):
        assert isinstance(verdict(changed(**fields), served), Unverified)

    assert served.asked == []


def test_a_source_may_refuse_sha1_and_set_a_window():
    """By itself both versions count, and a message may be as old as SNS's retries."""
    old, new = request_of(FIRST)[1], request_of(BY_NAME["valid-version-2"])[1]
    strict = {**FIRST["config"], "signature_version": "2"}

    assert verdict(old, options=strict) == Unverified("signature_version")
    assert isinstance(verdict(new, options=strict), Verified)
    late = verdict(old, now=FIRST["now"] + 3000, tolerance=timedelta(seconds=300))
    assert (late.reason, late.skew_seconds < -300) == ("timestamp_too_old", True)
    assert isinstance(verdict(old, tolerance=timedelta(seconds=300)), Verified)


def test_a_certificate_that_cannot_be_had_now_is_no_wrong_signature():
    """A 4xx ends SNS's tries, so the door must answer 503."""

    def down(url):
        raise CertificateUnavailable("down")

    assert verdict(request_of(FIRST)[1], down) == Unverified("certificate_unavailable")


def test_without_its_topics_a_source_is_not_ready():
    """The list of topics is the audience."""
    bare = Source("acme", "bkash")

    assert not BKASH.is_ready(bare)
    assert len(BKASH.faults(bare)) == 1
    assert BKASH.verify(bare, Headers(), request_of(FIRST)[1], 0) == Unverified("missing_setting")
    for topics in ("arn", [""], [1], {}):
        assert BKASH.verify(
            Source("acme", "bkash", options={"topic_arns": topics}), Headers(), b"{}", 0
        ) == Unverified("missing_setting")
    odd = Source(
        "acme",
        "bkash",
        (Secret("env:S", "s"),),
        options={"topic_arns": ["a"], "signature_version": 1, "x": 1},
    )
    assert len(BKASH.faults(odd)) == 3


def test_the_unsigned_header_says_nothing():
    """bKash's own sample trusts it."""
    headers = Headers({"x-amz-sns-message-type": "SubscriptionConfirmation"})

    assert isinstance(verdict(request_of(FIRST)[1], headers=headers), Verified)
    (event,) = BKASH.read("bkash", headers, request_of(FIRST)[1])
    assert event.event_type == "Notification"


def test_a_payload_gives_the_facts_of_the_table():
    """Major units as text, Dhaka's time, the short code as the account."""
    (event,) = BKASH.read("bkash", Headers(), (CASES / "payloads/bkash-succeeded.json").read_bytes())
    facts = event.facts

    assert event.provider_event_id == "dd47e9e5-c1f1-404d-a2e7-514c0eb66f98"
    assert (facts.kind, facts.order_reference, facts.transaction_id, facts.effect_id) == (
        Kind.SUCCEEDED,
        "INV874636",
        "X9JODYNKC4",
        "X9JODYNKC4",
    )
    assert (facts.amount_minor, facts.currency, facts.account, facts.facts_error) == (
        299500,
        "BDT",
        "01000000226",
        None,
    )
    assert facts.occurred_at == datetime(2026, 9, 21, 14, 13, 15, tzinfo=UTC)


def test_a_confirmation_moves_no_order():
    """A subscription says nothing about money."""
    body = (CASES / "payloads/bkash-subscription-confirmation.json").read_bytes()
    (event,) = BKASH.read("bkash", Headers(), body)

    assert (event.facts.kind, event.event_type, event.facts.facts_error) == (
        Kind.OTHER,
        "SubscriptionConfirmation",
        None,
    )


@pytest.mark.parametrize(
    ("inside", "reference", "kind", "error"),
    [
        ({"merchantInvoiceNumber": "INV1", "transactionReference": "typed"}, "INV1", Kind.SUCCEEDED, None),
        ({"transactionReference": "ORD-1"}, "ORD-1", Kind.SUCCEEDED, None),
        ({"merchantInvoiceNumber": "", "transactionReference": "ORD-1"}, "ORD-1", Kind.SUCCEEDED, None),
        ({"transactionStatus": "Initiated"}, None, Kind.OTHER, None),
        ({"amount": "1.005"}, None, Kind.SUCCEEDED, "unreadable_amount"),
        ({"amount": 100}, None, Kind.SUCCEEDED, "unreadable_amount"),
    ],
)
def test_what_a_message_says(inside, reference, kind, error):
    """The merchant's invoice number first; what is not completed, or flawed, moves nothing."""
    plain = {"trxID": "T1", "transactionStatus": "Completed", "amount": "100", "currency": "BDT"}
    (event,) = BKASH.read("bkash", Headers(), changed(Message=json.dumps(plain | inside)))

    assert (event.facts.order_reference, event.facts.kind, event.facts.facts_error) == (
        reference,
        kind,
        error,
    )
    typed = BKASH.of_source({"order_reference": "Message.transactionReference"})
    (chosen,) = typed.read("bkash", Headers(), changed(Message=json.dumps(plain | inside)))
    assert chosen.facts.order_reference == inside.get("transactionReference")


def test_a_message_that_is_no_json_is_flawed():
    """A plain text may hide a payment, so an operator sees it."""
    (event,) = BKASH.read("bkash", Headers(), changed(Message="hello"))

    assert event.facts.facts_error == "unreadable_Message"


def test_only_a_listed_topics_subscription_is_confirmed():
    """The URL must be SNS's own, confirm, and name the topic that we listen to."""
    source = source_of(FIRST, "bkash")
    body = request_of(BY_NAME["valid-subscription-confirmation"])[1]
    url = json.loads(body)["SubscribeURL"]

    assert BKASH.visit(source, body) == url
    for other in (
        url.replace("https", "http"),
        url.replace("amazonaws.com", "amazonaws.com.evil.example"),
        url.replace("sns.ap", "evil.example/sns.ap"),
        url.replace("ConfirmSubscription", "DeleteTopic"),
        url.replace("01000000001", "01000000002"),
        url + "&TopicArn=x",
        url + " x",
        url + "&a=b" * 20,
        None,
        5,
    ):
        assert (
            subscription_url(source, changed("valid-subscription-confirmation", SubscribeURL=other)) is None
        )
    assert subscription_url(source, changed("valid-subscription-confirmation", TopicArn="other")) is None
    assert subscription_url(source, changed("valid-subscription-confirmation", Type="Notification")) is None
    assert subscription_url(source, request_of(BY_NAME["unsubscribe-confirmation"])[1]) is None
    assert subscription_url(source, b"{") is None


def test_what_we_sign_we_verify():
    """The sender's side and ours are one description, with the current version of the signature."""
    url = document_of()["SigningCertURL"]
    options = {"topic_arns": [TOPIC], "certificate_url": url, "signature_version": "2"}
    request = BKASH.sign_request(KEY, request_of(FIRST)[1], FIRST["now"], "", options)
    headers = Headers(request.headers)

    assert isinstance(verdict(request.body, Served({url: CHAIN}), headers=headers, options=options), Verified)
    assert verdict(request.body, headers=headers) == Unverified("signature")
    for secret, body, wrong in (
        ("no key", request.body, options),
        (KEY, request.body, {}),
        (KEY, b"{}", options),
        (KEY, b"[]", options),
        (KEY, b"x", options),
    ):
        with pytest.raises(ValueError, match="cannot sign"):
            BKASH.sign_request(secret, body, 0, "", wrong)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(
    fields=st.dictionaries(st.sampled_from(sorted(document_of("valid-subscription-confirmation"))), JSON),
    raw=st.binary(max_size=40),
    name=st.sampled_from(["valid", "valid-subscription-confirmation"]),
)
def test_no_body_raises(fields, raw, name):
    """A stranger gets a refusal; what is authentic is read or refused by name."""
    source = source_of(FIRST, "bkash")
    for body in (raw, changed(name, **fields)):
        assert isinstance(verdict(body), Unverified | Verified)
        subscription_url(source, body)
        with contextlib.suppress(Unreadable, UnusableId):
            BKASH.read("bkash", Headers(), body)
