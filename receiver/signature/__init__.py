"""Message authentication codes over a template: how most providers sign, as a description.

Pure: bytes and texts in, a verdict out; no clock, settings or web framework. It leaves to the caller
which secrets are active, and how a verdict is answered; the sender never learns more than "no".
"""

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
from receiver.signature.signing import sign
from receiver.signature.verifying import Match, Unverified, verify, verify_by

__all__ = [
    "BLANKS",
    "HeaderMap",
    "KeyValues",
    "MacScheme",
    "Match",
    "Plain",
    "SignatureList",
    "Timestamp",
    "Unverified",
    "encode_digest",
    "key_bytes",
    "sign",
    "signed_message",
    "verify",
    "verify_by",
    "wire_bytes",
]
