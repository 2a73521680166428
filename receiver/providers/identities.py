"""What an event is known by: the provider's own id, or what stands for one where there is none.

An id is 1 to 128 characters without NUL or lone surrogate and is compared exactly. What is not signed
is no identity: whoever repeats a message could change it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from receiver.providers import facts
from receiver.providers.paths import Flaws, Path, Place, shown_path
from receiver.providers.reading import UnusableId
from receiver.providers.strict_json import canonical
from receiver.signature import HeaderMap


class Identity(Protocol):
    """``event_id`` raises UnusableId; ``headers`` are those that a sender adds to name the event."""

    @property
    def per_receipt(self) -> bool: ...

    def event_id(self, headers: HeaderMap, document: Mapping[str, Any]) -> str: ...

    def headers(self, event_id: str) -> dict[str, str]: ...


@dataclass(frozen=True)
class BodyId:
    """The event id is a text in the body. ``pattern``: it must look so, as it will stand in a URL.

    ``per_receipt``: it is an object's id, which repeats for each of its changes.
    """

    path: Path = ("id",)
    pattern: str = ""
    per_receipt: bool = False

    def event_id(self, headers: HeaderMap, document: Mapping[str, Any]) -> str:
        name = shown_path(self.path)
        flaws = Flaws(document)
        given = flaws.read("id", self.path, lambda value: value)
        if flaws.error == "repeated_field":
            raise UnusableId("repeated_id", f"{name} stands more than once")
        if given is None:
            event_type = document.get("type")
            of = f" in an event of type {event_type!a}" if facts.is_text(event_type) else ""
            raise UnusableId("missing_id", f"there is no {name}{of}")
        if not facts.is_text(given, facts.MAX_ID):
            raise UnusableId("invalid_id", f"{name} is not a text of 1 to {facts.MAX_ID} characters")
        if self.pattern and not re.fullmatch(self.pattern, given, re.ASCII):
            raise UnusableId("invalid_id", f"{name} is not an id as this provider writes them")
        return given

    def headers(self, event_id: str) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class HeaderId:
    """The event id is a signed header: pairs of a signature's header and the id's that goes with it.

    1 to 128 printable ASCII characters without blanks, as a header can carry them unharmed.
    """

    names: tuple[tuple[str, str], ...]
    per_receipt: bool = False

    def event_id(self, headers: HeaderMap, document: Mapping[str, Any]) -> str:
        name = next((id_ for sign, id_ in self.names if headers.get(sign) is not None), self.names[0][1])
        value = (headers.get(name) or "").strip(" \t")
        if not value:
            raise UnusableId("missing_id", f"there is no {name} header")
        if len(value) > facts.MAX_ID or not all("!" <= character <= "~" for character in value):
            raise UnusableId("invalid_id", f"{name} is not 1 to {facts.MAX_ID} printable characters")
        return value

    def headers(self, event_id: str) -> dict[str, str]:
        return {self.names[0][1]: event_id}


@dataclass(frozen=True)
class CompositeId:
    """Several signed values between colons, where the provider gives an event no id.

    Texts, whole numbers and booleans; a colon inside one is written ``%3A``. Those of ``optional`` may
    be absent or null and are then empty. What gets longer than an id may be ends in its SHA-256.
    """

    parts: tuple[Place, ...]
    optional: tuple[Place, ...] = ()
    per_receipt: bool = field(default=False, init=False)

    def event_id(self, headers: HeaderMap, document: Mapping[str, Any]) -> str:
        flaws = Flaws(document, blanks_absent=True)
        pieces: list[str] = []
        for place in self.parts:
            value = flaws.read("id", place, facts.condition)
            if flaws.error is not None:
                code = "repeated_id" if flaws.error == "repeated_field" else "invalid_id"
                raise UnusableId(code, f"{_named(place)} is no part of an id")
            if value is None and place not in self.optional:
                raise UnusableId("missing_id", f"there is no {_named(place)}")
            pieces.append((value or "").replace("%", "%25").replace(":", "%3A"))
        joined = ":".join(pieces)
        if len(joined) <= facts.MAX_ID:
            return joined
        return f"{joined[:60]}~{hashlib.sha256(joined.encode()).hexdigest()}"

    def headers(self, event_id: str) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class ContentId:
    """The SHA-256 of the event's canonical JSON: for protocols that sign no id and no time.

    A delivery again is the same event; two events that say the very same are one.
    """

    per_receipt: bool = field(default=False, init=False)

    def event_id(self, headers: HeaderMap, document: Mapping[str, Any]) -> str:
        return f"sha256:{hashlib.sha256(canonical(document)).hexdigest()}"

    def headers(self, event_id: str) -> dict[str, str]:
        return {}


def _named(place: Place) -> str:
    if isinstance(place, tuple):
        return shown_path(place)
    return "value" if place is None else place.name
