"""JSON at the door: what databases, Python and careless code choke on is stored or refused, never a 5xx."""

from __future__ import annotations

import hashlib
import hmac
import json
import time

import pytest

from tests.conftest import DEMO_SECRET
from tests.posting import payment


@pytest.mark.field_case(37)
def test_a_zero_byte_in_a_field_nobody_reads_is_stored(door):
    """200, exact bytes, processed: only what decides is tested."""
    door.order("o_1")
    body = payment("evt_1", "o_1", memo="ab\0cd")

    assert door.demo(body).status_code == 200
    door.work()

    assert b"\\u0000" in body
    assert door.event("evt_1")["payload"] == body
    assert door.ended("evt_1")[:2] == ("processed", "applied")


@pytest.mark.field_case(39)
def test_a_lone_surrogate_harms_only_the_fact_it_stands_in(door):
    """In a field nobody reads it is stored and applied; in the order reference the row fails and says why."""
    door.order("o_1")
    free, reference = payment("evt_1", "o_1", name="\ud800"), payment("evt_2", "o_\ud800")

    assert [door.demo(body).status_code for body in (free, reference)] == [200, 200]
    door.work()

    assert door.event("evt_1")["payload"] == free
    assert door.ended("evt_1")[:2] == ("processed", "applied")
    assert door.ended("evt_2") == ("failed", "unreadable_order_reference", "unreadable_order_reference")
    assert door.event("evt_2")["attempts"] == 1


@pytest.mark.field_case(41)
@pytest.mark.parametrize(
    "body", [b"[" * 20_000 + b"]" * 20_000, b'{"a":' * 20_000 + b"1" + b"}" * 20_000, b"[" * 1_000_000]
)
def test_deep_nesting_is_400(door, body):
    """It is refused before it is read, quickly, and the process goes on."""
    began = time.monotonic()

    assert door.demo(body).status_code == 400

    assert time.monotonic() - began < 2
    assert [row["reason"] for row in door.rejections()] == ["too_deep"]
    assert door.demo(payment("evt_1", "o_1")).status_code == 200


@pytest.mark.field_case(43)
@pytest.mark.parametrize("field", [b'"data": {"amount": %s}', b'"unused": %s', b'"unused": [-%s.5]'])
def test_a_number_of_thousands_of_digits_is_400(door, field):
    """Where it decides and where nobody reads it."""
    body = b'{"id": "evt_1", "type": "payment.succeeded", ' + field % (b"9" * 5000) + b"}"

    assert door.demo(body).status_code == 400
    assert [row["reason"] for row in door.rejections()] == ["number_too_long"]


@pytest.mark.field_case(46)
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e99999999999"])
def test_what_is_no_number_is_400(door, number):
    """NaN and Infinity are not JSON, and an exponent beyond measure is none of ours."""
    body = payment("evt_1", "o_1").replace(b"2500", number.encode())

    assert door.demo(body).status_code == 400
    assert [row["reason"] for row in door.rejections()] in (["not_finite"], ["exponent_too_large"])


@pytest.mark.field_case(47)
@pytest.mark.parametrize("body", [b"[]", b"[1]", b'"x"', b"42", b"null", b"true", b"false", b"-0"])
def test_json_that_is_no_object_is_400(door, body):
    """Any other JSON value has no fields to read."""
    assert door.demo(body).status_code == 400
    assert [row["reason"] for row in door.rejections()] == ["not_an_object"]


@pytest.mark.field_case(47)
def test_an_empty_object_has_no_id(door):
    """It is readable, so it is 422."""
    assert door.demo(b"{}").status_code == 422


@pytest.mark.field_case(48)
@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"",
        b"   \r\n",
        b'{"id":',
        b'{"id":"a"}{"id":"b"}',
        b"\xff\xfe{}",
        b'{"id": "\x80"}',
        b"\0",
        b"{'id':1}",
    ],
)
def test_what_is_no_json_is_400(door, body):
    """Signed or not, an empty or broken body is refused; the rejection says which bytes by their hash."""
    assert door.demo(body).status_code == 400

    (row,) = door.rejections()
    assert row["reason"] in ("not_json", "not_utf8")
    assert row["sha256"] == hashlib.sha256(body).hexdigest()
    assert row["length"] == len(body)


@pytest.mark.field_case(50)
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"type": {"a": 1}}, "unreadable_type"),
        ({"data": {"currency": ["usd"]}}, "unreadable_currency"),
        ({"data": {"amount": True}}, "unreadable_amount"),
        ({"data": {"amount": [2500]}}, "unreadable_amount"),
        ({"data": {"amount": "2500"}}, "unreadable_amount"),
        ({"data": {"amount": 2500.0}}, "unreadable_amount"),
        ({"data": {"amount": -1}}, "unreadable_amount"),
        ({"data": {"amount": 0}}, "unreadable_amount"),
        ({"data": {"amount": 10**15 + 1}}, "unreadable_amount"),
        ({"data": {"order_id": 12.5}}, "unreadable_order_reference"),
        ({"data": {"order_id": "x" * 256}}, "unreadable_order_reference"),
        ({"data": {"transaction_id": {}}}, "unreadable_transaction_id"),
        ({"created_at": "yesterday"}, "unreadable_occurred_at"),
        ({"sequence": -1}, "unreadable_sequence"),
        ({"sequence": 2**63}, "unreadable_sequence"),
        ({"live": "yes"}, "unreadable_live"),
        ({"account": 7}, "unreadable_account"),
    ],
)
def test_a_fact_of_the_wrong_kind_fails_the_row_at_once_with_its_name(door, changes, reason):
    """Stored, 200, failed on the first attempt; the order does not move. `true` is not the amount 1."""
    door.order("o_1", amount_minor=1 if changes.get("data", {}).get("amount") is True else 2500)

    assert door.demo(payment("evt_1", "o_1", **changes)).status_code == 200
    door.work()

    assert door.ended("evt_1") == ("failed", reason, reason)
    assert door.event("evt_1")["attempts"] == 1
    assert door.state_of("o_1") == "pending"


@pytest.mark.field_case(51)
def test_the_stored_bytes_verify_again(door):
    """Numbers, repeated keys, tabs and line ends stay as they were, and so do the headers that prove it."""
    body = (
        b'{"id": "evt_1",\t"type": "x", "metadata": {"k": 1.10, "k": 1e2, "big": 12345678901234567890.5},'
        b' "z": [ ],"a":{} }\n'
    )
    assert door.demo(body).status_code == 200

    event = door.event("evt_1")
    headers = dict(event["headers"])
    mac = hmac.new(
        DEMO_SECRET.encode(), f"v1:{headers['X-Timestamp']}:".encode() + event["payload"], "sha256"
    )
    assert event["payload"] == body
    assert headers["X-Signature"] == f"v1={mac.hexdigest()}"


def test_a_repeated_field_that_decides_is_stored_and_fails(door):
    """Which of the two amounts counts must not be guessed; a repeat elsewhere harms nothing."""
    door.order("o_1")
    body = payment("evt_1", "o_1").replace(b'"amount": 2500', b'"amount": 1, "amount": 2500')

    assert door.demo(body).status_code == 200
    door.work()

    assert door.ended("evt_1") == ("failed", "repeated_field", "repeated_field")
    assert door.state_of("o_1") == "pending"


def test_an_object_of_a_million_bytes_costs_little_time(door):
    """The parser is bounded by the limit of the body, whatever stands in it."""
    for filler in (
        '"' + "\\\\" * 200_000 + '"',
        "[" + "1," * 200_000 + "1]",
        '{"' + 'k":1,"' * 100_000 + 'k":1}',
    ):
        body = b'{"id": "evt_%d", "type": "x", "f": %s}' % (len(filler), filler.encode())
        began = time.monotonic()
        assert door.demo(body).status_code == 200
        assert time.monotonic() - began < 3


def test_a_body_in_other_spellings_of_json_says_the_same(door):
    """A BOM, blanks and escapes change the bytes, not the facts: a variant, applied once."""
    door.order("o_1")
    body = payment("evt_1", "o_1")
    spelt = json.dumps(json.loads(body), indent=2).encode()

    assert [door.demo(each).status_code for each in (body, b"\xef\xbb\xbf" + body, spelt)] == [200] * 3
    door.work()

    assert (door.event("evt_1")["receipts"], door.event("evt_1")["variants"]) == (3, 2)
    assert door.state_of("o_1") == "paid"
