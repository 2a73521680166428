"""Proofs that say who speaks and nothing of what is said: a static token, or an unsigned hint.

Whoever has seen one request can send any other: providers that use these are confirmed by fetch.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

from receiver.providers.authentication import Options, SignedRequest, Verified, key_id
from receiver.providers.envelopes import parse_form
from receiver.providers.strict_json import RepeatingObject, Unreadable
from receiver.settings import Source
from receiver.signature import BLANKS, HeaderMap, Unverified, wire_bytes


@dataclass(frozen=True)
class TokenAuthentication:
    """The ``header`` is one of the source's secrets, compared exactly."""

    header: str
    needs_secret: bool = True
    key_form: str = "text"

    def usable(self, secret: str) -> bool:
        return bool(secret.strip(BLANKS))

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        given = (headers.get(self.header) or "").strip(BLANKS)
        if not given:
            return Unverified("missing_signature")
        offered = wire_bytes(given)
        found: Verified | Unverified = Unverified("signature")
        for secret in source.secrets:
            if self.usable(secret.value) and hmac.compare_digest(
                offered, secret.value.encode("utf-8", "surrogatepass")
            ):
                found = Verified(key_id(secret))
        return found

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        return SignedRequest({**headers, self.header: secret}, body)

    def faults(self, source: Source) -> list[str]:
        return []


@dataclass(frozen=True)
class UnsignedHint:
    """Nothing is signed: a form with an object's id, which must look like one, as it goes into a URL."""

    field: str
    pattern: str
    needs_secret: bool = False
    key_form: str = "text"

    def usable(self, secret: str) -> bool:
        return False

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        try:
            fields = parse_form(body)
        except Unreadable:
            return Unverified("unreadable_body")
        given = fields.get(self.field)
        if isinstance(fields, RepeatingObject) and self.field in fields.repeated:
            return Unverified("ambiguous_field")
        if not isinstance(given, str) or not re.fullmatch(self.pattern, given, re.ASCII):
            return Unverified("malformed_id")
        return Verified("unsigned")

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        return SignedRequest(dict(headers), body)

    def faults(self, source: Source) -> list[str]:
        return ["secrets have no effect: nothing is signed"] if source.secrets else []
