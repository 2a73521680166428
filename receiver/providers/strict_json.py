"""The one JSON parser of the providers: strict where a loose one hides a fault, exact with numbers.

Bounded before it starts: depth by a scan that does not recurse, numbers by their digits, so that no
body raises anything but Unreadable. Repeated keys are legal JSON: the last one counts, and the object
remembers which keys were repeated, for whoever reads one of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal
from itertools import accumulate
from typing import Any

MAX_DEPTH = 64
MAX_DIGITS = 40
MAX_EXPONENT = 30

_BOM = b"\xef\xbb\xbf"

# The closing quote is optional, so that a string without an end is one match and not a new search at
# every quote inside it: the scan stays linear for any bytes.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class Unreadable(Exception):
    """A signed body that cannot be read.

    ``code``: ``not_utf8``, ``not_json``, ``not_an_object``, ``too_deep``, ``number_too_long``,
    ``exponent_too_large``, ``not_finite``. ``detail`` is a sentence that repeats nothing of the body.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class RepeatingObject(dict[str, Any]):
    """An object in which ``repeated`` keys stood more than once; the last value of each is here."""

    __slots__ = ("repeated",)

    repeated: frozenset[str]


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object that ``body`` is: UTF-8, with or without a BOM.

    Whole numbers are ``int``, all others ``Decimal``, never float. Raises Unreadable.
    """
    try:
        text = str(body[3:] if body.startswith(_BOM) else body, "utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable("not_utf8", f"the body is not UTF-8 (byte {error.start})") from None
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _depth(body) > MAX_DEPTH:
        raise Unreadable("too_deep", f"the body is nested deeper than {MAX_DEPTH} levels")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Unreadable("not_json", f"the body is not JSON: {error.msg} (character {error.pos})") from None
    if not isinstance(value, dict):
        raise Unreadable("not_an_object", "the body is JSON, but not an object")
    return value


def canonical(value: object) -> bytes:
    """One spelling for equal JSON: sorted keys, no blanks, ASCII, numbers by their value.

    It is hashed, never sent. Takes what ``parse_object`` gives, lone surrogates too.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_canonical_number
    ).encode()


def _depth(body: bytes) -> int:
    brackets = _STRINGS.sub(b"", body).translate(None, delete=_NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    counts = Counter(key for key, _ in pairs)
    repeating = RepeatingObject(value)
    repeating.repeated = frozenset(key for key, count in counts.items() if count > 1)
    return repeating


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS and len(text.lstrip("-")) > MAX_DIGITS:
        raise Unreadable("number_too_long", f"a number has more than {MAX_DIGITS} digits")
    return int(text)


def _decimal(text: str) -> Decimal:
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > MAX_DIGITS and sum(map(str.isdigit, mantissa)) > MAX_DIGITS:
        raise Unreadable("number_too_long", f"a number has more than {MAX_DIGITS} digits")
    digits = exponent.lstrip("+-").lstrip("0")
    if len(digits) > 2 or int(digits or "0") > MAX_EXPONENT:
        raise Unreadable("exponent_too_large", f"a number's exponent is beyond {MAX_EXPONENT}")
    return Decimal(text)


def _constant(_text: str) -> None:
    raise Unreadable("not_finite", "the body holds NaN or Infinity, which are not JSON")


def _canonical_number(value: object) -> object:
    if not isinstance(value, Decimal):
        raise TypeError(f"not JSON: {type(value).__name__}")
    if value == value.to_integral_value():
        return int(value)
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits))
    bare = text.rstrip("0")
    return {"number": [sign, bare, int(exponent) + len(text) - len(bare)]}


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_decimal, parse_constant=_constant
)
