"""``braintree``: XML in base64 in a form, with an HMAC-SHA1 under a pair of API keys.

A secret is ``public_key|private_key``; the key is the SHA-1 of the private one. The form's fields are
signed as they stand, newlines included. A GET with ``bt_challenge`` asks whether we hold the keys.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.authentication import Options, SignedRequest, Verified, key_id
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.envelopes import parse_form
from receiver.providers.identities import CompositeId
from receiver.providers.paths import TRANSACTION, Computed
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.providers.strict_json import RepeatingObject, Unreadable
from receiver.providers.xml_text import parse_xml
from receiver.settings import Source
from receiver.signature import HeaderMap, Unverified

MAX_PAIRS = 16

_CHALLENGE = re.compile(r"[a-f0-9]{20,32}", re.ASCII)
_PAYLOAD = re.compile(r"[A-Za-z0-9+/=\n]+", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{40}", re.ASCII)


def _keys(secret: str) -> tuple[str, bytes] | None:
    """The public key, and the key of the HMAC."""
    public, bar, private = secret.partition("|")
    if not bar or not public or not private:
        return None
    return public, hashlib.sha1(private.encode("utf-8", "surrogatepass")).digest()  # noqa: S324 (the protocol's)


def _mac(key: bytes, text: str) -> str:
    return hmac.digest(key, text.encode(), "sha1").hex()


@dataclass(frozen=True)
class ApiKeys:
    """One of the signatures in ``bt_signature`` is right over ``bt_payload`` under a pair of ours."""

    needs_secret: bool = True
    key_form: str = "public_key|private_key"

    def usable(self, secret: str) -> bool:
        return _keys(secret) is not None

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        try:
            fields = parse_form(body)
        except Unreadable:
            return Unverified("unreadable_body")
        signatures, payload = fields.get("bt_signature"), fields.get("bt_payload")
        if not signatures or not payload:
            return Unverified("missing_signature")
        if isinstance(fields, RepeatingObject) and fields.repeated & {"bt_signature", "bt_payload"}:
            return Unverified("ambiguous_field")
        # A challenge's answer is such a signature too: what looks like one is nobody's message.
        if not _PAYLOAD.fullmatch(payload) or _CHALLENGE.fullmatch(payload.strip()):
            return Unverified("unreadable_body")
        if signatures.count("&") >= MAX_PAIRS:
            return Unverified("too_many_signatures")
        offered = [pair.partition("|")[::2] for pair in signatures.split("&")]
        for secret in source.secrets:
            if _holds(secret.value, offered, payload):
                return Verified(key_id(secret))
        shaped = any(public and _HEX.fullmatch(mac) for public, mac in offered)
        return Unverified("signature" if shaped else "malformed_signature")

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        keys = _keys(secret)
        if keys is None:
            raise ValueError("cannot sign: a secret is public_key|private_key")
        try:
            payload = (
                base64.encodebytes(body).decode()
                if body.lstrip()[:1] == b"<"
                else parse_form(body)["bt_payload"]
            )
        except (Unreadable, KeyError) as error:
            raise ValueError("cannot sign: the body is neither XML nor a form with bt_payload") from error
        form = urlencode({"bt_signature": f"{keys[0]}|{_mac(keys[1], payload)}", "bt_payload": payload})
        return SignedRequest({"Content-Type": "application/x-www-form-urlencoded", **headers}, form.encode())

    def faults(self, source: Source) -> list[str]:
        return []


def _holds(secret: str, offered: list[tuple[str, str]], payload: str) -> bool:
    keys = _keys(secret)
    if keys is None:
        return False
    # Some senders' forms lose the newline at the end, which is signed.
    expected = [_mac(keys[1], payload).encode(), _mac(keys[1], payload + "\n").encode()]
    return any(
        hmac.compare_digest(mac.encode("utf-8", "surrogatepass"), right)
        for public, mac in offered
        if public == keys[0]
        for right in expected
    )


def answer_challenge(source: Source, query: Mapping[str, str]) -> str | None:
    """``public_key|hmac`` over ``bt_challenge`` under the first pair of keys; None where none is asked."""
    challenge = query.get("bt_challenge", "")
    pairs = [keys for secret in source.secrets if (keys := _keys(secret.value)) is not None]
    if not pairs or not _CHALLENGE.fullmatch(challenge):
        return None
    return f"{pairs[0][0]}|{_mac(pairs[0][1], challenge)}"


@dataclass(frozen=True)
class XmlInForm:
    """The notification in the base64 of ``bt_payload``."""

    batch: bool = False

    def items(self, body: bytes) -> list[dict[str, Any]]:
        payload = parse_form(body).get("bt_payload")
        try:
            text = base64.b64decode(str(payload or "").replace("\n", ""), validate=True)
        except ValueError:
            raise Unreadable("not_base64", "bt_payload is not base64") from None
        name, document = parse_xml(text)
        if name != "notification":
            raise Unreadable("not_xml", "bt_payload is no notification")
        return [document]


_SUBJECTS = (
    ("transaction", "id"),
    ("dispute", "id"),
    ("subscription", "id"),
    ("disbursement", "id"),
    ("local-payment", "payment-id"),
    ("merchant-account", "id"),
)
_SUBJECT = Computed(
    "the id in subject",
    tuple(("subject", *path) for path in _SUBJECTS),
    lambda *ids: next((each for each in ids if each is not None), None),
)
_IN = ("subject", "transaction")
_STATUS = Where(
    order_reference=(*_IN, "order-id"),
    transaction_id=(*_IN, "id"),
    amount=(*_IN, "amount"),
    currency=(*_IN, "currency-iso-code"),
    occurred_at=("timestamp",),
    unit=MAJOR_TEXT,
)
_PAID = replace(_STATUS, effect_id=TRANSACTION)
_REFUND = replace(_STATUS, transaction_id=(*_IN, "refunded-transaction-id"), effect_id=(*_IN, "id"))
_AT = ("subject", "dispute")
_DISPUTE = replace(
    _STATUS,
    order_reference=(*_AT, "transaction", "order-id"),
    transaction_id=(*_AT, "transaction", "id"),
    amount=Computed(
        "amount-disputed or amount",
        ((*_AT, "amount-disputed"), (*_AT, "amount")),
        lambda disputed, older: older if disputed is None else disputed,
    ),
    currency=(*_AT, "currency-iso-code"),
    effect_id=(*_AT, "id"),
)
_SALE = (((*_IN, "type"), frozenset({"sale"})),)
_CREDIT = (((*_IN, "type"), frozenset({"credit"})),)

BRAINTREE = Provider(
    name="braintree",
    authentication=ApiKeys(),
    identity=CompositeId((("kind",), _SUBJECT, ("timestamp",)), optional=(_SUBJECT,)),
    body=BodyMap(
        type=("kind",),
        meanings={
            "transaction_settled": (
                Meaning(Kind.SUCCEEDED, _PAID, _SALE),
                Meaning(Kind.REFUNDED, _REFUND, _CREDIT),
            ),
            "transaction_settlement_declined": (
                Meaning(Kind.FAILED, _STATUS, _SALE),
                Meaning(Kind.REFUND_FAILED, _REFUND, _CREDIT),
            ),
            "refund_failed": Meaning(Kind.REFUND_FAILED, _REFUND),
            "dispute_opened": Meaning(Kind.DISPUTE_OPENED, _DISPUTE),
            "dispute_won": Meaning(Kind.DISPUTE_WON, _DISPUTE),
            "dispute_lost": Meaning(Kind.DISPUTE_LOST, _DISPUTE),
            "dispute_accepted": Meaning(Kind.DISPUTE_LOST, _DISPUTE),
            "dispute_auto_accepted": Meaning(Kind.DISPUTE_LOST, _DISPUTE),
        },
        otherwise=_STATUS,
        blanks_absent=True,
    ),
    envelope=XmlInForm(),
    never_carries=frozenset({"account", "live", "sequence"}),
    signed=("bt_payload",),
    reference_option=True,
    challenge=answer_challenge,
)
