"""A provider: the protocol spoken, described once for endpoint, worker, pages and tests."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from receiver import signature
from receiver.providers import facts
from receiver.providers.reading import BodyMap, ReadEvent, UnusableId, read_event
from receiver.providers.strict_json import RepeatingObject, parse_object
from receiver.settings import Secret, Source
from receiver.signature import HeaderMap, MacScheme, Unverified


@dataclass(frozen=True, slots=True)
class Verified:
    """Signed by the secret of ``key_id``."""

    key_id: str


@dataclass(frozen=True, slots=True)
class BodyId:
    """The event id is a text in the body: 1 to 128 characters, not blank, no NUL or lone surrogate."""

    key: str = "id"


@dataclass(frozen=True, slots=True)
class HeaderId:
    """The event id is a signed header, one name for each of the provider's schemes.

    1 to 128 printable ASCII characters without blanks, as a header can carry them unharmed.
    """

    names: tuple[str, ...]


@dataclass(frozen=True)
class Provider:
    """How one provider signs and what its events mean.

    With several ``schemes`` the first whose signature header is there is the one: a request is never
    verified by one and read by another. ``never_carries`` names facts (``sequence``, ``account``,
    ``live``, …) that no event of the protocol has, so that they are not checked. ``secret_headers``
    (lower case) carry the secret itself and are never kept. ``timestamp`` is what holds where the
    source does not say: an unsigned timestamp may be ``optional``.
    """

    name: str
    schemes: tuple[MacScheme, ...]
    identity: BodyId | HeaderId
    body: BodyMap
    never_carries: frozenset[str] = frozenset()
    secret_headers: frozenset[str] = frozenset()
    timestamp: Literal["required", "optional"] = "required"

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        """Whether ``body`` came from ``source``, over the raw bytes. No input raises.

        A source for which ``usable_secrets`` is empty must be answered 503 before.
        """
        scheme = self.schemes[self._spoken(headers)]
        verdict = signature.verify(
            scheme,
            [secret.value for secret in source.secrets],
            headers,
            body,
            unix_now,
            tolerance=None if source.tolerance is None else int(source.tolerance.total_seconds()),
            timestamp_required=(source.timestamp or self.timestamp) == "required",
            config=source.options,
        )
        if isinstance(verdict, Unverified):
            return verdict
        return Verified(_key_id(source.secrets[verdict.secret_index]))

    def read(self, source_name: str, headers: HeaderMap, body: bytes) -> tuple[ReadEvent, ...]:
        """The events of a verified request, in order. Raises Unreadable (400) or UnusableId (422)."""
        document = parse_object(body)
        event_id = self._event_id(headers, document)
        payload_sha256 = hashlib.sha256(body).digest()
        return (read_event(source_name, event_id, document, self.body, payload_sha256),)

    def sign(
        self,
        secret: str,
        body: bytes,
        unix_now: float,
        event_id: str,
        config: Mapping[str, object] | None = None,
    ) -> dict[str, str]:
        """The headers with which the provider would send ``body`` (for trying out, and tests)."""
        headers = {self.identity.names[0]: event_id} if isinstance(self.identity, HeaderId) else {}
        return signature.sign(self.schemes[0], [secret], body, unix_now, headers, config)

    def usable_secrets(self, source: Source) -> tuple[Secret, ...]:
        """The secrets of ``source`` that can verify anything; the others are misspelt for this protocol."""
        scheme = self.schemes[0]
        return tuple(s for s in source.secrets if signature.key_bytes(scheme, s.value) is not None)

    def faults(self, source: Source) -> list[str]:
        """What is wrong with a source's settings for this protocol: one sentence each, no secret in it."""
        usable = self.usable_secrets(source)
        found = [f"secret {r} is not set" for r in source.missing_secrets]
        found += [
            f"secret {s.reference} is not {self.schemes[0].key} as {self.name} secrets are"
            for s in source.secrets
            if s not in usable
        ]
        if source.timestamp == "optional" and all(scheme.signs_timestamp for scheme in self.schemes):
            found.append('timestamp = "optional" has no effect: the timestamp is signed')
        return found

    def _spoken(self, headers: HeaderMap) -> int:
        if len(self.schemes) > 1:
            for index, scheme in enumerate(self.schemes):
                if headers.get(scheme.header) is not None:
                    return index
        return 0

    def _event_id(self, headers: HeaderMap, document: Mapping[str, Any]) -> str:
        if isinstance(self.identity, HeaderId):
            name = self.identity.names[self._spoken(headers)]
            value = (headers.get(name) or "").strip(" \t")
            if not value:
                raise UnusableId("missing_id", f"there is no {name} header")
            if len(value) > facts.MAX_ID or not all("!" <= character <= "~" for character in value):
                raise UnusableId("invalid_id", f"{name} is not 1 to {facts.MAX_ID} printable characters")
            return value
        key = self.identity.key
        if isinstance(document, RepeatingObject) and key in document.repeated:
            raise UnusableId("repeated_id", f"{key} stands more than once")
        given = document.get(key)
        if given is None:
            event_type = document.get("type")
            of = f" in an event of type {event_type!a}" if facts.is_text(event_type) else ""
            raise UnusableId("missing_id", f"there is no {key}{of}")
        if not facts.is_text(given, facts.MAX_ID):
            raise UnusableId("invalid_id", f"{key} is not a text of 1 to {facts.MAX_ID} characters")
        return given


@lru_cache(maxsize=1024)
def _key_id(secret: Secret) -> str:
    return secret.key_id
