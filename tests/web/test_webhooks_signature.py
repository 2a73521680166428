"""Signatures at the door: what the field's senders and strangers send, and the right answer to each."""

from __future__ import annotations

import base64
import json
import time

import pytest

from receiver.settings import Secret, Source
from tests import posting
from tests.conftest import DEMO_SECRET, LESSON_SECRET
from tests.doors import door_sources
from tests.posting import hex_mac, payment


def refused(door, answer) -> str:
    """The one reason of a 401; nothing was stored."""
    assert answer.status_code == 401
    assert door.rows("SELECT 1 FROM webhook_events") == []
    (row,) = door.rejections()
    assert row["count"] == 1
    return str(row["reason"])


@pytest.mark.field_case(3)
def test_text_outside_ascii_is_verified_as_its_bytes(door):
    """Raw UTF-8 and its escaped spelling mean the same; each is signed and stored as it was sent."""
    note = "Zoë ☕ 😀"
    document = json.loads(payment("evt_21", "o_1", note=note))
    raw = json.dumps(document, ensure_ascii=False).encode()
    escaped = json.dumps({**document, "id": "evt_22"}).encode()

    assert [door.demo(raw).status_code, door.demo(escaped).status_code] == [200, 200]

    stored = [door.event("evt_21")["payload"], door.event("evt_22")["payload"]]
    assert stored == [raw, escaped]
    assert {json.loads(body)["note"] for body in stored} == {note}


@pytest.mark.field_case(4)
def test_a_body_is_never_spelt_anew(door):
    """Escapes, key order, blanks and a final line end are signed bytes; one of them gone is another body."""
    body = b'{"type":  "x\\u0026y\\/z\\u2028",  "b": 1,  "a": 2, "id":  "evt_1"}\r\n'
    headers = posting.demo(body, at=int(door.deps.clock.unix()))

    assert door.post("demo", body, headers).status_code == 200
    assert door.post("demo", body[:-2], headers).status_code == 401

    assert door.event("evt_1")["payload"] == body
    assert len(door.rows("SELECT 1 FROM webhook_events")) == 1


@pytest.mark.field_case(6)
@pytest.mark.parametrize("tail", ["\xe9", "\xf0\x9f\x98\x80" * 4, "\x80", "\x00"], ids=ascii)
@pytest.mark.parametrize("header", ["X-Signature", "X-Timestamp"])
@pytest.mark.parametrize("source", ["demo", "lesson"])
def test_bytes_outside_ascii_in_a_header_are_a_wrong_signature(door, source, header, tail):
    """No stranger's byte in a header raises anything."""
    body = payment("evt_1", "o_1")
    stamp = str(int(door.deps.clock.unix()))
    headers = (
        posting.demo(body, at=stamp) if source == "demo" else {**posting.lesson(body), "X-Timestamp": stamp}
    )
    environ = {f"HTTP_{header.upper().replace('-', '_')}": headers[header][:-1] + tail}

    assert refused(door, door.post(source, body, headers, environ_overrides=environ))


@pytest.mark.field_case(7)
@pytest.mark.parametrize("value", [None, "", " ", "v1=", "sha256=", "null", "v1=null", "v1"])
@pytest.mark.parametrize("source", ["demo", "lesson"])
def test_no_signature_is_never_a_right_one(door, source, value):
    """An absent, empty or placeholder header is refused, although the rest is in order."""
    headers = {"X-Timestamp": str(int(door.deps.clock.unix()))}
    if value is not None:
        headers["X-Signature"] = value

    reason = refused(door, door.post(source, payment("evt_1", "o_1"), headers))
    assert reason in ("missing_signature", "malformed_signature", "signature_version")


@pytest.mark.field_case(9)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda mac: "a",
        lambda mac: "a" * 10_000,
        lambda mac: mac[:-1],
        lambda mac: mac + "0",
        lambda mac: "z" * 64,
        lambda mac: mac[:63] + "g",
    ],
    ids=["one", "10000", "cut", "longer", "zz", "not-hex"],
)
@pytest.mark.parametrize("source", ["demo", "lesson"])
def test_a_signature_of_any_length_is_refused_in_normal_time(door, source, spoil):
    """Odd lengths and junk are 401 at once, and nothing behind the door hears of it."""
    body = payment("evt_1", "o_1")
    stamp = str(int(door.deps.clock.unix()))
    mac = (
        hex_mac(DEMO_SECRET, f"v1:{stamp}:".encode() + body)
        if source == "demo"
        else hex_mac(LESSON_SECRET, body)
    )
    value = ("v1=" if source == "demo" else "") + spoil(mac)
    began = time.monotonic()

    assert refused(door, door.post(source, body, {"X-Timestamp": stamp, "X-Signature": value}))
    assert time.monotonic() - began < 2
    assert door.rows("SELECT 1 FROM webhook_event_attempts") == []


@pytest.fixture
def rotating(open_door):
    """A source with a current and a previous secret."""
    secrets = (Secret("env:K1", "k1-current"), Secret("env:K0", "k0-previous"))
    return open_door(sources={**door_sources(), "demo": Source("demo", "demo", secrets)})


@pytest.mark.field_case(10)
def test_a_header_with_several_signatures_holds_if_one_does(rotating):
    """Wrong then right, right then wrong, the previous secret: all hold; a hundred are cut off."""
    stamp = int(rotating.deps.clock.unix())

    def post(event_id: str, *secrets: str) -> int:
        body = payment(event_id, "o_1")
        signatures = [posting.demo(body, secret=secret, at=stamp)["X-Signature"] for secret in secrets]
        headers = {"X-Timestamp": str(stamp), "X-Signature": ",".join(signatures)}
        return rotating.post("demo", body, headers).status_code

    assert post("evt_1", "wrong", "k1-current") == 200
    assert post("evt_2", "k1-current", "wrong") == 200
    assert post("evt_3", "k0-previous") == 200
    began = time.monotonic()
    assert post("evt_4", *["wrong"] * 100, "k1-current") == 401
    assert time.monotonic() - began < 2
    assert [row["reason"] for row in rotating.rejections()] == ["too_many_signatures"]


@pytest.mark.field_case(11)
def test_two_secrets_hold_while_both_are_configured(rotating, open_door):
    """The row says which key signed, and a retired one signs no more."""
    stamp = int(rotating.deps.clock.unix())
    first, second, third = (payment(f"evt_{n}", "o_1") for n in range(3))

    assert rotating.post("demo", first, posting.demo(first, secret="k1-current", at=stamp)).status_code == 200
    assert (
        rotating.post("demo", second, posting.demo(second, secret="k0-previous", at=stamp)).status_code == 200
    )

    keys = [secret.key_id for secret in rotating.deps.settings.sources["demo"].secrets]
    assert [rotating.event(f"evt_{n}")["key_id"] for n in range(2)] == keys
    assert not any("k1-current" in key or "k0-previous" in key for key in keys)
    retired = open_door(sources={"demo": Source("demo", "demo", (Secret("env:K1", "k1-current"),))})
    assert retired.post("demo", third, posting.demo(third, secret="k0-previous", at=stamp)).status_code == 401


@pytest.mark.field_case(12)
def test_one_encoding_holds_and_the_others_are_told_apart(door):
    """Lower-case hex, with blanks around it; other spellings of the right MAC are counted as such."""
    body = payment("evt_1", "o_1")
    mac = hex_mac(LESSON_SECRET, body)
    raw = bytes.fromhex(mac)
    others = [
        mac.upper(),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        base64.b64encode(raw).decode().rstrip("="),
    ]

    assert [
        door.post("lesson", body, {"X-Signature": value}).status_code for value in (mac, f"  {mac}\t")
    ] == [200] * 2
    assert [door.post("lesson", body, {"X-Signature": value}).status_code for value in others] == [401] * 4

    (row,) = door.rejections()
    assert (row["reason"], row["count"]) == ("wrong_encoding", 4)
    stamp = str(int(door.deps.clock.unix()))
    signed = hex_mac(DEMO_SECRET, f"v1:{stamp}:".encode() + body)
    assert door.post("demo", body, {"X-Timestamp": stamp, "X-Signature": f"v1= {signed} "}).status_code == 200


@pytest.mark.field_case(13)
@pytest.mark.parametrize(
    ("pattern", "status"),
    [
        ("v1={mac}", 200),
        (" v1={mac} , v0=junk, ", 200),
        ("v0=junk,v1={mac},", 200),
        ("V1={mac}", 401),
        ("v1:{mac}", 401),
        ("v1={mac};v1=x", 401),
    ],
)
def test_a_signature_list_is_read_whatever_its_blanks(door, pattern, status):
    """Entries are told apart by their separator alone; names are compared exactly."""
    body = payment("evt_1", "o_1")
    stamp = str(int(door.deps.clock.unix()))
    mac = hex_mac(DEMO_SECRET, f"v1:{stamp}:".encode() + body)

    answer = door.post("demo", body, {"X-Timestamp": stamp, "X-Signature": pattern.format(mac=mac)})

    assert answer.status_code == status


@pytest.mark.field_case(13)
def test_two_different_times_are_none(door):
    """Which one was signed must not be guessed."""
    body = payment("evt_1", "o_1")
    stamp = int(door.deps.clock.unix())
    headers = posting.demo(body, at=stamp)

    answer = door.post("demo", body, {**headers, "X-Timestamp": f"{stamp},{stamp + 1}"})

    assert refused(door, answer) == "malformed_timestamp"


@pytest.mark.field_case(15)
@pytest.mark.parametrize(
    "stamp",
    ["NaN", "nan", "inf", "-inf", "", "-1", "0", "9" * 25, "1e9", "+1", "1_0", "\u0661", "0x10", "1.0"],
)
@pytest.mark.parametrize("source", ["demo", "strict"])
def test_a_time_that_is_no_number_never_passes_the_window(door, source, stamp):
    """Signed over that very text, it is still refused, and no date overflows."""
    body = payment("evt_1", "o_1")
    wire = stamp.encode().decode("latin-1")
    if source == "demo":
        signature = "v1=" + hex_mac(DEMO_SECRET, f"v1:{stamp}:".encode() + body)
    else:
        signature = hex_mac(LESSON_SECRET, body)

    answer = door.post(source, body, {"X-Signature": signature}, environ_overrides={"HTTP_X_TIMESTAMP": wire})

    assert refused(door, answer) in ("malformed_timestamp", "missing_timestamp", "timestamp_too_old")


@pytest.mark.field_case(16)
def test_milliseconds_are_not_taken_for_seconds(door):
    """A source of seconds refuses 13 digits as outside the window: units are never guessed."""
    body = payment("evt_1", "o_1")
    stamp = int(door.deps.clock.unix()) * 1000

    assert refused(door, door.post("demo", body, posting.demo(body, at=stamp))) == "timestamp_in_future"


@pytest.mark.field_case(17)
@pytest.mark.field_case(18)
@pytest.mark.parametrize(
    ("skew", "status", "reason"),
    [
        (30, 200, None),
        (299, 200, None),
        (300, 200, None),
        (301, 401, "timestamp_in_future"),
        (10 * 365 * 86400, 401, "timestamp_in_future"),
        (-240, 200, None),
        (-299, 200, None),
        (-300, 200, None),
        (-301, 401, "timestamp_too_old"),
    ],
)
@pytest.mark.parametrize("source", ["demo", "strict", "standard"])
def test_the_window_has_two_sides_and_its_skew_is_measured(door, source, skew, status, reason):
    """Five minutes either way; a refusal tells the operator by how much the clocks differ."""
    body = payment("evt_1", "o_1")
    stamp = int(door.deps.clock.unix()) + skew
    headers = {
        "demo": lambda: posting.demo(body, at=stamp),
        "strict": lambda: {**posting.lesson(body), "X-Timestamp": str(stamp)},
        "standard": lambda: posting.standard(body, "evt_1", at=stamp),
    }[source]()

    assert door.post(source, body, headers).status_code == status

    found = [(row["reason"], row["skew_seconds"]) for row in door.rejections()]
    assert found == ([] if reason is None else [(reason, skew)])


@pytest.mark.field_case(18)
def test_a_slow_clock_of_ours_is_seen(door):
    """With the host's clock four minutes behind a genuine event holds; at six it is refused, and measured."""
    body = payment("evt_1", "o_1")
    true = int(door.deps.clock.unix())

    door.later(minutes=-4)
    assert door.post("demo", body, posting.demo(body, at=true)).status_code == 200
    door.later(minutes=-2)
    assert door.post("demo", body, posting.demo(body, at=true)).status_code == 401

    assert [row["skew_seconds"] for row in door.rejections()] == [360]
