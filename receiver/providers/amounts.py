"""Amounts as providers write them: minor units or major, as numbers or texts, with their own exceptions.

Everything becomes minor units by ISO 4217, or is flawed: an amount with more decimals than its currency
has is never rounded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from receiver.money import MAX_AMOUNT, UnknownCurrency, minor_digits

_WHOLE = re.compile(r"[0-9]{1,16}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]{1,16}(?:\.[0-9]{1,10})?", re.ASCII)


@dataclass(frozen=True)
class Unit:
    """How a protocol writes amounts.

    ``spelt``: ``minor`` (150 = 1.50 EUR) or ``major`` (1.50). ``forms``: the JSON types that count; a
    text is plain ASCII digits with at most one point. ``digits`` are the provider's exceptions from
    ISO 4217: by currency, the decimals that its minor unit stands for.
    """

    spelt: Literal["minor", "major"]
    forms: frozenset[Literal["number", "text"]]
    digits: Mapping[str, int] = field(default_factory=dict)

    def read(self, value: Any, currency: str | None, lowest: int = 1) -> int | None:
        """Minor units of ``currency`` by ISO 4217, from ``lowest`` to 10^15, or None where flawed."""
        amount = self._number(value)
        if amount is None or currency is None:
            return None
        try:
            iso = minor_digits(currency)
        except UnknownCurrency:
            return None
        theirs = 0 if self.spelt == "major" else self.digits.get(currency, iso)
        minor = amount.scaleb(iso - theirs)
        if minor != minor.to_integral_value() or not lowest <= minor <= MAX_AMOUNT:
            return None
        return int(minor)

    def _number(self, value: Any) -> Decimal | None:
        if isinstance(value, str):
            shape = _WHOLE if self.spelt == "minor" else _DECIMAL
            return Decimal(value) if "text" in self.forms and shape.fullmatch(value) else None
        if "number" not in self.forms:
            return None
        if type(value) is int:
            return Decimal(value)
        return value if self.spelt == "major" and isinstance(value, Decimal) else None


MINOR = Unit("minor", frozenset({"number"}))
MINOR_TEXT = Unit("minor", frozenset({"text"}))
MINOR_ANY = Unit("minor", frozenset({"number", "text"}))
MAJOR_TEXT = Unit("major", frozenset({"text"}))
MAJOR_NUMBER = Unit("major", frozenset({"number"}))
MAJOR_ANY = Unit("major", frozenset({"number", "text"}))
