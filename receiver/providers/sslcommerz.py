"""``sslcommerz``: an IPN form whose ``verify_key`` names the fields that ``verify_sign`` covers.

The digest runs over those fields and the hashed store password, sorted by name. A message may name
fewer fields: what is read must be among them, and everything else is dropped before reading. Where
``verify_sign_sha2`` is there it must hold too; ``options.digest = "sha2"`` demands it. The order's
amount is ``currency_amount`` in ``currency_type``: what the merchant asked for, not what it became in
taka. Times are Dhaka's and name no zone.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.authentication import Options, SignedRequest, Verified, key_id
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.envelopes import parse_form
from receiver.providers.identities import CompositeId
from receiver.providers.paths import TRANSACTION, Computed
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.providers.strict_json import RepeatingObject, Unreadable
from receiver.settings import Source
from receiver.signature import HeaderMap, Unverified

_DEMANDED = frozenset(
    {"tran_id", "amount", "status", "currency", "currency_type", "currency_amount", "store_id"}
)
_DIGESTS = {"verify_sign": ("md5", 32), "verify_sign_sha2": ("sha256", 64)}
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII)
_MOVED_BORDER = re.compile(r"&[^&=]*=")
"""A value that holds this could be two fields: the joined text has no escaping."""


def signed_fields(fields: Mapping[str, Any]) -> dict[str, str] | None:
    """The fields that the message says are signed, or None where it says so in no usable way."""
    named = str(fields.get("verify_key") or "").split(",")
    if not all(_NAME.fullmatch(name) for name in named) or not set(named) >= _DEMANDED:
        return None
    if not all(name in fields and not _MOVED_BORDER.search(fields[name]) for name in named):
        return None
    if isinstance(fields, RepeatingObject) and fields.repeated & {*named, "verify_key", *_DIGESTS}:
        return None
    return {name: fields[name] for name in named}


def _digest(algorithm: str, signed: Mapping[str, str], password: str) -> str:
    hashed = hashlib.new(algorithm, password.encode("utf-8", "surrogatepass")).hexdigest()
    pairs = sorted({**signed, "store_passwd": hashed}.items())
    joined = "&".join(f"{name}={value}" for name, value in pairs)
    return hashlib.new(algorithm, joined.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class SignedForm:
    """The form without the fields that nothing proves."""

    batch: bool = False

    def items(self, body: bytes) -> list[dict[str, Any]]:
        signed = signed_fields(parse_form(body))
        if signed is None:
            raise Unreadable("unsigned_fields", "verify_key does not name the fields that are read")
        return [dict(signed)]


@dataclass(frozen=True)
class StorePassword:
    """The digests of an IPN, under one of the store passwords."""

    needs_secret: bool = True
    key_form: str = "text"

    def usable(self, secret: str) -> bool:
        return bool(secret)

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        try:
            fields = parse_form(body)
        except Unreadable:
            return Unverified("unreadable_body")
        given = {name: fields[name] for name in _DIGESTS if name in fields}
        if not given.get("verify_sign") or (
            source.options.get("digest") == "sha2" and "verify_sign_sha2" not in given
        ):
            return Unverified("missing_signature")
        if not all(re.fullmatch(f"[0-9a-f]{{{_DIGESTS[name][1]}}}", sign) for name, sign in given.items()):
            return Unverified("malformed_signature")
        signed = signed_fields(fields)
        if signed is None:
            return Unverified("ambiguous_field")
        for secret in source.secrets:
            if all(
                hmac.compare_digest(_digest(_DIGESTS[name][0], signed, secret.value), sign)
                for name, sign in given.items()
            ):
                return Verified(key_id(secret))
        return Unverified("signature")

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        try:
            fields = parse_form(body)
        except Unreadable as error:
            raise ValueError("cannot sign: the body is no form") from error
        signed = {name: value for name, value in fields.items() if not name.startswith("verify_")}
        signature = {name: _digest(algorithm, signed, secret) for name, (algorithm, _) in _DIGESTS.items()}
        form = urlencode({**signed, **signature, "verify_key": ",".join(sorted(signed))})
        return SignedRequest({"Content-Type": "application/x-www-form-urlencoded", **headers}, form.encode())

    def faults(self, source: Source) -> list[str]:
        found = []
        if source.options.get("digest") not in (None, "sha2"):
            found.append('options.digest can only be "sha2": then verify_sign_sha2 is demanded')
        if source.options.get("read_back") not in (None, True, False):
            found.append("options.read_back must be true or false")
        if source.options.get("read_back") is True and "order_reference" in source.options:
            found.append("options.read_back asks by tran_id: order_reference must be left out")
        return found


def _first(bank: object, ours: object) -> object:
    return ours if bank is None else bank


_WHERE = Where(
    order_reference=("tran_id",),
    # An attempt that never reached a bank has no other name than the order's.
    transaction_id=Computed("bank_tran_id or tran_id", (("bank_tran_id",), ("tran_id",)), _first),
    amount=("currency_amount",),
    currency=("currency_type",),
    account=("store_id",),
    occurred_at=("tran_date",),
    unit=MAJOR_TEXT,
    time=facts.local_time(6),
)
_PAID = replace(_WHERE, effect_id=TRANSACTION)


def _described(spoken: Provider, options: Options) -> Provider:
    """Read back where the source wants it, as SSLCommerz asks of every merchant."""
    plain = replace(spoken, described=None)
    return replace(plain, confirm_by_fetch=options.get("read_back") is True).of_source(options)


SSLCOMMERZ = Provider(
    name="sslcommerz",
    authentication=StorePassword(),
    identity=CompositeId(
        (("tran_id",), ("status",), ("val_id",), ("bank_tran_id",)),
        optional=(("val_id",), ("bank_tran_id",)),
    ),
    body=BodyMap(
        type=("status",),
        meanings={
            "VALID": Meaning(Kind.SUCCEEDED, _PAID),
            "VALIDATED": Meaning(Kind.SUCCEEDED, _PAID),
            "PENDING": Meaning(Kind.PENDING, _WHERE),
            "FAILED": Meaning(Kind.FAILED, _WHERE),
            "CANCELLED": Meaning(Kind.FAILED, _WHERE),
            "EXPIRED": Meaning(Kind.FAILED, _WHERE),
            "UNATTEMPTED": Meaning(Kind.FAILED, _WHERE),
        },
        otherwise=_WHERE,
        blanks_absent=True,
    ),
    envelope=SignedForm(),
    never_carries=frozenset({"live", "sequence"}),
    signed=("the fields that verify_key names",),
    reference_option=True,
    option_names=frozenset({"digest", "read_back"}),
    described=_described,
)
