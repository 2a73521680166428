"""Proofs by public keys: what RSA schemes share. The keys come from settings or certificates.

Nothing here raises for what a request holds; a setting that is no key is None.
"""

from __future__ import annotations

import base64
import re
from datetime import datetime
from functools import lru_cache
from typing import Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from receiver.signature import Unverified

Digest = Literal["sha1", "sha256"]

_DIGESTS = {"sha1": SHA1, "sha256": SHA256}
_BASE64 = re.compile(r"[A-Za-z0-9+/]{2,1366}={0,2}", re.ASCII)
"""Signatures of keys up to 8192 bits."""

_MOST_SKEW = 10**9


def shape_refusal(signature: object) -> str | None:
    """The reason why a text can be no signature under any key: for looking before a certificate is had."""
    if not isinstance(signature, str) or not signature:
        return "missing_signature"
    return None if _BASE64.fullmatch(signature) and len(signature) % 4 == 0 else "malformed_signature"


def rsa_refusal(key: object, signature: object, message: bytes, digest: Digest) -> str | None:
    """None where ``signature`` (base64) is the key's over ``message``, by PKCS #1 v1.5; else the reason."""
    reason = shape_refusal(signature)
    if reason is not None:
        return reason
    if not isinstance(key, RSAPublicKey):
        return "unusable_secret"
    try:
        key.verify(base64.b64decode(str(signature)), message, PKCS1v15(), _DIGESTS[digest]())
    except InvalidSignature:
        return "signature"
    return None


def rsa_signature(private_key: str, message: bytes, digest: Digest) -> str:
    """The signature in base64. Raises ValueError where the PEM text is no RSA private key."""
    try:
        key = load_pem_private_key(_pem(private_key), None)
    except (ValueError, TypeError) as error:
        raise ValueError("cannot sign: the secret is no private key in PEM") from error
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("cannot sign: the secret is no RSA key")  # noqa: TRY004 (a setting, no wrong type)
    return base64.b64encode(key.sign(message, PKCS1v15(), _DIGESTS[digest]())).decode()


@lru_cache(maxsize=64)
def rsa_public_key(text: str) -> RSAPublicKey | None:
    """The RSA key of a PEM text, whose lines may be parted by ``\\n`` as environment files write them."""
    try:
        key = load_pem_public_key(_pem(text))
    except Exception:
        # The library has errors of several families for what is no key.
        return None
    return key if isinstance(key, RSAPublicKey) else None


def outside_window(signed_at: datetime, unix_now: float, seconds: float | None) -> Unverified | None:
    """The refusal of a rightly signed message whose time lies further off than ``seconds``, both ways;
    None without a window.
    """
    if seconds is None:
        return None
    skew = int(signed_at.timestamp()) - int(unix_now)
    shown = max(-_MOST_SKEW, min(_MOST_SKEW, skew))
    if skew > seconds:
        return Unverified("timestamp_in_future", shown)
    return Unverified("timestamp_too_old", shown) if -skew > seconds else None


def _pem(text: str) -> bytes:
    return text.strip().replace("\\n", "\n").encode("utf-8", "surrogatepass")
