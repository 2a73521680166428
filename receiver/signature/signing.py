"""Signing: what a sender does, for the sending half, for trying out and for tests."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

from receiver.signature.scheme import (
    MacScheme,
    Plain,
    SignatureList,
    encode_digest,
    key_bytes,
    signed_message,
)


def sign(
    scheme: MacScheme,
    secrets: Sequence[str],
    body: bytes,
    unix_now: float,
    headers: Mapping[str, str] | None = None,
    config: Mapping[str, object] | None = None,
) -> dict[str, str]:
    """The headers that make ``body`` verify: ``headers`` as given, the timestamp's and the signature's.

    Several secrets give several signatures, where the header has room for them. Raises ValueError for
    a secret that the scheme cannot use, a missing header or setting, or too many secrets.
    """
    signed = dict(headers or {})
    stamp = ""
    if scheme.timestamp is not None:
        stamp = str(int(unix_now) if scheme.timestamp.unit == "s" else int(unix_now * 1000))
        if scheme.timestamp.header is not None:
            signed[scheme.timestamp.header] = stamp
    message = signed_message(scheme, signed, body, stamp, config or {})
    if isinstance(message, str):
        raise ValueError(f"cannot sign: {message}")  # noqa: TRY004 (a reason code, no wrong type)
    keys = [key_bytes(scheme, secret) for secret in secrets]
    if not keys or None in keys or (len(keys) > 1 and isinstance(scheme.parse, Plain)):
        raise ValueError("cannot sign: no secret, an unusable one, or more than the header holds")
    values = [
        encode_digest(scheme, hmac.digest(key, message, scheme.algorithm)).decode() for key in keys if key
    ]
    signed[scheme.header] = _join(scheme, values, stamp)
    return signed


def _join(scheme: MacScheme, values: list[str], stamp: str) -> str:
    parse = scheme.parse
    if isinstance(parse, Plain):
        return parse.prefix + values[0]
    if isinstance(parse, SignatureList):
        return parse.separator.join(parse.prefix + value for value in values)
    pairs = [f"{parse.key}={value}" for value in values]
    if scheme.timestamp is not None and scheme.timestamp.key is not None:
        pairs.insert(0, f"{scheme.timestamp.key}={stamp}")
    return parse.separator.join(pairs)
