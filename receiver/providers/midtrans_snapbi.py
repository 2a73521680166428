"""``midtrans_snapbi``: Bank Indonesia's SNAP as Midtrans speaks it, RSA-SHA256 under Midtrans' public key.

Signed are the path that was called, the whole body (its blanks taken away) and the timestamp, which no
SDK holds to a window. The path is the configured one (``options.notification_url``), not what a proxy
leaves of it; by default that of the source. Retries carry no id: reference and status stand for one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta, timezone
from urllib.parse import urlsplit

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.authentication import Options, SignedRequest, Verified, key_id
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import CompositeId
from receiver.providers.paths import TRANSACTION
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.providers.public_keys import outside_window, rsa_public_key, rsa_refusal, rsa_signature
from receiver.providers.strict_json import Unreadable, parse_object
from receiver.settings import Source
from receiver.signature import BLANKS, HeaderMap, Unverified, wire_bytes

_JAKARTA = timezone(timedelta(hours=7))
_STRING_OR_BLANKS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[ \t\r\n]++', re.DOTALL)


def minified(body: bytes) -> bytes:
    """JSON without the blanks between its tokens; texts and numbers stay as they are spelt."""
    return _STRING_OR_BLANKS.sub(lambda found: found[0] if found[0][:1] == b'"' else b"", body)


@dataclass(frozen=True)
class SnapSignature:
    """``X-SIGNATURE`` over path, body and ``X-TIMESTAMP`` under one of the source's public keys (PEM).

    ``sign`` takes the private key.
    """

    needs_secret: bool = True
    key_form: str = "an RSA public key in PEM"

    def usable(self, secret: str) -> bool:
        return rsa_public_key(secret) is not None

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        given = (headers.get("X-SIGNATURE") or "").strip(BLANKS)
        stamp = (headers.get("X-TIMESTAMP") or "").strip(BLANKS)
        path = path_of(source.options, source.name)
        if path is None:
            return Unverified("missing_setting")
        if not given or not stamp:
            return Unverified("missing_timestamp" if given else "missing_signature")
        signed_at = facts.occurred_at(stamp)
        if signed_at is None:
            return Unverified("malformed_timestamp")
        message = _message(path, body, stamp)
        reason = "unusable_secret"
        for secret in source.secrets:
            refusal = rsa_refusal(rsa_public_key(secret.value), given, message, "sha256")
            if refusal is None:
                seconds = None if source.tolerance is None else source.tolerance.total_seconds()
                outside = outside_window(signed_at, unix_now, seconds)
                return outside or _readable(body) or Verified(key_id(secret))
            reason = refusal if refusal != "unusable_secret" else reason
        return Unverified(reason)

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        path, at = path_of(options, "midtrans_snapbi"), facts.unix_seconds(int(unix_now))
        if path is None or at is None:
            raise ValueError("cannot sign: options.notification_url is no URL, or the time is none")
        stamp = at.astimezone(_JAKARTA).isoformat()
        signature = rsa_signature(secret, _message(path, body, stamp), "sha256")
        sent = {"Content-Type": "application/json", "X-TIMESTAMP": stamp, "X-SIGNATURE": signature}
        return SignedRequest({**sent, **headers}, body)

    def faults(self, source: Source) -> list[str]:
        if path_of(source.options, source.name) is None:
            return [
                "options.notification_url must be the URL that Midtrans calls, such as https://…/webhooks/x"
            ]
        return []


def path_of(options: Options, source_name: str) -> str | None:
    """The path that is signed; None where the configured URL is none."""
    url = options.get("notification_url", f"https://receiver.invalid/webhooks/{source_name}")
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.path if parts.scheme in ("http", "https") and parts.netloc and parts.path else None


def _message(path: str, body: bytes, stamp: str) -> bytes:
    digest = hashlib.sha256(minified(body)).hexdigest()
    return b":".join((b"POST", path.encode("utf-8", "surrogatepass"), digest.encode(), wire_bytes(stamp)))


def _readable(body: bytes) -> Unverified | None:
    """The refusal of what is no JSON: without its blanks it could have been another's."""
    try:
        parse_object(body)
    except Unreadable:
        return Unverified("unreadable_body")
    return None


_STATUS = Where(
    order_reference=("originalPartnerReferenceNo",),
    transaction_id=("originalReferenceNo",),
    amount=("amount", "value"),
    currency=("amount", "currency"),
    account=("merchantId",),
    occurred_at=("additionalInfo", "paidTime"),
    unit=MAJOR_TEXT,
)
_PAID = replace(_STATUS, effect_id=TRANSACTION)

MIDTRANS_SNAPBI = Provider(
    name="midtrans_snapbi",
    authentication=SnapSignature(),
    identity=CompositeId(
        (("originalPartnerReferenceNo",), ("latestTransactionStatus",), ("originalReferenceNo",)),
        optional=(("latestTransactionStatus",),),
    ),
    body=BodyMap(
        type=("latestTransactionStatus",),
        meanings={
            "00": Meaning(Kind.SUCCEEDED, _PAID),
            "01": Meaning(Kind.PENDING, _STATUS),
            "02": Meaning(Kind.PENDING, _STATUS),
            "03": Meaning(Kind.PENDING, _STATUS),
            # The amount is the payment's and not the refund's, and no id tells one refund from another.
            "04": Meaning(Kind.REFUNDED, replace(_STATUS, amount=None)),
            "05": Meaning(Kind.VOIDED, _PAID),
            "06": Meaning(Kind.FAILED, _STATUS),
        },
        otherwise=_STATUS,
    ),
    never_carries=frozenset({"live", "sequence"}),
    signed=("path", "body", "X-TIMESTAMP"),
    reference_option=True,
    option_names=frozenset({"notification_url"}),
)
