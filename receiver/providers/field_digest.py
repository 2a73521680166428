"""A digest over named fields of the parsed body, which holds the signature itself.

Fields are joined without escaping by those who do so: whoever moves the border between two fields keeps
the digest. So each field has a shape that cannot hold the join, but for one at most.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from receiver.providers.authentication import Options, SignedRequest, Verified, key_id
from receiver.providers.envelopes import Envelope, JsonItems
from receiver.providers.paths import Path
from receiver.providers.strict_json import Unreadable
from receiver.settings import Source
from receiver.signature import HeaderMap, MacScheme, Unverified, encode_digest, key_bytes


@dataclass(frozen=True)
class FieldDigest:
    """``fields``: the places that are signed, in order, with the shape (a pattern) of each value.

    Absent and null values are empty texts. ``scheme`` gives algorithm, encoding and the key's form;
    ``keyed``: an HMAC, or a plain digest with the secret at the end (``suffix``). Every item of a batch
    has a signature of its own, and all must hold.
    """

    envelope: Envelope
    signature: Path
    fields: tuple[tuple[Path, str], ...]
    join: str
    scheme: MacScheme
    keyed: Literal["hmac", "suffix"]
    needs_secret: bool = True
    _shapes: tuple[tuple[Path, re.Pattern[str]], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shapes = tuple((path, re.compile(shape, re.DOTALL | re.ASCII)) for path, shape in self.fields)
        object.__setattr__(self, "_shapes", shapes)

    @property
    def key_form(self) -> str:
        return self.scheme.key

    def usable(self, secret: str) -> bool:
        return key_bytes(self.scheme, secret) is not None

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        try:
            documents = self.envelope.items(body)
        except Unreadable:
            return Unverified("unreadable_body")
        verdict: Verified | Unverified = Unverified("unreadable_body")
        for document in documents:
            verdict = self._verify_one(source, document)
            if isinstance(verdict, Unverified):
                return verdict
        return verdict

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        try:
            document = json.loads(body)
            items = document
            if isinstance(self.envelope, JsonItems):
                for key in self.envelope.path:
                    items = items[key]
                items = [item[self.envelope.inside] if self.envelope.inside else item for item in items]
            else:
                items = [document]
            for item in items:
                self._put_signature(secret, item)
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError("cannot sign: the body has not the shape of this provider's") from error
        return SignedRequest({"Content-Type": "application/json", **headers}, json.dumps(document).encode())

    def faults(self, source: Source) -> list[str]:
        return []

    def _put_signature(self, secret: str, item: dict[str, Any]) -> None:
        message = self._message(item)
        digest = self._digest(secret, message) if message is not None else None
        if digest is None:
            raise ValueError("cannot sign: an unusable secret, or a field that cannot be signed")
        holder = item
        for key in self.signature[:-1]:
            holder = holder.setdefault(str(key), {})
        holder[str(self.signature[-1])] = digest.decode()

    def _verify_one(self, source: Source, document: Mapping[str, Any]) -> Verified | Unverified:
        given = _at(document, self.signature)
        if given is None or given == "":
            return Unverified("missing_signature")
        if not isinstance(given, str) or not self.scheme.shape.fullmatch(given):
            return Unverified("malformed_signature")
        message = self._message(document)
        if message is None:
            return Unverified("ambiguous_field")
        offered = given.encode()
        for secret in source.secrets:
            digest = self._digest(secret.value, message)
            if digest is not None and hmac.compare_digest(offered, digest):
                return Verified(key_id(secret))
        return Unverified(
            "signature" if any(self.usable(s.value) for s in source.secrets) else "unusable_secret"
        )

    def _message(self, document: Mapping[str, Any]) -> bytes | None:
        pieces: list[str] = []
        for path, shape in self._shapes:
            value = _at(document, path)
            if value is None:
                text = ""
            elif isinstance(value, bool):
                text = "true" if value else "false"
            elif isinstance(value, str) or type(value) is int:
                text = str(value)
            else:
                return None
            if shape.fullmatch(text) is None:
                return None
            pieces.append(text)
        return self.join.join(pieces).encode("utf-8", "surrogatepass")

    def _digest(self, secret: str, message: bytes) -> bytes | None:
        key = key_bytes(self.scheme, secret)
        if key is None:
            return None
        if self.keyed == "hmac":
            return encode_digest(self.scheme, hmac.digest(key, message, self.scheme.algorithm))
        return encode_digest(self.scheme, hashlib.new(self.scheme.algorithm, message + key).digest())


def _at(document: Mapping[str, Any], path: Path) -> Any:
    node: Any = document
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node
