"""What a signature scheme is: a description of the header, the signed bytes and the key."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, Protocol

BLANKS = " \t"

_PLACEHOLDER = re.compile(r"\{(body|ts|header:[^{}]+|config:[^{}]+)\}")
_DIGEST_BYTES = {"sha1": 20, "sha256": 32, "sha512": 64}


class HeaderMap(Protocol):
    """What is asked of headers: a lookup that does not mind case. WSGI's texts are Latin-1."""

    def get(self, name: str, /) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Plain:
    """The header is the signature, after an optional or required ``prefix`` (``sha256=``)."""

    prefix: str = ""
    prefix_required: bool = False


@dataclass(frozen=True, slots=True)
class SignatureList:
    """Entries between ``separator``; those that begin with ``prefix`` (``v1=``, ``v1,``) count."""

    separator: str
    prefix: str


@dataclass(frozen=True, slots=True)
class KeyValues:
    """``key=value`` pairs between ``separator``, in any order; every ``key`` entry is a signature.

    Keys are compared exactly: ``V1`` is not ``v1``.
    """

    separator: str
    key: str


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Where the sender's time stands and how far it may lie from ours, in whole seconds, inclusive.

    Exactly one of ``header`` and ``key`` (of KeyValues) is set. A side that is None is not checked.
    """

    header: str | None = None
    key: str | None = None
    unit: Literal["s", "ms"] = "s"
    past: int | None = 300
    future: int | None = 300
    required: bool = True


@dataclass(frozen=True)
class MacScheme:
    """One way to sign: which header, over which bytes, with which key.

    ``template`` holds literals and ``{body}``, ``{ts}``, ``{header:NAME}``, ``{config:NAME}``. A header
    named in the template is required, and so is a timestamp. Hex is lower case, unless
    ``any_case``. ``key`` says how a secret's text becomes the key, after ``key_prefix`` where the secret
    begins with it.
    """

    header: str
    parse: Plain | SignatureList | KeyValues = Plain()
    template: str = "{body}"
    algorithm: Literal["sha1", "sha256", "sha512"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    key: Literal["text", "hex", "base64"] = "text"
    key_prefix: str = ""
    timestamp: Timestamp | None = None
    required_headers: tuple[str, ...] = ()
    any_case: bool = False
    parts: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    signs_timestamp: bool = field(init=False, repr=False, compare=False)
    needed_headers: tuple[str, ...] = field(init=False, repr=False, compare=False)
    shape: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = _template_parts(self.template)
        named = tuple(name for kind, name in parts if kind == "header")
        size = _DIGEST_BYTES[self.algorithm]
        padding = -size % 3
        length = (size + padding) // 3 * 4 - padding
        shape = (
            f"[0-9a-f]{{{2 * size}}}"
            if self.encoding == "hex"
            else f"[A-Za-z0-9+/]{{{length}}}={{{padding}}}"
        )
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "signs_timestamp", ("ts", "") in parts)
        object.__setattr__(self, "needed_headers", tuple(dict.fromkeys((*self.required_headers, *named))))
        object.__setattr__(self, "shape", re.compile(shape))
        if self.signs_timestamp and self.timestamp is None:
            raise ValueError("a template with {ts} needs a timestamp")
        if self.timestamp is not None and self.timestamp.key and not isinstance(self.parse, KeyValues):
            raise ValueError("a timestamp's key is one of KeyValues")


def key_bytes(scheme: MacScheme, secret: str) -> bytes | None:
    """The key that ``secret`` means under ``scheme``, or None where it is unusable (empty, not hex)."""
    return _key_bytes(scheme.key, scheme.key_prefix, secret)


@lru_cache(maxsize=1024)
def _key_bytes(kind: str, prefix: str, secret: str) -> bytes | None:
    text = secret.removeprefix(prefix)
    try:
        if kind == "text":
            return text.encode() or None
        if kind == "hex":
            return bytes.fromhex(text) or None
        # Secrets are often pasted without the padding at their end.
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True) or None
    except (ValueError, binascii.Error):
        return None


def signed_message(
    scheme: MacScheme, headers: HeaderMap, body: bytes, stamp: str, config: Mapping[str, object]
) -> bytes | str:
    values: dict[str, bytes] = {}
    for name in scheme.needed_headers:
        value = (headers.get(name) or "").strip(BLANKS)
        if not value:
            return "missing_header"
        values[name] = wire_bytes(value)
    if scheme.template == "{body}":
        return body
    pieces: list[bytes] = []
    for kind, name in scheme.parts:
        if kind == "body":
            pieces.append(body)
        elif kind == "ts":
            pieces.append(stamp.encode())
        elif kind == "header":
            pieces.append(values[name])
        elif kind == "config":
            setting = config.get(name)
            if not isinstance(setting, str) or not setting:
                return "missing_setting"
            pieces.append(setting.encode("utf-8", "surrogatepass"))
        else:
            pieces.append(name.encode())
    return b"".join(pieces)


def wire_bytes(text: str) -> bytes:
    """The bytes that stood on the wire: WSGI gives each as one Latin-1 character."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def encode_digest(scheme: MacScheme, digest: bytes) -> bytes:
    return (
        binascii.hexlify(digest) if scheme.encoding == "hex" else binascii.b2a_base64(digest, newline=False)
    )


def _template_parts(template: str) -> tuple[tuple[str, str], ...]:
    parts: list[tuple[str, str]] = []
    for index, piece in enumerate(_PLACEHOLDER.split(template)):
        kind, _, name = piece.partition(":") if index % 2 else ("literal", "", piece)
        if kind != "literal" or name:
            parts.append((kind, name))
    return tuple(parts)
