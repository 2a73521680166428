"""From a request's bytes to its events' documents: JSON, forms, texts inside texts, and batches.

An envelope is a function of the body alone, since no header says anything that is signed. Each raises
Unreadable for what it cannot read; a batch is read as a whole or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes

from receiver.providers.paths import Flaws, Path, shown_path
from receiver.providers.strict_json import RepeatingObject, Unreadable, parse_object

MAX_ITEMS = 1000
"""Events of one request; no provider sends more than 250."""

MAX_FIELDS = 1000
"""Fields of a form."""


class Envelope(Protocol):
    """``items`` gives the documents of the events; ``batch`` says that they are parts of a whole, so
    that an item's hash is over its canonical JSON and not over the request.
    """

    @property
    def batch(self) -> bool: ...

    def items(self, body: bytes) -> list[dict[str, Any]]: ...


@dataclass(frozen=True)
class JsonObject:
    """The body is one JSON object and one event. ``json_texts`` are places where a text is a JSON
    object of its own, which takes the text's place.
    """

    json_texts: tuple[Path, ...] = ()
    batch: bool = False

    def items(self, body: bytes) -> list[dict[str, Any]]:
        document = parse_object(body)
        for path in self.json_texts:
            _open_text(document, path)
        return [document]


@dataclass(frozen=True)
class JsonItems:
    """The events are the objects of the list at ``path``, each inside its key ``inside`` if that is set."""

    path: Path
    inside: str | None = None
    batch: bool = True

    def items(self, body: bytes) -> list[dict[str, Any]]:
        found = json_items(parse_object(body), self.path, self.inside)
        if found is None:
            raise Unreadable("no_items", f"{shown_path(self.path)} is no list of 1 to {MAX_ITEMS} objects")
        return found


@dataclass(frozen=True)
class Form:
    """The body is an urlencoded form and one event. ``json_field``: the event is the JSON in that field,
    and a body that begins with a brace is that JSON itself.
    """

    json_field: str | None = None
    batch: bool = False

    def items(self, body: bytes) -> list[dict[str, Any]]:
        if self.json_field is None:
            return [parse_form(body)]
        if body.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] == b"{":
            return [parse_object(body)]
        fields = parse_form(body)
        if self.json_field not in fields:
            raise Unreadable("not_a_form", f"the form has no field {self.json_field}")
        if isinstance(fields, RepeatingObject) and self.json_field in fields.repeated:
            raise Unreadable("repeated_field", f"the form has {self.json_field} more than once")
        return [parse_object(fields[self.json_field].encode())]


def json_items(document: Mapping[str, Any], path: Path, inside: str | None) -> list[dict[str, Any]] | None:
    """The objects of a batch, or None where the document has no such list."""
    flaws = Flaws(document)
    listed = flaws.read("items", path, lambda value: value)
    if flaws.error is not None or not isinstance(listed, list) or not 0 < len(listed) <= MAX_ITEMS:
        return None
    if inside is not None:
        listed = [each.get(inside) if isinstance(each, dict) else None for each in listed]
    return listed if all(isinstance(each, dict) for each in listed) else None


def parse_form(body: bytes) -> dict[str, Any]:
    """The fields of an urlencoded form, decoded as UTF-8; of repeated ones the last, and the object
    remembers which. Raises Unreadable (``not_utf8``, ``not_a_form``, ``too_many_fields``).
    """
    if body.count(b"&") >= MAX_FIELDS:
        raise Unreadable("too_many_fields", f"the form has more than {MAX_FIELDS} fields")
    pairs: list[tuple[str, str]] = []
    try:
        for piece in body.split(b"&"):
            if piece:
                name, _, value = piece.replace(b"+", b" ").partition(b"=")
                pairs.append((unquote_to_bytes(name).decode(), unquote_to_bytes(value).decode()))
    except UnicodeDecodeError:
        raise Unreadable("not_utf8", "the form is not UTF-8") from None
    if not pairs:
        raise Unreadable("not_a_form", "the form has no field")
    fields: dict[str, Any] = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    counts = Counter(name for name, _ in pairs)
    repeating = RepeatingObject(fields)
    repeating.repeated = frozenset(name for name, count in counts.items() if count > 1)
    return repeating


def _open_text(document: dict[str, Any], path: Path) -> None:
    holder: Any = document
    if path[:-1]:
        holder = Flaws(document).read("text", path[:-1], lambda value: value)
    if not isinstance(holder, dict):
        return
    text = holder.get(path[-1])
    if isinstance(text, str):
        try:
            holder[path[-1]] = parse_object(text.encode())
        except (Unreadable, UnicodeEncodeError):
            # A plain text where an object is meant is a flaw of the facts inside, not of the event.
            return
