"""What strangers, broken proxies and broken providers may send to any source: never a fault of ours."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.embedded import EmbeddedPostgres
from receiver.providers.certificates import STORE
from receiver.providers.registry import names, provider_of
from receiver.settings import Secret, Settings, Source
from receiver.web import webhooks
from tests.doors import Door
from tests.providers.certificates import Served
from tests.providers.test_every_provider import FIRST, changed, leaves
from tests.providers.test_every_provider import source_of as source_of_vector
from tests.running import new_database
from tests.web.test_every_payload import OPTIONS, PAYPAL_CHAIN, PAYPAL_URL, SECRETS, SNS_CHAIN, SNS_URL
from tests.web.test_every_payload import body_of as payload
from tests.web.test_every_vector import certified

ANSWERED = {200, 202, 204, 400, 401, 413, 415, 422, 498}
"""Every answer that input may earn."""

HMAC_OPTIONS = {
    "header": "X-Acme",
    "template": "{body}",
    "id": "id",
    "type": "type",
    "paths": {"transaction_id": "pay", "amount": "amount", "currency": "currency"},
    "kinds": {"paid": "succeeded"},
}
HMAC_BODY = b'{"id": "1", "type": "paid", "pay": "p_1", "amount": 100, "currency": "EUR"}'
NUL, LONE, LONG = "\0", "\ud800", "x" * 300
VALUES: list[Any] = [None, True, NUL, LONE, LONG, "", " ", -1, 10**39, 1.5, [], {}, [[1]], {"$": 1}, "\u0661"]
"""What a field may hold instead of what it should."""

BODIES = [
    b"",
    b"\0",
    b"null",
    b"[]",
    b"{}",
    b'""',
    b"\xff\xfe{}",
    b"\xef\xbb\xbf{}",
    b'{"a":' * 200 + b"1" + b"}" * 200,
    b'{"id": 1' + b"0" * 5000 + b"}",
    b'{"id": NaN}',
    b"%",
    b"a=%ff&a=%00&=&&==",
    b"&" * 5000,
    b"bt_signature=x&bt_payload=%FF",
    b"payload=%7B",
    b"<!DOCTYPE x [<!ENTITY e 'e'>]><x>&e;</x>",
]


@pytest.fixture(scope="module")
def door(server: EmbeddedPostgres) -> Iterator[Door]:
    """One door for all; a test gives it its source."""
    with new_database(server) as url:
        deps = Deps.build(Settings(database_url=url, secret_key="x"), clock=FixedClock(datetime.now(UTC)))
        door = Door(deps)
        yield door
        door.close()
        deps.dispose()


@pytest.fixture(autouse=True)
def certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificates of the cases and of the payloads are served; nothing is visited."""
    certs: dict[str, str] = {SNS_URL: SNS_CHAIN, PAYPAL_URL: PAYPAL_CHAIN}
    for parameter in certified():
        certs |= parameter.values[2]
    monkeypatch.setattr(STORE, "fetch", Served(certs))
    monkeypatch.setattr(STORE, "_kept", {})
    monkeypatch.setattr(STORE, "_fetched_at", [])
    monkeypatch.setattr(webhooks, "visit", lambda _source, _url: None)


CERTIFIED = {}
for parameter in certified():
    case, source, _ = parameter.values
    if case["expect"] == "accept":
        CERTIFIED.setdefault(source.provider, (case, source))
EVERY = sorted({*FIRST, *CERTIFIED, "hmac"})


def good(name: str) -> tuple[Source, dict[str, str], bytes, float]:
    """A provider's source, and a request that it accepts at a time."""
    if name == "hmac":
        source = Source("acme", "hmac", (Secret("env:S", "s"),), options=HMAC_OPTIONS)
        request = provider_of(source).sign_request("s", HMAC_BODY, 1e9, "msg_1", HMAC_OPTIONS)
        return source, dict(request.headers), request.body, 1e9
    case, source = CERTIFIED.get(name) or (FIRST[name], source_of_vector(name))
    return source, dict(case["headers"]), base64.b64decode(case["body_base64"]), case["now"]


def post(door: Door, source: Source, headers: dict[str, str], body: bytes, now: float) -> int:
    """The status of the answer at that time."""
    door.app.extensions["receiver"] = replace(
        door.deps,
        clock=FixedClock(datetime.fromtimestamp(now, UTC)),
        settings=replace(door.deps.settings, sources={"acme": source}),
    )
    environ = {f"HTTP_{key.upper().replace('-', '_')}": value for key, value in headers.items()}
    return door.client.post("/webhooks/acme", data=body, environ_overrides=environ).status_code


SPOILT: list[Callable[[str], str]] = [
    lambda value: "",
    lambda value: f"{value},{value}",  # what a header that is sent twice becomes
    lambda value: value[:-1],
    lambda value: value + "\xe9",
    lambda value: value + "\0",
    lambda value: "\x80" * 9,
    lambda value: value * 2000,
    lambda value: "=,;|" * 50,
    lambda value: "\u0661\u0662".encode().decode("latin-1"),
    lambda value: "9" * 400,
    lambda value: "-1",
    lambda value: "nan",
    lambda value: "v1=" + "," * 3000,
    lambda value: "https://[",
    lambda value: "%zz",
]
"""What becomes of a header's value on the way, or in bad hands."""


def test_every_provider_is_looked_at() -> None:
    """The tests below take all of them."""
    assert set(EVERY) == set(names())


@pytest.mark.parametrize("name", EVERY)
def test_no_header_and_no_body_is_a_fault(door: Door, name: str) -> None:
    """Each header of a good request missing or spoilt, and bodies of every sort under the good headers and
    under none: refused by name, and a 503 only where a certificate is named that cannot be had.
    """
    source, headers, body, now = good(name)
    requests = [({}, body), (headers, body)]
    for header, value in headers.items():
        requests.append(({key: kept for key, kept in headers.items() if key != header}, body))
        requests += [({**headers, header: spoil(value)}, body) for spoil in SPOILT]
    requests += [(sent, other) for other in [*BODIES, body[:-1], body * 2] for sent in (headers, {})]

    answers = {post(door, source, sent, other, now) for sent, other in requests}

    assert answers <= ANSWERED | ({503} if name in ("paypal", "bkash") else set())
    assert len(answers) > 1


@pytest.mark.parametrize("name", EVERY)
def test_no_signed_body_is_a_fault(door: Door, name: str) -> None:
    """Fields of a true event replaced by anything, and bodies of every sort, rightly signed: stored, or
    refused by name, whatever the database thinks of such text.
    """
    now = datetime.now(UTC).timestamp()
    source, _, body, _ = good(name)
    if name in OPTIONS:
        source = replace(source, secrets=(Secret("env:S", SECRETS[name]),), options=OPTIONS[name])
        body = payload(f"{name}-succeeded")
    secret = source.secrets[0].value if source.secrets else ""
    if name == "midtrans_snapbi":
        secret, public = SECRETS["paypal"], public_key(SECRETS["paypal"])
        source = replace(source, secrets=(Secret("env:S", public),))
    spoken = provider_of(source)
    bodies = [*BODIES, *spoilt(body)]
    if secret.startswith("-----"):
        # A private key is read for each signature, which takes its time.
        bodies = bodies[::7]
    answers = Counter[int]()
    for number, other in enumerate(bodies):
        try:
            request = spoken.sign_request(secret, other, now, f"msg_{number}", source.options)
        except ValueError:
            # Signed inside a body that is none: nobody can send that.
            continue
        answers[post(door, source, dict(request.headers), request.body, now)] += 1

    assert set(answers) <= ANSWERED
    assert name in ("braintree", "mollie_classic") or answers[spoken.answers.accepted] > 1


def spoilt(body: bytes) -> Iterator[bytes]:
    """A JSON body or a form with one field after the other holding something else."""
    if body[:1] == b"{":
        document = json.loads(body)
        for number, path in enumerate(leaves(document)):
            for value in VALUES[number % 5 :: 5]:
                yield json.dumps(changed(document, path, value)).encode()
    else:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
        texts = [value for value in VALUES if isinstance(value, str) and value != LONE]
        for number, name in enumerate(fields):
            yield urlencode({**fields, name: texts[number % len(texts)]}).encode()


def public_key(private: str) -> str:
    """The public half of a private key, both in PEM."""
    key = load_pem_private_key(private.encode(), None).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
