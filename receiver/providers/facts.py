"""The test that each single fact must pass, whatever the provider calls it.

A reader takes a JSON value and gives the fact, or None where the value is flawed. An absent or null
value never comes here: that is a fact not carried.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, TypeGuard

from receiver.money import MAX_AMOUNT, currency_code

MAX_TEXT = 255
MAX_ID = 128
MAX_SEQUENCE = 2**63 - 1

Reader = Callable[[Any], Any]

_LAST_SECOND = 253_402_300_799
"""The end of the year 9999."""

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?",
    re.ASCII,
)


def is_text(value: object, longest: int = MAX_TEXT) -> TypeGuard[str]:
    """A string of 1 to ``longest`` code points, not blank, that PostgreSQL and UTF-8 can hold."""
    if not isinstance(value, str) or not 0 < len(value) <= longest or "\0" in value or value.isspace():
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def text(value: object) -> str | None:
    """The text exactly as it stands, never trimmed."""
    return value if is_text(value) else None


def text_or_integer(value: object) -> str | None:
    """The text, or a whole number's digits: providers write one id as either."""
    if type(value) is int:
        return str(value) if value >= 0 else None
    return text(value)


def condition(value: object) -> str | None:
    """A value that decides between outcomes, as a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_or_integer(value)


def amount(value: object) -> int | None:
    """Minor units from 1 to 10^15: a JSON integer, so neither ``true``, ``1.0``, ``1e3`` nor ``"1"``."""
    return value if type(value) is int and 1 <= value <= MAX_AMOUNT else None


def running_total(value: object) -> int | None:
    """Minor units from 0 to 10^15."""
    return value if type(value) is int and 0 <= value <= MAX_AMOUNT else None


def currency(value: object) -> str | None:
    """The upper-case ISO 4217 code of a text in any case."""
    return currency_code(value) if isinstance(value, str) else None


def sequence(value: object) -> int | None:
    """An integer from 0 to 2^63 - 1."""
    return value if type(value) is int and 0 <= value <= MAX_SEQUENCE else None


def live(value: object) -> bool | None:
    """A JSON boolean."""
    return value if isinstance(value, bool) else None


def occurred_at(value: object) -> datetime | None:
    """An ISO 8601 date, or date and time, of the years 1970 to 9999 in UTC.

    One without an offset is taken as UTC: the time is shown and never decides anything.
    """
    if not isinstance(value, str) or len(value) > 40 or not _TIME.fullmatch(value):
        return None
    try:
        moment = datetime.fromisoformat(value.upper())
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if moment.year >= 1970 else None


def unix_seconds(value: object) -> datetime | None:
    """Whole seconds since 1970, as a number."""
    return _since_1970(value, 1)


def unix_milliseconds(value: object) -> datetime | None:
    """Whole milliseconds since 1970, as a number."""
    return _since_1970(value, 1000)


def _since_1970(value: object, a_second: int) -> datetime | None:
    if type(value) is not int or not 0 <= value // a_second <= _LAST_SECOND:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value * 1000 // a_second)


def local_time(hours_ahead: int, shape: str = "%Y-%m-%d %H:%M:%S") -> Reader:
    """A reader of a provider's local times, which name no zone."""
    zone = timezone(timedelta(hours=hours_ahead))

    def read(value: object) -> datetime | None:
        if not isinstance(value, str) or len(value) > 40 or not value.isascii():
            return None
        try:
            moment = datetime.strptime(value, shape).replace(tzinfo=zone).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        return moment if moment.year >= 1970 else None

    return read


def mode(live_texts: frozenset[str], test_texts: frozenset[str]) -> Reader:
    """A reader of live and test mode where they are texts."""

    def read(value: object) -> bool | None:
        if not isinstance(value, str):
            return None
        return True if value in live_texts else False if value in test_texts else None

    return read


def test_mode(value: object) -> bool | None:
    """Live or not, from a boolean that says ``test``."""
    return not value if isinstance(value, bool) else None


def utf8_without_bom(body: bytes) -> str | None:
    """The reason to refuse a body that its sender never writes so: a signature over it is no proof."""
    if body.startswith(b"\xef\xbb\xbf"):
        return "unreadable_body"
    try:
        body.decode()
    except UnicodeDecodeError:
        return "unreadable_body"
    return None
