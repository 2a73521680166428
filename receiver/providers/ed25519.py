"""``v1a`` of Standard Webhooks: ed25519 signatures, verified with the sender's public key.

A secret that begins with ``whpk_`` is a public key and verifies ``v1a`` entries alone; every other is a
shared secret and verifies ``v1`` entries alone. So a public key, which anyone may know, is never used as
the key of an HMAC. The library is loaded when the first public key is used.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from receiver import signature
from receiver.providers.authentication import (
    MacAuthentication,
    Options,
    SignedRequest,
    Verified,
    key_id,
)
from receiver.settings import Source
from receiver.signature import HeaderMap, MacScheme, Match, SignatureList, Unverified

PUBLIC, PRIVATE = "whpk_", "whsk_"

_SIGNATURE = re.compile(r"[A-Za-z0-9+/]{86}==", re.ASCII)


@dataclass(frozen=True)
class MacOrPublicKey(MacAuthentication):
    """``v1`` by shared secret or ``v1a`` by public key, as each of the source's secrets is."""

    def usable(self, secret: str) -> bool:
        if secret.startswith(PUBLIC):
            return _public_key(secret) is not None
        return super().usable(secret)

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        public = tuple(s for s in source.secrets if s.value.startswith(PUBLIC))
        if not public:
            return super().verify(source, headers, body, unix_now)
        shared = tuple(s for s in source.secrets if not s.value.startswith(PUBLIC))
        if not shared and not any(self.usable(secret.value) for secret in public):
            return Unverified("unusable_secret")
        verdict: Verified | Unverified = Unverified("signature_version")
        if shared:
            verdict = super().verify(replace(source, secrets=shared), headers, body, unix_now)
        if isinstance(verdict, Verified) or verdict.skew_seconds is not None:
            return verdict
        keys = [_public_key(secret.value) for secret in public]
        found = signature.verify_by(
            lambda candidates, message: _compare(keys, candidates, message),
            _asymmetric(self._spoken(headers)),
            headers,
            body,
            unix_now,
            tolerance=None if source.tolerance is None else int(source.tolerance.total_seconds()),
        )
        if isinstance(found, Match):
            return Verified(key_id(public[found.secret_index]))
        # With keys of both kinds, the reason is that of the version which the sender spoke.
        return verdict if shared and found.reason == "signature_version" else found

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        if secret.startswith(PUBLIC):
            raise ValueError(f"cannot sign: a public key verifies alone; sign with {PRIVATE}")
        if not secret.startswith(PRIVATE):
            return super().sign(secret, headers, body, unix_now, options)
        scheme = self.schemes[0]
        name = scheme.timestamp.header if scheme.timestamp is not None else None
        stamp = str(int(unix_now))
        signed = {**headers, **({name: stamp} if name else {})}
        message = signature.signed_message(scheme, signed, body, stamp, options)
        if isinstance(message, str):
            raise ValueError(f"cannot sign: {message}")  # noqa: TRY004 (a reason code, no wrong type)
        made = base64.b64encode(_private_key(secret).sign(message)).decode()
        return SignedRequest({**signed, scheme.header: f"v1a,{made}"}, body)


@lru_cache(maxsize=8)
def _asymmetric(scheme: MacScheme) -> MacScheme:
    return replace(scheme, parse=SignatureList(separator=" ", prefix="v1a,"))


def _compare(keys: Sequence[Any], candidates: list[str], message: bytes) -> Match | Unverified:
    from cryptography.exceptions import InvalidSignature

    shaped = [base64.b64decode(each) for each in candidates if _SIGNATURE.fullmatch(each)]
    for index, key in enumerate(keys):
        for candidate in shaped if key is not None else ():
            try:
                key.verify(candidate, message)
            except InvalidSignature:
                continue
            return Match(index)
    return Unverified("signature" if shaped else "malformed_signature")


def _raw(secret: str, prefix: str) -> bytes:
    bare = secret.removeprefix(prefix).rstrip("=")
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)


@lru_cache(maxsize=64)
def _public_key(secret: str) -> Any:
    """The key of ``whpk_`` and base64 of 32 bytes, or None."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        return Ed25519PublicKey.from_public_bytes(_raw(secret, PUBLIC))
    except ValueError:
        return None


def _private_key(secret: str) -> Any:
    """The key of ``whsk_`` and base64: 32 bytes, or 64 with the public key behind. Raises ValueError."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(_raw(secret, PRIVATE)[:32])
