"""The one filter over events: pages, command line and bulk replay speak it.

A filter is plain values; ``parse`` reads a query string's mapping and refuses what cannot be asked
of the database (a NUL, an over-long text, an unknown state), so that no input reaches SQL raw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Self

STATES = ("pending", "in_flight", "processed", "failed", "expired")
DEAD = "dead"
"""Asks for failed and expired rows together."""

NONE = "-"
"""Asks for rows that have none: no event type, or no place."""

MAX_TEXT = 255


class FilterError(ValueError):
    """A filter that cannot be asked; the message is a sentence for people. ``field`` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Filter:
    """What events to show. None asks nothing; several fields must all hold.

    ``state`` is a state or ``dead`` (failed or expired). ``text`` is the provider's event id,
    exactly, or its beginning when it ends with ``*``. ``parked`` asks for parked rows alone.
    ``from_`` (inclusive) and ``to`` (exclusive) bound the time of receipt. ``place`` is where in our
    code the last attempt broke (``module:function``); ``event_type`` and ``place`` may be NONE.
    ``expires_before`` asks for pending rows whose deadline lies before it.
    """

    state: str | None = None
    source: str | None = None
    reason: str | None = None
    outcome: str | None = None
    event_type: str | None = None
    order_reference: str | None = None
    transaction_id: str | None = None
    text: str | None = None
    parked: bool = False
    from_: datetime | None = None
    to: datetime | None = None
    place: str | None = None
    expires_before: datetime | None = None

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Self:
        """Read a query string's mapping; unknown names and empty values ask nothing.

        Raises FilterError with a sentence.
        """
        values: dict[str, object] = {}
        for field in fields(cls):
            name = field.name.rstrip("_")
            text = query.get(name, "")
            if not text:
                continue
            check_text(name, text)
            values[field.name] = _read(name, text)
        return cls(**values)  # type: ignore[arg-type]

    def as_query(self) -> dict[str, str]:
        """The mapping that ``parse`` reads back into an equal filter."""
        query = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None or value is False:
                continue
            name = field.name.rstrip("_")
            if isinstance(value, datetime):
                query[name] = value.astimezone(UTC).isoformat().replace("+00:00", "Z")
            else:
                query[name] = "1" if value is True else str(value)
        return query

    def with_(self, **changes: object) -> Self:
        """The same filter with some fields asked otherwise."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def is_empty(self) -> bool:
        """Whether it asks nothing."""
        return not self.as_query()


def check_text(name: str, text: str) -> None:
    """Refuse a text that PostgreSQL cannot take, or one longer than any stored value.

    Raises FilterError.
    """
    if "\0" in text:
        raise FilterError(name, f"{name} holds a NUL character, which no stored text can hold")
    if len(text) > MAX_TEXT:
        raise FilterError(name, f"{name} is longer than {MAX_TEXT} characters")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in text):
        raise FilterError(name, f"{name} is not valid Unicode text")


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold the text: no NUL, no lone surrogate."""
    return not any(character == "\0" or 0xD800 <= ord(character) <= 0xDFFF for character in text)


def _read(name: str, text: str) -> object:
    if name == "state" and text not in (*STATES, DEAD):
        raise FilterError(name, f"state is one of {', '.join((*STATES, DEAD))}")
    if name == "parked":
        if text not in ("0", "1"):
            raise FilterError(name, "parked is 0 or 1")
        return text == "1"
    if name in ("from", "to", "expires_before"):
        return parse_time(name, text)
    return text


def parse_time(name: str, text: str) -> datetime:
    """Read an ISO 8601 time; without a zone it is UTC. Raises FilterError."""
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise FilterError(name, f"{name} is a time such as 2026-03-01T12:00Z") from None
    if not 1970 <= at.year <= 9999:
        raise FilterError(name, f"{name} lies outside the years 1970 to 9999")
    return at
