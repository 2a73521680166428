"""Reading single values out of a parsed body, and noting the first that is flawed.

A place is a path of keys (and list indexes), or a value computed from several of them; nothing here
knows what a fact means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from receiver.providers.strict_json import RepeatingObject, canonical

Path = tuple[str | int, ...]

TRANSACTION: Path = ()
"""As an effect's place: the effect has no id of its own, and the transaction's stands for it."""

SHOWN_CHARACTERS = 80
"""So much of a flawed value is repeated to operators."""


@dataclass(frozen=True)
class Computed:
    """A value made of the values at ``paths`` (None where absent), named for operators.

    ``make`` gives None for "not carried"; a ValueError or TypeError of it is a flaw of the fact.
    """

    name: str
    paths: tuple[Path, ...]
    make: Callable[..., Any]


Place = Path | Computed | None
"""Where a fact stands; None: the protocol never carries it."""


def parse_path(text: str) -> Path:
    """``data.items.0.id`` as a path. Raises ValueError for an empty piece."""
    pieces = text.split(".")
    if not all(pieces):
        raise ValueError("a path is written as names with points between, such as data.order_id")
    return tuple(int(piece) if piece.isascii() and piece.isdigit() else piece for piece in pieces)


class Flaws:
    """Reads facts from one body and keeps the first flaw.

    ``blanks_absent``: an empty text or list stands for "nothing" in this protocol, as in a form or
    where PHP writes an empty map as ``[]``.
    """

    __slots__ = ("blanks_absent", "body", "error", "flaw")

    def __init__(self, body: Mapping[str, Any], blanks_absent: bool = False) -> None:
        self.body = body
        self.blanks_absent = blanks_absent
        self.error: str | None = None
        self.flaw: str | None = None

    def read(self, fact: str, place: Place, reader: Callable[[Any], Any]) -> Any:
        """The fact at ``place``; None where it is not carried, or flawed and noted."""
        if place is None:
            return None
        if isinstance(place, Computed):
            return self._compute(fact, place, reader)
        node: Any = self.body
        for key in place:
            # Plain objects, the usual case; absent, flawed and repeating ones go the slow way.
            if type(node) is not dict:
                node = self._walk(place)
                break
            node = node.get(key)
        if node is None or (self.blanks_absent and _blank(node)):
            return None
        value = reader(node)
        return self._note(f"unreadable_{fact}", shown_path(place), node) if value is None else value

    def _compute(self, fact: str, place: Computed, reader: Callable[[Any], Any]) -> Any:
        values = [self.read(fact, path, _as_it_is) for path in place.paths]
        if self.error is not None:
            return None
        try:
            made = place.make(*values)
        except (ValueError, TypeError, ArithmeticError):
            return self._note(f"unreadable_{fact}", place.name, values)
        if made is None:
            return None
        value = reader(made)
        return self._note(f"unreadable_{fact}", place.name, made) if value is None else value

    def _walk(self, path: Path) -> Any:
        node: Any = self.body
        for depth, key in enumerate(path):
            if node is None or (self.blanks_absent and _blank(node)):
                return None
            if isinstance(key, int):
                if not isinstance(node, list):
                    return self._note(f"unreadable_{path[depth - 1]}", shown_path(path[:depth]), node)
                node = node[key] if key < len(node) else None
                continue
            if not isinstance(node, dict):
                return self._note(f"unreadable_{path[depth - 1]}", shown_path(path[:depth]), node)
            if isinstance(node, RepeatingObject) and key in node.repeated:
                return self._note("repeated_field", shown_path(path[: depth + 1]), None)
            node = node.get(key)
        return node

    def _note(self, error: str, name: str, value: object) -> None:
        if self.error is None:
            self.error = error
            self.flaw = (
                f"{name} stands more than once" if error == "repeated_field" else f"{name} is {_shown(value)}"
            )


def shown_path(path: Path) -> str:
    """``data.order_id``, as documents and flaws write it."""
    return ".".join(map(str, path))


def is_absent(body: Mapping[str, Any], path: Path) -> bool:
    """Whether nothing stands at ``path``; a path through something else than an object is not absent."""
    node: Any = body
    for key in path:
        if not isinstance(node, dict):
            return node is None
        node = node.get(key)
    return node is None


def _as_it_is(value: Any) -> Any:
    return value


def _blank(node: object) -> bool:
    return node == "" or node == []


def _shown(value: object) -> str:
    try:
        spelt = canonical(value).decode()
    except (TypeError, ValueError):
        spelt = type(value).__name__
    return spelt if len(spelt) <= SHOWN_CHARACTERS else spelt[:SHOWN_CHARACTERS] + "…"
