"""Every event that `receiver trigger` can send is accepted by its provider's own check, and read as meant."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from receiver.providers.amounts import MAJOR_ANY, MAJOR_NUMBER, MAJOR_TEXT, MINOR, MINOR_TEXT
from receiver.providers.authentication import Verified
from receiver.providers.payment_event import Kind
from receiver.providers.registry import provider_of
from receiver.providers.stripe import UNIT as STRIPE
from receiver.settings import Secret, Source
from receiver.simulator.dialect import written
from receiver.simulator.dialects import DIALECTS
from receiver.simulator.scenarios import SEEDED_TIME, STEPS, PlannedPost, Run, plan, run_tag
from receiver.simulator.sender import Headers, Sender

CASES = Path(__file__).parent.parent / "cases" / "signatures"
UNIX = 1_772_366_400.0
BY_CERTIFICATE = {"paypal", "bkash", "midtrans_snapbi"}
"""They are signed with a private key that only the test has: their own tests verify what we sign."""

SECRETS = {
    "demo": "dsec_simulated_0123456789",
    "lesson": "lsec_simulated_0123456789",
    "standard": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
    "adyen": "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
    "braintree": "public_key|private_key",
}
OPTIONS = {"square": {"notification_url": "https://pay.example/webhooks/square"}}
PAIRS = [(name, kind) for name in sorted(DIALECTS) for kind in DIALECTS[name].types]
READ_AS = {("lemonsqueezy", Kind.REFUNDED): Kind.REFUND_TOTAL}
"""Lemon Squeezy tells refunds as their running total."""


def source_of(name: str) -> Source:
    """The source that is played."""
    secret = SECRETS.get(name, "simulated_secret_0123456789")
    secrets = () if name == "mollie_classic" else (Secret("env:S", secret),)
    return Source(name, name, secrets, options=OPTIONS.get(name, {}))


def posts_of(name: str, kind: Kind) -> list[PlannedPost]:
    """The posts of one seeded scenario."""
    run = Run(name, kind, DIALECTS[name], run_tag(7, name, kind, None), SEEDED_TIME)
    return plan(run).posts


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    """A private key of the module's own."""
    return rsa.generate_private_key(65537, 2048)


def private_pem(key: rsa.RSAPrivateKey) -> str:
    """The key as a provider would hold it."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize("name,kind", [pair for pair in PAIRS if pair[0] not in BY_CERTIFICATE])
def test_what_is_triggered_is_accepted_and_read_as_meant(name: str, kind: Kind) -> None:
    """Signed anew and verified by the description; kind, order, amount and transaction are those meant."""
    source = source_of(name)
    spoken = provider_of(source)
    sender = Sender(spoken, source, unix=lambda: UNIX)
    read = []
    for post in posts_of(name, kind):
        headers, body = sender.headers_and_body(post)
        verdict = spoken.verify(source, Headers(headers), body, UNIX)
        assert isinstance(verdict, Verified), (post.event_type, verdict)
        (event,) = spoken.read(source.name, Headers(headers), body)
        read.append((post, event))

    check(name, kind, read, confirmed=not spoken.confirm_by_fetch)


@pytest.mark.parametrize("name,kind", [pair for pair in PAIRS if pair[0] in BY_CERTIFICATE])
def test_what_is_signed_with_a_certificate_is_read_as_meant(
    name: str, kind: Kind, key: rsa.RSAPrivateKey
) -> None:
    """The body is signed with a private key of one's own, and read as meant."""
    options = {
        "paypal": {
            "webhook_id": "WH-1",
            "certificate_url": "https://api.paypal.com/v1/notifications/certs/1",
        },
        "bkash": {"topic_arns": ["x"], "certificate_url": "https://sns.ap-southeast-1.amazonaws.com/x.pem"},
    }.get(name, {})
    source = Source(name, name, (Secret("env:S", private_pem(key)),), options=options)
    spoken = provider_of(source)
    sender = Sender(spoken, source, unix=lambda: UNIX)
    read = []
    for post in posts_of(name, kind):
        headers, body = sender.headers_and_body(post)
        (event,) = spoken.read(source.name, Headers(headers), body)
        read.append((post, event))

    check(name, kind, read, confirmed=not spoken.confirm_by_fetch)


def check(name: str, kind: Kind, read: list, *, confirmed: bool) -> None:
    """Compare what was read with the scenario."""
    steps = [step for step in STEPS[kind] if step in DIALECTS[name].types]
    kinds = [event.facts.kind for _, event in read]
    assert kinds == [READ_AS.get((name, step), step) for step in steps]
    assert {event.facts.facts_error for _, event in read} == {None if confirmed else "unconfirmed"}
    assert {event.facts.transaction_id for _, event in read} == {read[0][1].facts.transaction_id}
    assert read[0][1].facts.transaction_id is not None
    assert len({event.provider_event_id for _, event in read}) == len(read) or name == "mollie_classic"
    order = plan_order(name, kind)
    for _, event in read:
        facts = event.facts
        if facts.kind is Kind.OTHER:
            continue
        assert facts.order_reference in (order.reference, None), name
        if facts.kind in (Kind.SUCCEEDED, Kind.AUTHORIZED) and name != "gocardless":
            assert (facts.amount_minor, facts.currency) == (order.amount_minor, "EUR")
            assert facts.order_reference == order.reference
            assert facts.effect_id == facts.transaction_id
        if facts.kind in (Kind.REFUNDED, Kind.DISPUTE_OPENED) and name != "midtrans":
            assert facts.effect_id is not None
    assert DIALECTS[name].kind_of(read[-1][0].event_type) is kind


def plan_order(name: str, kind: Kind):
    """The one order of the scenario."""
    (order,) = plan(Run(name, kind, DIALECTS[name], run_tag(7, name, kind, None), SEEDED_TIME)).orders
    return order


@pytest.mark.parametrize("unit", [MINOR, MINOR_TEXT, MAJOR_TEXT, MAJOR_NUMBER, MAJOR_ANY, STRIPE])
@pytest.mark.parametrize("currency", ["EUR", "JPY", "KWD", "ISK", "UGX"])
@pytest.mark.parametrize("amount_minor", [1, 99, 100, 12345, 10**9])
def test_an_amount_is_written_as_it_is_read(unit, currency: str, amount_minor: int) -> None:
    """Writer and reader of a unit are each other's reverse."""
    from decimal import Decimal

    text = json.dumps(written(unit, amount_minor, currency))
    value = json.loads(text, parse_float=Decimal)

    assert unit.read(value, currency) == amount_minor


def test_braintrees_payload_is_its_xml() -> None:
    """What is signed is the base64 of the notification."""
    source = source_of("braintree")
    _, body = Sender(provider_of(source), source).headers_and_body(posts_of("braintree", Kind.SUCCEEDED)[0])

    assert b"bt_signature=public_key%7C" in body
    assert base64.b64decode(body.split(b"bt_payload=")[1].replace(b"%0A", b"").replace(b"%3D", b"=")[:8])
