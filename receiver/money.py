"""Money as integers in a currency's own minor unit: read from people, shown to people.

Everything between is an ``int`` with its ISO 4217 code; no float ever holds an amount. Codes without
a minor unit (test codes, "no currency", gold and other metals, units of account) are no currency of a
payment and are refused like unknown ones.
"""

from __future__ import annotations

import re

from iso4217 import Currency

MAX_AMOUNT = 10**15
"""The largest amount in minor units, of an order and of an event; far inside a bigint, so sums fit too."""

_DIGITS: dict[str, int] = {
    str(currency.value): int(currency.exponent) for currency in Currency if currency.exponent is not None
}

_AMOUNT = re.compile(r"([0-9]+)(?:\.([0-9]+))?", re.ASCII)


class UnknownCurrency(ValueError):
    """Not an ISO 4217 code with a minor unit."""


class AmountError(ValueError):
    """The text is no amount of that currency; the message is a sentence for the person who typed it."""


def is_currency(code: str) -> bool:
    """Whether ``code`` is an upper-case ISO 4217 code that payments can be made in."""
    return code in _DIGITS


def currency_code(text: str) -> str | None:
    """The upper-case code that ``text`` spells in ASCII letters of any case, or None.

    Nothing is trimmed or guessed. Letters outside ASCII are refused before the case is changed: the
    dotless i becomes an I in upper case, and would make a code of what is none.
    """
    if len(text) != 3 or not text.isascii():
        return None
    code = text.upper()
    return code if code in _DIGITS else None


def minor_digits(currency: str) -> int:
    """How many decimals the currency has: 0 for JPY, 2 for EUR, 3 for KWD. Raises UnknownCurrency."""
    try:
        return _DIGITS[currency]
    except KeyError:
        raise UnknownCurrency(f"{currency!r} is not an ISO 4217 currency that payments are made in") from None


def parse_amount(text: str, currency: str) -> int:
    """The amount that a person wrote, in minor units, from 1 to 10^15.

    ``"18.6"`` and ``"18.600"`` KWD are both 18600. Raises AmountError for anything but ASCII digits
    with at most one point (so signs, exponents, grouping and NaN), for more decimals than the currency
    has, even zeros, since rounding is not ours to do, and UnknownCurrency.
    """
    digits = minor_digits(currency)
    match = _AMOUNT.fullmatch(text.strip(" "))
    if match is None:
        raise AmountError("an amount is written in plain digits with a point, such as 18.60")
    whole, decimals = match[1], match[2] or ""
    if len(decimals) > digits:
        raise AmountError(f"{currency} has {digits} decimals, and {len(decimals)} were given")
    if len(whole) > 40:
        raise AmountError("the amount is too large")
    minor = int(whole + decimals.ljust(digits, "0"))
    if minor == 0:
        raise AmountError("the amount must be more than 0")
    if minor > MAX_AMOUNT:
        raise AmountError("the amount is too large")
    return minor


def parse_money(text: str) -> tuple[int, str]:
    """``"18.600 KWD"`` as (18600, "KWD"). Raises AmountError or UnknownCurrency."""
    amount, _, name = text.strip(" ").partition(" ")
    name = name.strip(" ")
    if not name:
        raise AmountError("money is written as an amount, a blank and a currency, such as 18.600 KWD")
    code = currency_code(name)
    if code is None:
        raise UnknownCurrency(f"{name!r} is not an ISO 4217 currency that payments are made in")
    return parse_amount(amount, code), code


def format_amount(minor: int, currency: str) -> str:
    """``18.600 KWD``: the currency's own decimals, no grouping, a minus before a negative amount.

    A code that is unknown here (a list of currencies changes, rows stay) is shown in minor units:
    a page must always be showable.
    """
    digits = _DIGITS.get(currency)
    if digits is None:
        return f"{minor} minor units {currency}"
    sign = "-" if minor < 0 else ""
    text = str(abs(minor)).rjust(digits + 1, "0")
    if digits == 0:
        return f"{sign}{text} {currency}"
    return f"{sign}{text[:-digits]}.{text[-digits:]} {currency}"
