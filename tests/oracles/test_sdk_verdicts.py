"""Our verdict beside that of each provider's own SDK, on generated bodies and damaged headers.

The SDKs are the extra `oracle`; nothing needs them at run time. A difference is a failure unless it stands in
`DELIBERATE` by name, with the reason; one that stands there and is never seen is a failure too.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import Headers

from receiver.providers.authentication import Verified
from receiver.providers.registry import provider
from receiver.settings import Secret, Source

NOW = 1_790_000_000
WINDOW = 300
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ADYEN_KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
SQUARE_URL = "https://inbox.example/webhooks/square"

Sent = Mapping[str, str]


def _stripe(headers: Sent, body: bytes, secret: str) -> bool:
    stripe: Any = importlib.import_module("stripe")
    text = body.decode("utf-8")
    return bool(stripe.WebhookSignature.verify_header(text, headers.get("Stripe-Signature"), secret, WINDOW))


def _standard(headers: Sent, body: bytes, secret: str) -> bool:
    module: Any = importlib.import_module("standardwebhooks")
    module.Webhook(secret).verify(body, dict(headers))
    return True


def _svix(headers: Sent, body: bytes, secret: str) -> bool:
    module: Any = importlib.import_module("svix.webhooks")
    renamed = {name.lower().replace("webhook-", "svix-"): value for name, value in headers.items()}
    module.Webhook(secret).verify(body, renamed)
    return True


def _adyen(_headers: Sent, body: bytes, secret: str) -> bool:
    module: Any = importlib.import_module("Adyen.util")
    return bool(module.is_valid_hmac_notification(json.loads(body), secret))


def _square(headers: Sent, body: bytes, secret: str) -> bool:
    module: Any = importlib.import_module("square.utils.webhooks_helper")
    return bool(
        module.verify_signature(
            request_body=body.decode("utf-8"),
            signature_header=headers["x-square-hmacsha256-signature"],
            signature_key=secret,
            notification_url=SQUARE_URL,
        )
    )


def _razorpay(headers: Sent, body: bytes, secret: str) -> bool:
    module: Any = importlib.import_module("razorpay.utility")
    signature = headers["X-Razorpay-Signature"]
    return bool(module.Utility().verify_webhook_signature(body.decode("utf-8"), signature, secret))


def _paddle(headers: Sent, body: bytes, secret: str) -> bool:
    module: Any = importlib.import_module("paddle_billing.Notifications")
    request = SimpleNamespace(headers=headers, body=body)
    return bool(module.Verifier(WINDOW).verify(request, module.Secret(secret)))


def _mollie(headers: Sent, body: bytes, secret: str) -> bool:
    module: Any = importlib.import_module("mollie.utils.webhooks.signature_validator")
    signature = headers.get("X-Mollie-Signature")
    return bool(module.SignatureValidator.validate(body.decode("utf-8"), secret, signature))


def _gocardless(headers: Sent, body: bytes, secret: str) -> bool:
    module: Any = importlib.import_module("gocardless_pro.webhooks")
    module.parse(body, secret, headers["Webhook-Signature"])
    return True


@dataclass(frozen=True)
class Oracle:
    """An SDK: how it is asked, the header that carries the signature ("" where the body does), whether the
    time is signed.
    """

    speaks: str
    module: str
    ask: Callable[[Sent, bytes, str], bool]
    secret: str
    header: str
    timed: bool = False


ORACLES = {
    "stripe": Oracle("stripe", "stripe", _stripe, "whsec_LvOIoqsbf8idps", "Stripe-Signature", timed=True),
    "standardwebhooks": Oracle(
        "standard", "standardwebhooks", _standard, WHSEC, "webhook-signature", timed=True
    ),
    "svix": Oracle("standard", "svix", _svix, WHSEC, "webhook-signature", timed=True),
    "Adyen": Oracle("adyen", "Adyen", _adyen, ADYEN_KEY, ""),
    "squareup": Oracle("square", "square", _square, "signature-key", "x-square-hmacsha256-signature"),
    "razorpay": Oracle("razorpay", "razorpay", _razorpay, "a webhook secret", "X-Razorpay-Signature"),
    "paddle": Oracle("paddle", "paddle_billing", _paddle, "pdl_ntfset_01_s", "Paddle-Signature", timed=True),
    "mollie": Oracle("mollie", "mollie", _mollie, "a signing secret", "X-Mollie-Signature"),
    "gocardless": Oracle("gocardless", "gocardless_pro", _gocardless, "gc_secret", "Webhook-Signature"),
}  # fmt: skip

DAMAGES: dict[str, Callable[[str], str | None]] = {
    "none": lambda value: value,
    "missing": lambda value: None,
    "empty": lambda value: "",
    "last character dropped": lambda value: value[:-1],
    "last character changed": lambda value: value[:-1] + ("A" if value[-1] != "A" else "B"),
    "other letters appended": lambda value: value + "zz",
    "blank before": lambda value: " " + value,
    "upper case": lambda value: value.upper(),
    "said twice": lambda value: value + "," + value,
    "not ASCII": lambda value: value + "\u00e9",
    "nothing but a comma": lambda value: ",",
    "text": lambda value: "signature",
}
"""What is done to the signature's header."""

BODIES = {"none", "one byte more", "another body", "a byte that is no UTF-8"}

_BLANKS = "HTTP lets blanks stand round a header's value, and proxies may leave them"
_LENIENT = "the SDK's base64 reader drops what stands behind the padding; we read nothing that nobody wrote"
_JOINED = "two headers joined by a comma, as HTTP allows: one right h1 over the one ts is enough"

DELIBERATE: dict[tuple[str, str], str] = {
    **{(sdk, "blank before"): _BLANKS for sdk in ORACLES if sdk != "Adyen"},
    ("standardwebhooks", "other letters appended"): _LENIENT,
    ("svix", "other letters appended"): _LENIENT,
    ("paddle", "said twice"): _JOINED,
}
"""(SDK, what was done): why our verdict is another one."""

_texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=12)
_documents = st.dictionaries(_texts, st.none() | st.booleans() | st.integers() | _texts, max_size=4)
_safe = st.text(st.sampled_from("ABCabc019-_. é"), min_size=1, max_size=10)


def _items(draw: Any) -> bytes:
    """A notification of Adyen's, with the signature's place empty."""
    item = {
        "pspReference": draw(_safe),
        "merchantAccountCode": draw(_safe),
        "merchantReference": draw(_safe),
        "amount": {"value": draw(st.integers(0, 10**12)), "currency": "EUR"},
        "eventCode": draw(st.sampled_from(["AUTHORISATION", "REFUND"])),
        "success": draw(st.sampled_from(["true", "false"])),
        "additionalData": {"hmacSignature": ""},
    }
    if draw(st.booleans()):
        item["originalReference"] = draw(_safe)
    return json.dumps({"live": "false", "notificationItems": [{"NotificationRequestItem": item}]}).encode()


@st.composite
def requests_of(draw: Any, oracle: Oracle) -> tuple[str, dict[str, str], bytes]:
    """A well signed request, and what was done to it: its name, headers, body."""
    if oracle.speaks == "adyen":
        plain = _items(draw)
    elif oracle.speaks == "gocardless":
        plain = json.dumps({"events": [], **draw(_documents)}).encode()
    else:
        plain = json.dumps(draw(_documents), ensure_ascii=draw(st.booleans())).encode()
    skew = (
        draw(st.sampled_from([0, 0, 0, -WINDOW + 1, -WINDOW, -WINDOW - 1, WINDOW - 1, WINDOW, WINDOW + 1]))
        if oracle.timed
        else 0
    )
    spoken = provider(oracle.speaks)
    options = {"notification_url": SQUARE_URL} if oracle.speaks == "square" else {}
    signed = spoken.sign_request(oracle.secret, plain, NOW + skew, "msg_1", options)
    headers, body, done = dict(signed.headers), signed.body, []
    if skew and abs(skew) > WINDOW:
        done.append("too old" if skew < 0 else "too new")
    damage = draw(st.sampled_from(sorted(DAMAGES)))
    if damage != "none" and not done:
        body = _damaged(headers, body, oracle, damage)
        done.append(damage)
    other = draw(st.sampled_from(sorted(BODIES)))
    if other != "none" and not done:
        body = {
            "one byte more": body + b" ",
            "another body": b'{"events": []}',
            "a byte that is no UTF-8": body[:-1] + b"\xff}",
        }[other]
        done.append(other)
    return (done or ["nothing"])[0], headers, body


def _damaged(headers: dict[str, str], body: bytes, oracle: Oracle, damage: str) -> bytes:
    if not oracle.header:
        document = json.loads(body)
        kept = document["notificationItems"][0]["NotificationRequestItem"]["additionalData"]
        value = DAMAGES[damage](kept["hmacSignature"])
        if value is None:
            del kept["hmacSignature"]
        else:
            kept["hmacSignature"] = value
        return json.dumps(document).encode()
    name = next(name for name in headers if name.lower() == oracle.header.lower())
    value = DAMAGES[damage](headers.pop(name))
    if value is not None:
        headers[name] = value
    return body


def _theirs(oracle: Oracle, headers: Sent, body: bytes) -> bool:
    # SDKs look the header up as their documentation spells it.
    wanted = oracle.header.lower()
    spelt = {oracle.header if name.lower() == wanted else name: headers[name] for name in headers}
    try:
        return oracle.ask(spelt, body, oracle.secret)
    except Exception:
        # Whatever an SDK raises is its way to refuse.
        return False


def _ours(oracle: Oracle, headers: Sent, body: bytes) -> bool:
    options = {"notification_url": SQUARE_URL} if oracle.speaks == "square" else {}
    source = Source(
        "acme",
        oracle.speaks,
        (Secret("env:S", oracle.secret),),
        tolerance=timedelta(seconds=WINDOW) if oracle.timed else None,
        options=options,
    )
    return isinstance(provider(oracle.speaks).verify(source, Headers(headers), body, NOW), Verified)


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_our_verdict_is_the_sdks(name: str) -> None:
    """On every generated request the two agree, but for the differences that we chose by name."""
    oracle = ORACLES[name]
    pytest.importorskip(oracle.module, reason="pip install -e '.[oracle]'")
    accepted, seen = [0], set()

    @settings(max_examples=250, deadline=None, derandomize=True, database=None)
    @given(requests_of(oracle))
    def compare(request: tuple[str, dict[str, str], bytes]) -> None:
        done, headers, body = request
        with time_machine.travel(NOW, tick=False):
            theirs, ours = _theirs(oracle, headers, body), _ours(oracle, headers, body)
        accepted[0] += ours
        if ours != theirs:
            assert (name, done) in DELIBERATE, f"{done}: ours {ours}, theirs {theirs}: {headers} {body!r}"
            seen.add(done)

    compare()

    assert accepted[0] >= 20
    assert seen == {done for sdk, done in DELIBERATE if sdk == name}
