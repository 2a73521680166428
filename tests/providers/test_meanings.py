"""What single types mean where one type, or one payment, has several sides."""

import json
from pathlib import Path

import pytest
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.payment_event import Kind
from receiver.providers.registry import provider
from receiver.settings import Secret, Source
from receiver.signature import Unverified

PAYLOADS = Path(__file__).parent.parent / "cases" / "payloads"
PASSWORD = "invented@ssl"


def read(name, body):
    """The one event of a body."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    (event,) = provider(name).read("acme", Headers(), raw)
    return event


def stripe_event(event_type, **fields):
    """A Stripe event around an object."""
    return {
        "id": "evt_1", "type": event_type, "livemode": True, "created": 1789999998,
        "data": {"object": {"metadata": {}, "currency": "usd", "amount": 1000, **fields}},
    }  # fmt: skip


CHARGE = {"id": "ch_1", "payment_intent": "pi_1"}
REFUND = {"id": "re_1", "payment_intent": "pi_1", "charge": "ch_1"}
DISPUTE = {"id": "dp_1", "payment_intent": "pi_1", "charge": "ch_1"}


@pytest.mark.parametrize(
    "event_type, fields, kind, effect",
    [
        ("payment_intent.amount_capturable_updated", {"id": "pi_1"}, Kind.AUTHORIZED, "pi_1"),
        ("payment_intent.canceled", {"id": "pi_1"}, Kind.VOIDED, "pi_1"),
        ("payment_intent.processing", {"id": "pi_1"}, Kind.PENDING, None),
        ("charge.succeeded", {**CHARGE, "captured": True}, Kind.SUCCEEDED, "pi_1"),
        ("charge.succeeded", {**CHARGE, "captured": False}, Kind.AUTHORIZED, "pi_1"),
        ("charge.failed", CHARGE, Kind.FAILED, None),
        ("charge.refunded", {**CHARGE, "amount_refunded": 300}, Kind.REFUND_TOTAL, None),
        ("refund.created", {**REFUND, "status": "pending"}, Kind.OTHER, None),
        ("refund.updated", {**REFUND, "status": "succeeded"}, Kind.REFUNDED, "re_1"),
        ("refund.updated", {**REFUND, "status": "failed"}, Kind.REFUND_FAILED, "re_1"),
        ("refund.failed", REFUND, Kind.REFUND_FAILED, "re_1"),
        ("charge.dispute.created", DISPUTE, Kind.DISPUTE_OPENED, "dp_1"),
        ("charge.dispute.closed", {**DISPUTE, "status": "won"}, Kind.DISPUTE_WON, "dp_1"),
        ("charge.dispute.closed", {**DISPUTE, "status": "lost"}, Kind.DISPUTE_LOST, "dp_1"),
        ("customer.created", {"id": "cus_1"}, Kind.OTHER, None),
    ],
)
def test_stripe_events_of_one_payment_carry_one_transaction_id(event_type, fields, kind, effect):
    """The PaymentIntent names the payment in charge, refund and dispute events too."""
    facts = read("stripe", stripe_event(event_type, **fields)).facts

    assert (facts.kind, facts.effect_id, facts.facts_error) == (kind, effect, None)
    assert facts.transaction_id == (None if kind is Kind.OTHER else "pi_1")


def test_a_stripe_charge_without_an_intent_is_its_own_transaction():
    """Older integrations charge directly."""
    facts = read("stripe", stripe_event("charge.captured", id="ch_1", amount_captured=1000)).facts

    assert (facts.kind, facts.transaction_id, facts.amount_minor) == (Kind.SUCCEEDED, "ch_1", 1000)


@pytest.mark.parametrize(
    "status, kind",
    [
        ("APPROVED", Kind.AUTHORIZED), ("PENDING", Kind.PENDING), ("COMPLETED", Kind.SUCCEEDED),
        ("CANCELED", Kind.VOIDED), ("FAILED", Kind.FAILED), ("WHATEVER", Kind.OTHER),
    ],
)  # fmt: skip
def test_a_square_payments_status_tells_the_kind(status, kind):
    """One type covers every outcome."""
    body = json.loads((PAYLOADS / "square-succeeded.json").read_text())
    body["data"]["object"]["payment"]["status"] = status

    assert read("square", body).facts.kind is kind


def test_a_status_that_stands_twice_decides_nothing():
    """A repeated condition is a flaw of the event, never the last value's meaning."""
    text = (PAYLOADS / "square-succeeded.json").read_text()
    text = text.replace('"status": "COMPLETED"', '"status": "FAILED", "status": "COMPLETED"')

    facts = read("square", text.encode()).facts
    assert (facts.kind, facts.facts_error) == (Kind.OTHER, "repeated_field")


def test_empty_notes_of_razorpay_are_none():
    """PHP writes an empty map as a list; that is no flaw of the event."""
    body = json.loads((PAYLOADS / "razorpay-succeeded.json").read_text())
    body["payload"]["payment"]["entity"]["notes"] = []

    facts = read("razorpay", body).facts
    assert (facts.order_reference, facts.facts_error) == (None, None)


def test_a_shopify_refund_is_the_sum_of_its_transactions():
    """A refund names its order, and what was given back stands in its transactions."""
    given = {"kind": "refund", "status": "success", "currency": "BDT", "amount": "10.50"}
    body = {
        "id": 5, "admin_graphql_api_id": "gid://shopify/Refund/5", "order_id": 7,
        "created_at": "2026-10-04T19:23:33+06:00",
        "transactions": [given, {**given, "amount": "1.00"}, {**given, "status": "failure"}],
    }  # fmt: skip
    facts = read("shopify", body).facts

    assert (facts.kind, facts.transaction_id, facts.effect_id) == (Kind.REFUNDED, "7", "5")
    assert (facts.amount_minor, facts.currency, facts.facts_error) == (1150, "BDT", None)
    assert read("shopify", {**body, "transactions": 3}).facts.facts_error == "unreadable_currency"


def test_a_coinbase_event_sent_again_has_other_bytes_and_the_same_facts():
    """The delivery's id, attempt and schedule differ at each retry."""
    event = {"id": "e1", "type": "charge:delayed", "data": {"id": "c1"}}
    first = read("coinbase_commerce", {"id": "d1", "attempt_number": 1, "event": event})
    again = read("coinbase_commerce", {"id": "d2", "attempt_number": 2, "event": event})

    assert first.provider_event_id == again.provider_event_id == "e1"
    assert first.facts_sha256 == again.facts_sha256
    assert first.payload_sha256 != again.payload_sha256


@pytest.mark.parametrize("ended", ["payment.canceled", "payment.expired"])
@pytest.mark.parametrize("authorized,kind", [(None, Kind.FAILED), ("2026-03-01T12:00:00+00:00", Kind.VOIDED)])
def test_what_ends_an_authorized_mollie_payment_voids_it(ended, authorized, kind):
    """A mere failure would leave the order authorized for ever."""
    entity = {"mode": "live", "description": "o_1", "amount": {"value": "1.00", "currency": "EUR"}}
    body = {"id": "event_1", "type": ended, "entityId": "tr_1", "_embedded": {"entity": entity}}
    if authorized:
        entity["authorizedAt"] = authorized

    assert read("mollie", body).facts.kind is kind


@pytest.mark.parametrize(
    "event_type,kind",
    [
        ("refund.refunded", Kind.REFUNDED), ("refund.failed", Kind.REFUND_FAILED),
        ("refund.canceled", Kind.REFUND_FAILED), ("refund.queued", Kind.OTHER),
    ],
)  # fmt: skip
def test_a_mollie_refund_names_its_payment(event_type, kind):
    """The refund is the effect; one that is still under way moves nothing."""
    entity = {"mode": "live", "paymentId": "tr_1", "amount": {"value": "8.60", "currency": "EUR"}}
    body = {"id": "event_1", "type": event_type, "entityId": "re_1", "_embedded": {"entity": entity}}
    facts = read("mollie", body).facts

    assert (facts.kind, facts.facts_error) == (kind, None)
    if kind is not Kind.OTHER:
        assert (facts.transaction_id, facts.effect_id, facts.amount_minor) == ("tr_1", "re_1", 860)


def test_a_thin_mollie_refund_is_confirmed_first():
    """It names no payment, so that it is refused where a person sees it, and never ignored."""
    event = read("mollie", {"id": "event_1", "type": "refund.refunded", "entityId": "re_1"})

    assert (event.confirm_by_fetch, event.facts.kind) == (True, Kind.REFUNDED)
    assert event.facts.facts_error is not None


def test_a_thin_mollie_event_is_confirmed_first():
    """Without its snapshot an event says only that something happened."""
    thin = read("mollie", {"id": "event_1", "type": "payment-link.paid", "entityId": "pl_1"})

    assert (thin.confirm_by_fetch, thin.facts.facts_error) == (True, "unconfirmed")


def test_a_github_event_is_known_by_its_content_in_json_and_in_a_form():
    """Both content types carry one event, and the headers name nothing that is signed."""
    body = b'{"action":"created","sponsorship":{"node_id":"S_1"}}'
    form = b"payload=%7B%22action%22%3A%22created%22%2C%22sponsorship%22%3A%7B%22node_id%22%3A%22S_1%22%7D%7D"

    assert read("github", body).provider_event_id == read("github", form).provider_event_id
    assert read("github", form).event_type == "sponsorship.created"
    assert read("github", form).facts.kind is Kind.OTHER


def ipn(**options):
    """A signed IPN, with its source."""
    raw = json.loads((PAYLOADS / "sslcommerz-succeeded.json").read_text())["raw_body"].encode()
    return raw, Source("acme", "sslcommerz", (Secret("env:S", PASSWORD),), options=options)


def test_sslcommerz_holds_both_signatures_where_both_are_there():
    """A right MD5 does not save a wrong SHA-256, and a source may demand the stronger one."""
    raw, source = ipn()
    spoken = provider("sslcommerz")
    weaker = raw.replace(b"verify_sign_sha2=7", b"verify_sign_sha2=8")
    stripped = raw.replace(b"verify_sign_sha2=", b"ignored=")
    demanding = ipn(digest="sha2")[1]

    assert isinstance(spoken.verify(source, Headers(), raw, 0), Verified)
    assert isinstance(spoken.verify(demanding, Headers(), raw, 0), Verified)
    assert spoken.verify(source, Headers(), weaker, 0) == Unverified("signature")
    assert isinstance(spoken.verify(source, Headers(), stripped, 0), Verified)
    assert spoken.verify(demanding, Headers(), stripped, 0) == Unverified("missing_signature")


def test_what_sslcommerz_does_not_sign_is_not_even_in_the_document():
    """A field outside verify_key is dropped before anything reads it."""
    raw, _ = ipn()
    event = read("sslcommerz", raw + b"&cus_note=1&risk=9")

    (document,) = provider("sslcommerz").envelope.items(raw + b"&cus_note=1")
    assert "cus_note" not in document
    assert "verify_sign" not in document
    assert event.facts.occurred_at.isoformat() == "2026-09-21T14:13:00+00:00"


@pytest.mark.parametrize(
    "name, accepted, body, unverified",
    [("adyen", 200, "[accepted]", 401), ("gocardless", 204, "", 498), ("stripe", 200, None, 401)],
)
def test_the_answers_that_a_provider_demands_are_described(name, accepted, body, unverified):
    """The door reads them from the description."""
    answers = provider(name).answers

    assert (answers.accepted, answers.body, answers.unverified) == (accepted, body, unverified)
