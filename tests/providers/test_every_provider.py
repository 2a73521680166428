"""Promises that every provider keeps: no input raises, nothing unsigned is believed, signs as it verifies."""

import base64
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import EnvironHeaders, Headers

from receiver.providers.authentication import Verified
from receiver.providers.paths import Computed
from receiver.providers.reading import UnusableId
from receiver.providers.registry import names, provider
from receiver.providers.strict_json import Unreadable
from receiver.settings import Secret, Source
from receiver.signature import Unverified
from tests.providers.test_vectors import SPOKEN, vectors

FIRST = {}
for parameter in vectors():
    case = parameter.values[0]
    if case["expect"] == "accept":
        FIRST.setdefault(SPOKEN[case["scheme"]], case)

SIGNED = {
    "adyen": {
        "pspReference", "originalReference", "merchantAccountCode", "merchantReference", "amount",
        "eventCode", "success",
    },
}  # fmt: skip
"""The top-level fields that a digest over fields covers, where what is read is believed at once."""


def source_of(name):
    """A source with the secrets and options of the provider's first good vector."""
    case = FIRST[name]
    secrets = tuple(Secret(f"env:S{i}", value) for i, value in enumerate(case["secrets"]))
    return Source("acme", name, secrets, options=case.get("config") or {})


def body_of(name):
    """The body of the provider's first good vector."""
    return base64.b64decode(FIRST[name]["body_base64"])


@pytest.mark.parametrize("name", sorted(FIRST))
def test_what_a_provider_signs_it_verifies(name):
    """The sender's side and ours are one description."""
    source, spoken = source_of(name), provider(name)
    secret = source.secrets[0].value if source.secrets else ""
    request = spoken.sign_request(secret, body_of(name), FIRST[name]["now"], "msg_1", source.options)
    headers = Headers(request.headers)

    assert isinstance(spoken.verify(source, headers, request.body, FIRST[name]["now"]), Verified)


@pytest.mark.parametrize("name", sorted(FIRST))
def test_a_delivery_again_is_the_same_event(name):
    """The identity comes from what is signed, so an unsigned header with a new id changes nothing."""
    spoken, body = provider(name), body_of(name)
    headers = dict(FIRST[name]["headers"])
    again = {
        key: "renewed" if key.lower() in ("x-razorpay-event-id", "x-github-delivery", "x-shopify-event-id")
        or (key.lower() == "webhook-id" and name == "xendit") else value
        for key, value in headers.items()
    }  # fmt: skip
    first = spoken.read("acme", Headers(headers), body)
    second = spoken.read("acme", Headers(again), body)

    assert [e.provider_event_id for e in first] == [e.provider_event_id for e in second]
    assert [e.facts_sha256 for e in first] == [e.facts_sha256 for e in second]
    assert all(0 < len(event.provider_event_id) <= 128 for event in first)


@pytest.mark.parametrize("name", sorted(set(names()) & set(SIGNED)))
def test_nothing_outside_the_signed_fields_is_read(name):
    """Every place of every fact and of the identity lies under a field that the digest covers."""
    spoken = provider(name)
    places = [place for where in spoken.body.every_where() for place in where.places()]
    places += [
        condition[0] for several in spoken.body.several.values() for m in several for condition in m.when
    ]
    places += [spoken.body.type, *spoken.identity.parts]
    paths = [path for place in places for path in (place.paths if isinstance(place, Computed) else (place,))]

    assert {path[0] for path in paths} <= SIGNED[name]


@pytest.mark.parametrize("name", sorted(names()))
def test_what_is_not_proven_is_confirmed_first(name):
    """A provider whose proof covers nothing of the message never gives facts that count."""
    spoken = provider(name)
    if not spoken.signed:
        assert spoken.confirm_by_fetch


def test_an_unconfirmed_event_carries_an_error_besides_its_mark():
    """Whoever forgets to look at the mark still cannot move an order by it."""
    (event,) = provider("xendit").read("acme", Headers(), body_of("xendit"))

    assert (event.confirm_by_fetch, event.facts.facts_error) == (True, "unconfirmed")


@pytest.mark.parametrize(
    "name,body",
    [
        ("gocardless", {"id": "EV1", "resource_type": "mandates", "action": "created", "links": {}}),
        ("paypal", {"id": "WH-1", "event_type": "CATALOG.PRODUCT.CREATED", "resource": {"id": "P1"}}),
        ("xendit", {"event": "payout.succeeded", "created": "2026-03-01T12:00:00Z", "data": {"id": "x"}}),
        ("mollie", {"id": "event_1", "type": "profile.created", "entityId": "pfl_1"}),
        ("flutterwave_v3", {"event": "transfer.completed", "data": {"id": 1, "status": "SUCCESSFUL"}}),
    ],
)
def test_a_type_without_money_meaning_is_not_asked_for(name, body):
    """There is nothing to read back of it: it is ignored, and no dead letter."""
    headers = Headers({"PAYPAL-TRANSMISSION-ID": "t-1"})
    event = provider(name).read_document("acme", headers, body, b"")

    assert (event.facts.kind, event.facts.facts_error, event.confirm_by_fetch) == ("other", None, False)


@pytest.mark.parametrize(
    "name,body",
    [
        ("mollie", {"id": "event_1", "type": "payment.paid", "entityId": "tr_1"}),
        ("paypal", {"event_type": "CUSTOMER.DISPUTE.RESOLVED", "resource": {"dispute_id": "D1"}}),
        ("paypal", {"event_type": 7, "resource": {"id": "C1"}}),
        ("xendit", {"event": "payment.expiry", "data": {"payment_id": "py-1"}}),
        ("xendit", {"event": "payment.succeeded", "data": {"id": "pymt-1", "status": "SUCCEEDED"}}),
        ("midtrans", {"order_id": "o_1", "transaction_status": "chargeback", "transaction_id": "mt-1"}),
    ],
)
def test_a_type_that_may_mean_money_is_asked_for(name, body):
    """A thin message, an outcome that we do not know, and a type that cannot be read may hide money."""
    headers = Headers({"PAYPAL-TRANSMISSION-ID": "t-1"})
    event = provider(name).read_document("acme", headers, body, b"")

    assert event.confirm_by_fetch
    assert event.facts.facts_error is not None


def test_a_notification_of_an_object_is_a_row_for_each_receipt():
    """Mollie classic repeats the object's id for every status."""
    (event,) = provider("mollie_classic").read("acme", Headers(), b"id=tr_7UhSN1zuXS")

    assert (event.per_receipt, event.provider_event_id) == (True, "tr_7UhSN1zuXS")
    assert event.facts.transaction_id == "tr_7UhSN1zuXS"


def test_a_batch_cut_differently_is_known_again():
    """An item's hash is over its own canonical JSON, whatever it came with."""
    spoken, body = provider("gocardless"), json.loads(body_of("gocardless"))
    together = spoken.read("acme", Headers(), body_of("gocardless"))
    apart = [
        spoken.read("acme", Headers(), json.dumps({"events": [each]}, indent=2).encode())[0]
        for each in body["events"]
    ]

    assert [e.payload_sha256 for e in together] == [e.payload_sha256 for e in apart]
    assert [e.item for e in together] == list(range(len(together)))


@pytest.mark.parametrize(
    "body", [b'{"events":[]}', b'{"events":{}}', b"{}", b'{"events":[1]}', b'{"events":null}']
)
def test_a_batch_is_read_whole_or_not_at_all(body):
    """A list that is none, is empty or holds something else than objects is unreadable."""
    with pytest.raises(Unreadable):
        provider("gocardless").read("acme", Headers(), body)


def test_adyen_waits_for_the_capture_where_the_source_says_so():
    """By default an authorisation is the payment; with manual capture it is an authorisation."""
    manual = provider("adyen").of_source({"capture": "manual"})
    (event,) = manual.read("acme", Headers(), body_of("adyen"))
    (paid,) = provider("adyen").read("acme", Headers(), body_of("adyen"))

    assert (event.facts.kind, paid.facts.kind) == ("authorized", "succeeded")
    assert provider("adyen").described_faults({"capture": "now", "x": 1}) == [
        "options.x is no option of adyen",
        "options.capture must be automatic or manual",
    ]


def test_a_source_says_where_the_merchants_reference_stands():
    """The merchant chose the name of the metadata, so the source names its place."""
    text = (Path(__file__).parent.parent / "cases/payloads/stripe-succeeded.json").read_text()
    body = text.replace('"order_id"', '"cart"').encode()
    spoken = provider("stripe").of_source({"order_reference": "data.object.metadata.cart"})

    assert spoken.read("acme", Headers(), body)[0].facts.order_reference == "ORD-709694"
    assert provider("stripe").read("acme", Headers(), body)[0].facts.order_reference is None


WIRE = st.text(st.characters(max_codepoint=255), max_size=60)
HEADERS = [
    "X-Signature", "Stripe-Signature", "Paddle-Signature", "verif-hash", "x-callback-token", "HmacSignature",
    "X-Hub-Signature-256", "X-Mollie-Signature", "Cko-Signature", "webhook-signature", "Webhook-Signature",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
BODIES = st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())


@settings(max_examples=60, deadline=None)
@given(headers=st.dictionaries(st.sampled_from(HEADERS), WIRE), body=BODIES)
@pytest.mark.parametrize("name", sorted(FIRST))
def test_no_bytes_on_the_wire_raise(name, headers, body):
    """A stranger gets a refusal, whatever he sends; what he sends is read or refused by name."""
    environ = {"HTTP_" + key.upper().replace("-", "_"): value for key, value in headers.items()}
    spoken = provider(name)

    assert isinstance(
        spoken.verify(source_of(name), EnvironHeaders(environ), body, FIRST[name]["now"]),
        Unverified | Verified,
    )
    with contextlib.suppress(Unreadable, UnusableId):
        spoken.read("acme", EnvironHeaders(environ), body)


def changed(document, path, value):
    """A copy of the document with another value at the path."""
    copy = json.loads(json.dumps(document))
    node = copy
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return copy


def leaves(node, path=()):
    """Every path of a document."""
    if path:
        yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from leaves(child, (*path, key))


JSON_SPOKEN = sorted(name for name in FIRST if body_of(name)[:1] == b"{")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("name", JSON_SPOKEN)
def test_any_value_anywhere_in_a_true_body_is_read_or_refused_by_name(name, data):
    """One field of a real event replaced by anything: the reader never raises but its own refusals."""
    document = json.loads(body_of(name))
    path = data.draw(st.sampled_from(list(leaves(document))))
    body = json.dumps(changed(document, path, data.draw(JSON))).encode()
    headers = Headers(list(FIRST[name]["headers"].items()))

    provider(name).verify(source_of(name), headers, body, FIRST[name]["now"])
    with contextlib.suppress(Unreadable, UnusableId):
        provider(name).read("acme", headers, body)
