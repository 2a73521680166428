"""Whether a request was signed: the checks in their order, and the reason of a refusal.

The order is part of the promise. A MAC is compared before the age of the timestamp is judged, so that
``timestamp_too_old`` and a measured skew always speak of a message whose MAC was right: a stranger's
junk cannot make an operator believe that a clock drifts.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from receiver.signature.scheme import (
    BLANKS,
    HeaderMap,
    KeyValues,
    MacScheme,
    Plain,
    SignatureList,
    Timestamp,
    encode_digest,
    key_bytes,
    signed_message,
    wire_bytes,
)

MAX_SIGNATURES = 16
"""Signatures read in one header; more are refused unread, so that a forged post costs bounded work."""

MAX_HEADER = 8192
"""Characters of a signature header that are looked at; what is longer is refused unread."""

MAX_SKEW = 10**9
"""A measured skew is cut to this many seconds, which any integer column takes."""

SECOND_DIGITS = 12
MILLISECOND_DIGITS = 15
READABLE_DIGITS = 20
"""Timestamps of more digits are malformed; those between (milliseconds sent where seconds are asked)
are read only to be refused as outside the window, which tells the operator more."""


@dataclass(frozen=True, slots=True)
class Match:
    """The signature holds under the secret at ``secret_index``."""

    secret_index: int


@dataclass(frozen=True, slots=True)
class Unverified:
    """Refused. ``reason`` is a stable code for operators, never for the sender.

    ``missing_signature`` · ``malformed_signature`` · ``signature_version`` (only entries of versions
    that are not spoken here) · ``too_many_signatures`` · ``missing_header`` · ``missing_timestamp`` ·
    ``malformed_timestamp`` · ``unusable_secret`` · ``wrong_encoding`` (the right MAC, spelt otherwise) ·
    ``signature`` · ``timestamp_too_old`` · ``timestamp_in_future``. ``skew_seconds`` (positive where
    the sender is ahead) is given with the last two alone, where the MAC was right.
    """

    reason: str
    skew_seconds: int | None = None


def verify(
    scheme: MacScheme,
    secrets: Sequence[str],
    headers: HeaderMap,
    body: bytes,
    unix_now: float,
    *,
    tolerance: int | None = None,
    timestamp_required: bool | None = None,
    config: Mapping[str, object] | None = None,
) -> Match | Unverified:
    """Whether ``body`` was signed with one of ``secrets``. No input raises.

    ``tolerance`` (seconds) replaces the scheme's window on the sides that it checks;
    ``timestamp_required`` replaces the scheme's word where the timestamp is not signed.
    """
    return verify_by(
        lambda candidates, message: _compare(scheme, secrets, candidates, message),
        scheme,
        headers,
        body,
        unix_now,
        tolerance=tolerance,
        timestamp_required=timestamp_required,
        config=config,
    )


def verify_by(
    compare: Callable[[list[str], bytes], Match | Unverified],
    scheme: MacScheme,
    headers: HeaderMap,
    body: bytes,
    unix_now: float,
    *,
    tolerance: int | None = None,
    timestamp_required: bool | None = None,
    config: Mapping[str, object] | None = None,
) -> Match | Unverified:
    """As `verify`, where ``compare`` judges the signatures of the header over the signed bytes: for
    schemes whose frame is a MAC's, but whose keys are public. ``compare`` must not raise.
    """
    found = _find(scheme, headers, timestamp_required)
    if isinstance(found, Unverified):
        return found
    candidates, stamp = found
    message = signed_message(scheme, headers, body, stamp, config or {})
    if isinstance(message, str):
        return Unverified(message)
    verdict = compare(candidates, message)
    if isinstance(verdict, Match) and stamp and scheme.timestamp:
        return _outside_window(scheme.timestamp, stamp, unix_now, tolerance) or verdict
    return verdict


def _find(
    scheme: MacScheme, headers: HeaderMap, timestamp_required: bool | None
) -> tuple[list[str], str] | Unverified:
    """The signatures to compare and the timestamp's digits ("" where there is none)."""
    value = (headers.get(scheme.header) or "").strip(BLANKS)
    if not value:
        return Unverified("missing_signature")
    if len(value) > MAX_HEADER:
        return Unverified("malformed_signature" if isinstance(scheme.parse, Plain) else "too_many_signatures")
    entries = _entries(scheme.parse, value)
    if isinstance(entries, Unverified):
        return entries
    if scheme.timestamp is None:
        return entries, ""
    stamp = _stamp(scheme, scheme.timestamp, headers, value)
    if stamp is None:
        required = scheme.timestamp.required if timestamp_required is None else timestamp_required
        return Unverified("missing_timestamp") if required or scheme.signs_timestamp else (entries, "")
    if not (0 < len(stamp) <= READABLE_DIGITS and stamp.isascii() and stamp.isdigit()):
        return Unverified("malformed_timestamp")
    return entries, stamp


def _stamp(scheme: MacScheme, timestamp: Timestamp, headers: HeaderMap, value: str) -> str | None:
    """The timestamp as it stands; blanks round a header's are cut, but a pair's is digits alone,
    whatever a lenient parser would read. Two that differ are "", which is malformed.
    """
    if timestamp.header is not None:
        stamp = headers.get(timestamp.header)
        return None if stamp is None else stamp.strip(BLANKS)
    stamps = _pairs(scheme.parse, value, timestamp.key or "") if isinstance(scheme.parse, KeyValues) else []
    if not stamps:
        return None
    return stamps[0] if len(set(stamps)) == 1 else ""


def _entries(parse: Plain | SignatureList | KeyValues, value: str) -> list[str] | Unverified:
    if isinstance(parse, Plain):
        if parse.prefix and value.startswith(parse.prefix):
            return [value[len(parse.prefix) :].strip(BLANKS)]
        return Unverified("malformed_signature") if parse.prefix_required else [value]
    if value.count(parse.separator) > 4 * MAX_SIGNATURES:
        return Unverified("too_many_signatures")
    if isinstance(parse, KeyValues):
        found = _values(parse, value, parse.key)
        mark = "="
    else:
        pieces = [piece.strip(BLANKS) for piece in value.split(parse.separator)]
        found = [p[len(parse.prefix) :].strip(BLANKS) for p in pieces if p.startswith(parse.prefix)]
        mark = parse.prefix[-1:]
    if len(found) > MAX_SIGNATURES:
        return Unverified("too_many_signatures")
    if not found:
        return Unverified("signature_version" if mark in value.rstrip("=") else "malformed_signature")
    return found


def _values(parse: KeyValues, value: str, key: str) -> list[str]:
    return [text.strip(BLANKS) for text in _pairs(parse, value, key)]


def _pairs(parse: KeyValues, value: str, key: str) -> list[str]:
    pairs = (piece.partition("=") for piece in value.split(parse.separator))
    return [text for name, mark, text in pairs if mark and name.strip(BLANKS) == key]


def _compare(
    scheme: MacScheme, secrets: Sequence[str], candidates: list[str], message: bytes
) -> Match | Unverified:
    if scheme.any_case and scheme.encoding == "hex":
        candidates = [candidate.lower() if candidate.isascii() else candidate for candidate in candidates]
    offered = [wire_bytes(candidate) for candidate in candidates]
    digests: list[bytes] = []
    for index, secret in enumerate(secrets):
        key = key_bytes(scheme, secret)
        if key is None:
            continue
        digest = hmac.digest(key, message, scheme.algorithm)
        digests.append(digest)
        expected = encode_digest(scheme, digest)
        for candidate in offered:
            if hmac.compare_digest(candidate, expected):
                return Match(index)
    if not digests:
        return Unverified("unusable_secret")
    if any(_otherwise_spelt(candidate, digests) for candidate in candidates):
        return Unverified("wrong_encoding")
    shaped = any(scheme.shape.fullmatch(candidate) for candidate in candidates)
    return Unverified("signature" if shaped else "malformed_signature")


def _otherwise_spelt(candidate: str, digests: list[bytes]) -> bool:
    """Whether the text is one of ``digests`` in another encoding: the sender errs in spelling alone."""
    if not (26 <= len(candidate) <= 128 and candidate.isascii()):
        return False
    spelt: list[bytes] = []
    bare = candidate.rstrip("=").replace("-", "+").replace("_", "/")
    with suppress(ValueError):
        spelt.append(bytes.fromhex(candidate))
    with suppress(ValueError):
        spelt.append(base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True))
    return any(hmac.compare_digest(one, digest) for one in spelt for digest in digests)


def _outside_window(
    timestamp: Timestamp, stamp: str, unix_now: float, tolerance: int | None
) -> Unverified | None:
    most = SECOND_DIGITS if timestamp.unit == "s" else MILLISECOND_DIGITS
    signed_at = int(stamp) if timestamp.unit == "s" else int(stamp) // 1000
    # Whole seconds on both sides, so that the last second of the window is inside it.
    skew = signed_at - int(unix_now)
    shown = max(-MAX_SKEW, min(MAX_SKEW, skew))
    past = tolerance if tolerance is not None and timestamp.past is not None else timestamp.past
    future = tolerance if tolerance is not None and timestamp.future is not None else timestamp.future
    if len(stamp) > most or (future is not None and skew > future):
        return Unverified("timestamp_in_future", shown)
    if past is not None and -skew > past:
        return Unverified("timestamp_too_old", shown)
    return None
