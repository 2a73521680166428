"""The answer table of `POST /webhooks/<source>`, row by row."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta

import pytest

from receiver.settings import Secret, Source
from receiver.web.webhooks import ANSWERS
from tests import posting
from tests.conftest import LESSON_SECRET
from tests.doors import door_sources
from tests.posting import payment


def test_a_signed_event_is_stored_and_gets_its_receipt(door):
    """200 with the row's id; the row says which key signed."""
    answer = door.demo(payment("evt_1", "o_1"))

    event = door.event("evt_1")
    assert answer.status_code == 200
    assert answer.json == {"received": True, "receipt": str(event["id"])}
    assert event["key_id"] == door.deps.settings.sources["demo"].secrets[0].key_id
    assert event["state"] == "pending"
    assert door.rejections() == []


@pytest.mark.field_case(34)
def test_new_duplicate_variant_and_conflict_get_one_text(door):
    """The four answers are equal to the byte, so that nothing of the stored event shows."""
    bodies = [
        payment("evt_1", "o_secret", data={"amount": 4711}),
        payment("evt_1", "o_secret", data={"amount": 4711}),
        payment("evt_1", "o_secret", data={"amount": 4711}, note="other bytes"),
        payment("evt_1", "o_other", data={"amount": 1}),
    ]

    answers = [door.demo(body) for body in bodies]

    assert [answer.status_code for answer in answers] == [200] * 4
    assert len({answer.data for answer in answers}) == 1
    assert set(answers[0].json) == {"received", "receipt"}
    assert all(
        part not in answers[3].data for part in (b"o_secret", b"4711", b"evt_1", b"conflict", b"duplicate")
    )
    kinds = door.rows("SELECT kind FROM webhook_conflicts ORDER BY id")
    assert [row["kind"] for row in kinds] == ["variant", "conflict"]


def test_an_unknown_event_type_is_stored(door):
    """What has no money meaning here is a 200 all the same."""
    assert door.demo(payment("evt_1", "o_1", type="payment.hologram")).status_code == 200
    assert door.event("evt_1")["kind"] == "other"


def test_an_unknown_source_is_404_and_one_key_for_operators(door):
    """Names of unknown sources are a stranger's choice: they are counted under one name, never kept."""
    for name in ("nobody", "nobody2", "x" * 500, "ünknown"):
        answer = door.post(name, b"{}", {})
        assert answer.status_code == 404

    (row,) = door.rejections()
    assert (row["source"], row["reason"], row["count"]) == ("(unknown)", "unknown_source", 4)
    assert row["payload"] is None


def test_a_source_without_a_usable_secret_is_503(door, open_door):
    """The provider comes again once the secret is there; the other sources work meanwhile."""
    misspelt = Source("misspelt", "standard", (Secret("env:S", "whsec_!!"),))
    silent = Source("silent", "nobody-speaks-this", (Secret("env:S", "s"),))
    other = open_door(sources={**door_sources(), "misspelt": misspelt, "silent": silent})

    for name, reason in (("bare", "no_secret"), ("misspelt", "no_secret"), ("silent", "unknown_provider")):
        answer = other.post(name, b"{}", {})
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert [row["reason"] for row in other.rejections(name)] == [reason]
    assert other.demo(payment("evt_1", "o_1")).status_code == 200


@pytest.mark.field_case(21)
def test_every_refused_signature_gets_one_answer(door):
    """A stranger learns nothing of which gate failed; the operator reads each reason."""
    body = payment("evt_1", "o_1")
    right = posting.demo(body, at=int(door.deps.clock.unix()))
    tries = {
        "missing_signature": {},
        "malformed_signature": {**right, "X-Signature": "v1=zz"},
        "signature": posting.demo(body, secret="another", at=int(door.deps.clock.unix())),
        "timestamp_too_old": posting.demo(body, at=int(door.deps.clock.unix()) - 301),
        "signature_version": {**right, "X-Signature": "v7=" + "0" * 64},
        "missing_timestamp": {"X-Signature": right["X-Signature"]},
    }

    answers = {reason: door.post("demo", body, headers) for reason, headers in tries.items()}

    assert {answer.status_code for answer in answers.values()} == {401}
    assert {answer.data for answer in answers.values()} == {ANSWERS[401]}
    assert {tuple(sorted(answer.headers.keys())) for answer in answers.values()} == {
        tuple(sorted(answers["signature"].headers.keys()))
    }
    assert sorted(row["reason"] for row in door.rejections()) == sorted(tries)
    assert door.rows("SELECT 1 FROM webhook_events") == []


def test_a_broken_body_is_400_and_kept_for_repair(door):
    """It was authentic, so its bytes and headers are kept, once, and cut where they carry credentials."""
    body = b'{"id": "evt_1", "type": '
    for _ in range(3):
        assert door.demo(body, headers={"Authorization": "Bearer t"}).status_code == 400

    (row,) = door.rejections()
    assert (row["reason"], row["count"], row["length"]) == ("not_json", 3, len(body))
    assert row["payload"] == body
    assert row["sha256"] == hashlib.sha256(body).hexdigest()
    assert ["Authorization", "[redacted]"] in row["headers"]
    assert "X-Signature" in dict(row["headers"])


def test_of_unreadable_bodies_only_so_much_is_kept(door, monkeypatch):
    """64 KiB of each, a hundred a source and day; the rest is counted."""
    monkeypatch.setattr("receiver.inbox.rejections.MAX_KINDS", 1000)
    long = b"[" * 70_000
    assert door.demo(long).status_code == 400
    (row,) = door.rejections()
    assert (len(row["payload"]), row["length"]) == (64 * 1024, 70_000)

    for number in range(110):
        door.demo(b"broken %d" % number)
    kept = [row["payload"] is not None for row in door.rejections()]
    assert sum(kept) == 100
    assert len(kept) == 111

    door.later(days=1, minutes=5)
    door.demo(b"of another day")
    assert door.rejections()[-1]["payload"] == b"of another day"


@pytest.mark.parametrize(
    "given", ["", " ", "\u2003", "x" * 129, "a\0b", "\ud800", 7, 7.5, True, None, [], {}], ids=repr
)
@pytest.mark.parametrize("source", ["demo", "lesson"])
def test_an_unusable_id_is_422(door, source, given):
    """Laravel's `required|string|max:128`, to the letter; the body is kept for repair."""
    document = json.loads(payment("evt_1", "o_1"))
    body = json.dumps({**document, "id": given}).encode()

    answer = door.demo(body) if source == "demo" else door.lesson(body)

    assert (answer.status_code, answer.data) == (422, ANSWERS[422])
    (row,) = door.rejections()
    assert row["reason"] == ("missing_id" if given is None else "invalid_id")
    assert row["payload"] == body
    assert door.rows("SELECT 1 FROM webhook_events") == []


def test_a_repeated_id_is_422_and_128_characters_are_an_id(door):
    """The bound counts characters, not bytes; two ids in one body are none."""
    assert door.demo(b'{"id": "a", "type": "x", "id": "b"}').status_code == 422
    assert door.demo(payment("ä" * 128, "o_1")).status_code == 200
    assert door.event("ä" * 128)["receipts"] == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_405(door, method):
    """Only POST, and OPTIONS is no exception."""
    answer = door.client.open("/webhooks/demo", method=method)

    assert answer.status_code == 405
    assert answer.headers["Allow"] == "POST"


@pytest.mark.field_case(117)
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/webhooks/demo", 200),
        ("/webhooks/demo/", 200),
        ("/webhooks//demo", 404),
        ("/webhooks/demo//", 404),
        ("/webhooks/", 404),
        ("/webhooks", 404),
        ("/webhooks/demo/x", 404),
    ],
)
def test_a_post_is_never_redirected(door, path, status):
    """Both slash forms answer; nothing answers 3xx, since the repeat would come as a GET."""
    body = payment("evt_1", "o_1")
    headers = posting.demo(body, at=int(door.deps.clock.unix()))

    answer = door.client.post(path, data=body, headers={**headers, "X-Forwarded-Proto": "http"})

    assert answer.status_code == status


def test_a_host_that_is_not_ours_is_refused(open_door):
    """With TRUSTED_HOSTS set, another Host gets 4xx and is not redirected."""
    door = open_door(trusted_hosts=("inbox.example",))
    body = payment("evt_1", "o_1")

    assert door.demo(body, base_url="http://inbox.example").status_code == 200
    assert 400 <= door.demo(body, base_url="http://evil.example").status_code < 500


@pytest.mark.field_case(116)
def test_form_protection_leaves_the_door_alone(door):
    """No cookie, no referrer, no token are asked for here, and a page's form still needs its own."""
    body = payment("evt_1", "o_1")

    assert door.post("demo", body, {}).status_code == 401
    answer = door.demo(body)
    assert answer.status_code == 200
    assert "Set-Cookie" not in answer.headers
    replay = door.client.post(f"/events/{door.event('evt_1')['id']}/replay", data={"reason": "x"})
    assert replay.status_code in (400, 401, 403)


@pytest.mark.field_case(1)
@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=iso-8859-1",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        None,
    ],
)
def test_any_content_type_is_read_as_the_bytes_sent(door, content_type):
    """The declared type and charset change nothing: bytes are verified, stored and read as they came."""
    body = payment("evt_1", "o_1", note="Zoë & ☕=1", data={"x": "é"})

    answer = door.demo(body, content_type=content_type)

    assert answer.status_code == 200
    assert door.event("evt_1")["payload"] == body


@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip", "x"])
def test_an_encoded_body_is_415(door, encoding):
    """What is verified is what was sent: nothing is decoded here."""
    assert door.demo(payment("evt_1", "o_1"), headers={"Content-Encoding": encoding}).status_code == 415
    assert [row["reason"] for row in door.rejections()] == ["content_encoding"]


@pytest.mark.parametrize("encoding", ["identity", "IDENTITY", ""])
def test_an_identity_encoding_is_none(door, encoding):
    """The one encoding that changes nothing is accepted."""
    assert door.demo(payment("evt_1", "o_1"), headers={"Content-Encoding": encoding}).status_code == 200


@pytest.mark.field_case(121)
def test_forty_rejections_are_counted_with_their_reason(door):
    """After a rotation gone wrong an operator sees how many were refused, since when and why."""
    for _ in range(40):
        door.later(seconds=15)
        body = payment("evt_1", "o_1")
        door.post("demo", body, posting.demo(body, secret="rotated", at=int(door.deps.clock.unix())))

    rows = door.rejections("demo")
    assert {row["reason"] for row in rows} == {"signature"}
    assert sum(row["count"] for row in rows) == 40
    assert rows[0]["minute"] == (door.deps.clock.at - timedelta(seconds=585)).replace(second=0)
    (minutes,) = door.rows("SELECT sum(count)::int AS n FROM inbox_minutes WHERE result = 'rejected'")
    assert minutes["n"] == 40


def test_the_lesson_takes_a_time_where_it_is_given_and_strict_demands_it(door):
    """An optional time is checked when it is there; a required one must be there."""
    body = payment("evt_1", "o_1")
    now = int(door.deps.clock.unix())

    def post(source: str, stamp: int | None) -> int:
        headers = posting.lesson(body, secret=LESSON_SECRET)
        return door.post(
            source, body, headers if stamp is None else {**headers, "X-Timestamp": str(stamp)}
        ).status_code

    assert [post("lesson", None), post("lesson", now), post("lesson", now - 301)] == [200, 200, 401]
    assert [post("strict", None), post("strict", now), post("strict", now + 301)] == [401, 200, 401]
