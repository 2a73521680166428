"""What a signed body says: ids, facts and their flaws, and the digest that tells facts apart."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receiver.providers.payment_event import Kind
from receiver.providers.reading import UnusableId
from receiver.providers.registry import provider
from receiver.providers.strict_json import Unreadable

PAYLOADS = Path(__file__).parent.parent / "cases" / "payloads"
DEMO, LESSON, STANDARD = provider("demo"), provider("lesson"), provider("standard")

PAID = {
    "id": "evt_1",
    "type": "payment.succeeded",
    "created_at": "2026-03-01T12:00:00Z",
    "sequence": 2,
    "account": "acct_demo",
    "live": False,
    "data": {"order_id": "o_1", "transaction_id": "tx_1", "amount": 2500, "currency": "USD"},
}


def body(data=None, **changes):
    """A demo body as bytes; ``data`` replaces single fields of its payment."""
    event = {**PAID, **changes}
    if data is not None:
        event["data"] = {**PAID["data"], **data}
    return json.dumps(event).encode()


def read(raw, by=DEMO):
    (event,) = by.read("acme", {}, raw)
    return event


def test_every_fact_is_read():
    """The facts stand in our words, the amount in minor units, the time in UTC."""
    event = read(body(created_at="2026-03-01T14:00:00+02:00", data={"currency": "uSd"}))
    facts = event.facts

    assert (event.provider_event_id, event.event_type, event.item) == ("evt_1", "payment.succeeded", 0)
    assert (facts.source, facts.kind, facts.account, facts.live) == (
        "acme",
        Kind.SUCCEEDED,
        "acct_demo",
        False,
    )
    assert (facts.order_reference, facts.transaction_id, facts.effect_id) == ("o_1", "tx_1", "tx_1")
    assert (facts.amount_minor, facts.currency, facts.sequence) == (2500, "USD", 2)
    assert facts.occurred_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert facts.facts_error is None


@pytest.mark.parametrize(
    "event_type, kind, effect",
    [
        ("payment.pending", Kind.PENDING, None),
        ("payment.failed", Kind.FAILED, None),
        ("payment.authorized", Kind.AUTHORIZED, "tx_1"),
        ("payment.succeeded", Kind.SUCCEEDED, "tx_1"),
        ("payment.voided", Kind.VOIDED, "tx_1"),
        ("payment.captured", Kind.CAPTURED, "cap_1"),
        ("payment.refunded", Kind.REFUNDED, "rf_1"),
        ("payment.refund_failed", Kind.REFUND_FAILED, "rf_1"),
        ("dispute.opened", Kind.DISPUTE_OPENED, "dp_1"),
        ("dispute.won", Kind.DISPUTE_WON, "dp_1"),
        ("dispute.lost", Kind.DISPUTE_LOST, "dp_1"),
        ("payment.hologram", Kind.OTHER, None),
        ("Payment.Succeeded", Kind.OTHER, None),
        ("balance.available", Kind.OTHER, None),
    ],
)
def test_the_signed_type_gives_the_kind_and_which_id_is_the_effect(event_type, kind, effect):
    """A status in the body is never read, and a type that is not known has no money meaning."""
    ids = {"capture_id": "cap_1", "refund_id": "rf_1", "dispute_id": "dp_1", "status": "succeeded"}
    facts = read(body(type=event_type, data=ids)).facts

    assert (facts.kind, facts.effect_id, facts.facts_error) == (kind, effect, None)


@pytest.mark.parametrize(
    "data, kind, effect, total",
    [
        ({"refund_id": "rf_1"}, Kind.REFUNDED, "rf_1", None),
        ({}, Kind.REFUNDED, None, None),
        ({"refund_total": 300}, Kind.REFUND_TOTAL, None, 300),
        ({"refund_total": 0}, Kind.REFUND_TOTAL, None, 0),
        ({"refund_total": 300, "refund_id": "rf_1"}, Kind.REFUNDED, "rf_1", 300),
        ({"refund_total": 300, "refund_id": "rf_1", "amount": None}, Kind.REFUND_TOTAL, None, 300),
        ({"refund_total": None}, Kind.REFUNDED, None, None),
    ],
)
def test_a_running_total_is_told_from_a_refund_by_id(data, kind, effect, total):
    """A refund with its own id and amount is a line; a total without them is a total."""
    facts = read(body(type="payment.refunded", data=data)).facts

    assert (facts.kind, facts.effect_id, facts.refund_total_minor) == (kind, effect, total)


@pytest.mark.field_case(31)
@pytest.mark.parametrize(
    "raw, code",
    [
        (b"{}", "missing_id"),
        (b'{"id":null}', "missing_id"),
        (b'{"id":""}', "invalid_id"),
        (b'{"id":" \\t"}', "invalid_id"),
        (b'{"id":"%s"}' % (b"a" * 129), "invalid_id"),
        (rb'{"id":"evt\u0000a"}', "invalid_id"),
        (rb'{"id":"evt\ud800"}', "invalid_id"),
        (b'{"id":7}', "invalid_id"),
        (b'{"id":7615917337495251231}', "invalid_id"),
        (b'{"id":1.0}', "invalid_id"),
        (b'{"id":1e3}', "invalid_id"),
        (b'{"id":true}', "invalid_id"),
        (b'{"id":["a"]}', "invalid_id"),
        (b'{"id":"a","id":"a"}', "repeated_id"),
    ],
)
@pytest.mark.parametrize("by", [DEMO, LESSON], ids=["demo", "lesson"])
def test_an_id_that_is_no_text_of_1_to_128_characters_is_unusable(raw, code, by):
    """Laravel's required|string|max:128 to the letter: a number is refused, nothing is converted."""
    with pytest.raises(UnusableId) as caught:
        read(raw, by)
    assert caught.value.code == code


@pytest.mark.field_case(26)
def test_an_event_of_a_type_without_an_id_names_its_type():
    """The operator sees which type a provider sends without an id."""
    with pytest.raises(UnusableId, match=r"there is no id in an event of type 'balance.available'"):
        read(b'{"type":"balance.available"}')


@pytest.mark.field_case(30)
@pytest.mark.parametrize("given", ["7", " evt_1 ", "é" * 128, "😀" * 128, "evt_AbC9", "<img src=x>", "a\nb"])
def test_an_id_is_kept_exactly_as_it_came(given):
    """Never trimmed, folded or cut; the length counts characters, not bytes."""
    assert read(body(id=given)).provider_event_id == given


@pytest.mark.field_case(50)
@pytest.mark.parametrize(
    "changes, error",
    [
        ({"type": {"a": 1}}, "unreadable_type"),
        ({"type": ""}, "unreadable_type"),
        ({"type": "x" * 256}, "unreadable_type"),
        ({"data": {"currency": ["usd"]}}, "unreadable_currency"),
        ({"data": {"currency": "USDT"}}, "unreadable_currency"),
        ({"data": {"currency": " USD"}}, "unreadable_currency"),
        ({"data": {"currency": "ınr"}}, "unreadable_currency"),
        ({"data": {"currency": "XTS"}}, "unreadable_currency"),
        ({"data": {"amount": True}}, "unreadable_amount"),
        ({"data": {"amount": [2500]}}, "unreadable_amount"),
        ({"data": {"amount": "2500"}}, "unreadable_amount"),
        ({"data": {"amount": 2500.0}}, "unreadable_amount"),
        ({"data": {"amount": 0}}, "unreadable_amount"),
        ({"data": {"amount": -1}}, "unreadable_amount"),
        ({"data": {"amount": 10**15 + 1}}, "unreadable_amount"),
        ({"data": {"order_id": 12.5}}, "unreadable_order_reference"),
        ({"data": {"order_id": ""}}, "unreadable_order_reference"),
        ({"data": {"order_id": "o\0"}}, "unreadable_order_reference"),
        ({"data": {"order_id": "\ud800"}}, "unreadable_order_reference"),
        ({"data": {"order_id": "o" * 256}}, "unreadable_order_reference"),
        ({"data": {"transaction_id": 7}}, "unreadable_transaction_id"),
        ({"account": {}}, "unreadable_account"),
        ({"live": 1}, "unreadable_live"),
        ({"live": "false"}, "unreadable_live"),
        ({"sequence": -1}, "unreadable_sequence"),
        ({"sequence": 2**63}, "unreadable_sequence"),
        ({"sequence": "2"}, "unreadable_sequence"),
        ({"sequence": True}, "unreadable_sequence"),
        ({"created_at": "yesterday"}, "unreadable_occurred_at"),
        ({"created_at": 1790584264}, "unreadable_occurred_at"),
        ({"created_at": "1969-12-31T23:59:59Z"}, "unreadable_occurred_at"),
        ({"created_at": "9999-12-31T23:59:59-05:00"}, "unreadable_occurred_at"),
        ({"created_at": "2026-02-30T00:00:00Z"}, "unreadable_occurred_at"),
        ({"data": {"amount": "x", "currency": "x"}}, "unreadable_amount"),
    ],
)
def test_a_flawed_fact_is_null_and_named(changes, error):
    """The event is authentic: it is stored without the fact, and the first flaw is named and shown."""
    data = changes.pop("data", None)
    event = read(body(data=data, **changes))

    assert event.facts.facts_error == error
    assert event.flaw
    field = error.removeprefix("unreadable_").replace("amount", "amount_minor")
    assert getattr(event.facts, field, None) is None


def test_a_flaw_shows_the_value_and_where_it_stands():
    """The operator sees the raw value, cut where it is long."""
    assert read(body(data={"currency": " USD"})).flaw == 'data.currency is " USD"'
    assert len(read(body(data={"currency": "x" * 9000})).flaw) < 120


@pytest.mark.parametrize("data", [[], "x", 7, False])
def test_a_payment_that_is_no_object_is_named(data):
    """A path through what is no object is a flaw of that thing, not an absent fact."""
    for by in (DEMO, LESSON):
        event = read(json.dumps({**PAID, "data": data}).encode(), by)
        assert event.facts.facts_error == "unreadable_data"


def test_the_limits_of_facts_are_inside():
    """The largest amount and sequence, the longest text and the bounds of time are read."""
    event = read(
        body(
            sequence=2**63 - 1,
            created_at="9999-12-31T23:59:59.999999999Z",
            account="a" * 255,
            data={"amount": 10**15, "order_id": "😀" * 255, "transaction_id": " t "},
        )
    )

    assert event.facts.facts_error is None
    assert (event.facts.sequence, event.facts.amount_minor) == (2**63 - 1, 10**15)
    assert event.facts.transaction_id == " t "
    assert read(body(sequence=0)).facts.sequence == 0


@pytest.mark.parametrize(
    "text, second",
    [
        ("2026-03-01T12:00:05Z", 5),
        ("2026-03-01t12:00:05z", 5),
        ("2026-03-01 12:00:05", 5),
        ("2026-03-01T17:30:05.25+0530", 5),
        ("2026-03-01T12:00", 0),
        ("2026-03-01T14:00:05,123456789+02", 5),
    ],
)
def test_times_in_the_spellings_of_iso_8601_are_read(text, second):
    """An offset is applied, and a time without one is taken as UTC."""
    moment = read(body(created_at=text)).facts.occurred_at

    assert moment.replace(microsecond=0) == datetime(2026, 3, 1, 12, 0, second, tzinfo=UTC)


@pytest.mark.parametrize(
    "raw, error",
    [
        (b'{"id":"e","type":"payment.failed","data":{"amount":1,"amount":2}}', "repeated_field"),
        (b'{"id":"e","type":"payment.failed","data":{"amount":1},"data":{"amount":2}}', "repeated_field"),
        (b'{"id":"e","type":"payment.failed","type":"payment.succeeded"}', "repeated_field"),
        (b'{"id":"e","type":"payment.failed","data":{"note":1,"note":2}}', None),
        (b'{"id":"e","note":1,"note":2,"type":"payment.failed","data":{}}', None),
        (b'{"id":"e","type":"payment.failed","data":{"m":{"amount":1,"amount":2}}}', None),
    ],
)
def test_only_a_repeated_field_that_is_read_is_a_flaw(raw, error):
    """What verifiers and readers may understand differently never moves an order."""
    assert read(raw).facts.facts_error == error


@pytest.mark.parametrize("missing", [{"type": "x.y"}, {"type": None}, {}])
def test_an_event_without_money_meaning_is_not_refused_for_its_fields(missing):
    """Flaws of facts that cannot matter make no dead letter."""
    raw = json.dumps(
        {"id": "e", **missing, "sequence": "x", "data": {"amount": "?", "order_id": "o_1"}}
    ).encode()
    facts = read(raw).facts

    assert (facts.kind, facts.facts_error, facts.order_reference) == (Kind.OTHER, None, "o_1")


def test_a_lesson_body_needs_an_id_alone():
    """Without a payment it has no money meaning, whatever it calls itself."""
    for raw in (
        b'{"id":"e"}',
        b'{"id":"e","type":"payment.succeeded"}',
        b'{"id":"e","type":"x","data":null}',
    ):
        facts = read(raw, LESSON).facts
        assert (facts.kind, facts.facts_error) == (Kind.OTHER, None)
    assert read(body(), LESSON).facts.kind is Kind.SUCCEEDED


@pytest.mark.parametrize(
    "name, kind, effect",
    [
        ("succeeded", Kind.SUCCEEDED, "pay_bhNUdKirlsl2wtlT1XCH"),
        ("failed", Kind.FAILED, None),
        ("refunded", Kind.REFUNDED, "re_2wPdc68PzXMbyLRMkG"),
    ],
)
def test_standard_payloads_are_read(name, kind, effect):
    """The type gives the kind; a status inside the body is never looked at."""
    raw = (PAYLOADS / f"standard-webhooks-{name}.json").read_bytes()
    lying = raw.replace(b'"status": "', b'"status": "un')
    (event,) = STANDARD.read("std", {"webhook-id": "msg_1"}, raw)
    (other,) = STANDARD.read("std", {"webhook-id": "msg_1"}, lying)

    assert (event.facts.kind, event.facts.effect_id, event.facts.facts_error) == (kind, effect, None)
    assert event.facts.occurred_at.year == 2026
    assert other.facts == event.facts


@pytest.mark.parametrize("value", [None, "", "a" * 129, "a b", "é", "a\x7f", "a\0", "😀"])
def test_a_standard_id_is_a_header_of_printable_ascii(value):
    """What a header cannot carry unharmed is no id."""
    headers = {} if value is None else {"webhook-id": value}
    with pytest.raises(UnusableId):
        STANDARD.read("std", headers, b"{}")


def test_the_id_comes_from_the_headers_that_were_verified():
    """With svix- headers signed, an unsigned webhook-id is not believed."""
    headers = {"svix-signature": "v1,x", "svix-id": "msg_signed", "webhook-id": "msg_unsigned"}
    (event,) = STANDARD.read("std", headers, b"{}")

    assert event.provider_event_id == "msg_signed"


@pytest.mark.field_case(65)
def test_only_the_agreed_amount_is_read():
    """Presentment, fee and net stand beside it and are never added, subtracted or taken instead."""
    extra = {"presentment_amount": 2310, "presentment_currency": "EUR", "fee": 73, "net": 2427}
    facts = read(body(data=extra)).facts
    without = read(body(data={**extra, "amount": None})).facts

    assert (facts.amount_minor, facts.currency) == (2500, "USD")
    assert (without.amount_minor, without.facts_error) == (None, None)


SAME = [
    {"created_at": "2027-01-01T00:00:00Z"},
    {"note": "x"},
    {"data": {"note": 1}},
    {"data": {"currency": "usd"}},
]
OTHER = [
    {"type": "payment.authorized"},
    {"sequence": 3},
    {"account": "acct_x"},
    {"live": True},
    {"live": None},
    {"data": {"order_id": "o_2"}},
    {"data": {"transaction_id": "tx_2"}},
    {"data": {"amount": 2501}},
    {"data": {"currency": "EUR"}},
    {"data": {"amount": None}},
]


@pytest.mark.parametrize("changes, same", [*((c, True) for c in SAME), *((c, False) for c in OTHER)])
def test_the_digest_of_facts_covers_what_decides_and_never_a_time(changes, same):
    """Other bytes with the same facts are a variant, other facts a conflict."""
    changes = dict(changes)
    changed, plain = read(body(data=changes.pop("data", None), **changes)), read(body())

    assert (changed.facts_sha256 == plain.facts_sha256) is same
    assert changed.payload_sha256 != plain.payload_sha256
    assert len(plain.facts_sha256) == len(plain.payload_sha256) == 32


def test_an_event_without_money_meaning_is_told_apart_by_its_whole_content():
    """Spelling and order of keys do not matter, a value does; lone surrogates and decimals are no trouble."""

    def digest(raw):
        return read(raw).facts_sha256

    one = digest(rb'{"id":"e","type":"x","a":"\ud800","n":1.10}')
    assert one == digest(b'{ "n": 1.1, "a": "\\uD800", "type": "x", "id": "e" }')
    assert one != digest(rb'{"id":"e","type":"x","a":"\ud801","n":1.10}')


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["payment.refunded", "USD"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "data", "amount", "order_id", "refund_total", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(
    st.sampled_from([DEMO, LESSON, STANDARD]),
    st.binary()
    | JSON.map(lambda v: json.dumps(v).encode())
    | JSON.map(lambda v: json.dumps({"id": "e", "data": v}).encode()),
    st.dictionaries(st.sampled_from(["webhook-id", "svix-id", "svix-signature"]), st.text()),
)
def test_no_body_raises_anything_but_the_named_refusals(by, raw, headers):
    """Input alone is never an error of ours, and what is read can be stored."""
    try:
        (event,) = by.read("acme", headers, raw)
    except (Unreadable, UnusableId):
        return
    for text in (event.provider_event_id, event.event_type, event.facts.order_reference, event.flaw):
        assert text is None or ("\0" not in text and text.encode())


@given(st.text(max_size=300), st.text(max_size=300), JSON, JSON)
def test_no_fact_raises_and_every_text_can_be_stored(event_id, reference, amount, total):
    """Any value in any field gives facts and at most a named flaw."""
    raw = body(
        id=event_id,
        type="payment.refunded",
        data={"order_id": reference, "amount": amount, "refund_total": total},
    )
    try:
        event = read(raw)
    except (Unreadable, UnusableId):
        return
    assert event.facts.kind in (Kind.REFUNDED, Kind.REFUND_TOTAL)
    if event.facts.order_reference is not None:
        assert event.facts.order_reference == reference
        assert "\0" not in reference
