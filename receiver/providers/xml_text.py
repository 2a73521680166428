"""XML as documents: elements become keys, ``type="array"`` lists, ``nil="true"`` null, all else texts.

Strict and bounded: no document type, so that there are no entities to expand or to fetch; no deep
nesting. Of elements that stand more than once outside a list the last counts, and the object remembers.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

from receiver.providers.strict_json import MAX_DEPTH, RepeatingObject, Unreadable


def parse_xml(text: bytes) -> tuple[str, dict[str, Any]]:
    """The root's name and what it holds. UTF-8. Raises Unreadable (``not_utf8``, ``not_xml``,
    ``too_deep``).
    """
    tree = _Tree()
    parser = ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = tree.start
    parser.EndElementHandler = tree.end
    parser.CharacterDataHandler = tree.data
    parser.StartDoctypeDeclHandler = _doctype
    try:
        # A mark at its beginning would make the parser take the text for another encoding.
        parser.Parse(text.decode().encode(), True)
    except UnicodeDecodeError:
        raise Unreadable("not_utf8", "the body is not UTF-8") from None
    except (ExpatError, ValueError) as error:
        code = getattr(error, "code", None)
        raise Unreadable("not_xml", f"the body is not XML (fault {code})") from None
    name, value = tree.root
    if not isinstance(value, dict):
        raise Unreadable("not_xml", "the body is XML that holds no element")
    return name, value


class _Tree:
    """What the parser has seen: the open elements, each with its attributes, children and text."""

    def __init__(self) -> None:
        self.open: list[tuple[str, dict[str, str], list[tuple[str, Any]], list[str]]] = []
        self.root: tuple[str, Any] = ("", None)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise Unreadable("too_deep", f"the body is nested deeper than {MAX_DEPTH} levels")
        self.open.append((name, attributes, [], []))

    def data(self, text: str) -> None:
        self.open[-1][3].append(text)

    def end(self, _name: str) -> None:
        name, attributes, children, texts = self.open.pop()
        value: Any
        if attributes.get("nil") == "true":
            value = None
        elif attributes.get("type") == "array":
            value = [child for _, child in children]
        elif children:
            value = _object(children)
        else:
            value = "".join(texts)
        if self.open:
            self.open[-1][2].append((name, value))
        else:
            self.root = (name, value)


def _object(children: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(children)
    if len(value) == len(children):
        return value
    counts = Counter(name for name, _ in children)
    repeating = RepeatingObject(value)
    repeating.repeated = frozenset(name for name, count in counts.items() if count > 1)
    return repeating


def _doctype(*_declared: object) -> None:
    raise Unreadable("not_xml", "the body declares a document type")
