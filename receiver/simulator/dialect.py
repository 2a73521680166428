"""The shape of a dialect: how a simulated provider names its events and writes their bodies. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from receiver.money import minor_digits
from receiver.providers.amounts import MAJOR_TEXT, Unit
from receiver.providers.payment_event import Kind

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """What one simulated event says. ``effect_id`` becomes the capture's, refund's or dispute's id."""

    event_id: str
    kind: Kind
    order_reference: str
    transaction_id: str
    effect_id: str
    amount_minor: int
    currency: str
    sequence: int
    account: str | None
    live: bool | None
    made_at: datetime


@dataclass(frozen=True, slots=True)
class Dialect:
    """The event types of a provider by their meaning, and the writer of its bodies."""

    types: Mapping[Kind, str]
    body: Callable[[Facts], bytes]

    def kind_of(self, event_type: str) -> Kind | None:
        """The meaning of a type as users write it, or None."""
        return next((kind for kind, name in self.types.items() if name == event_type), None)


def iso(at: datetime) -> str:
    """The time as most providers write it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def as_json(body: dict[str, Any]) -> bytes:
    """The body without blanks."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def written(unit: Unit, amount_minor: int, currency: str) -> int | float | str:
    """The amount as a provider of that unit writes it: the other direction of ``Unit.read``."""
    iso_digits = minor_digits(currency)
    if unit.spelt == "minor":
        shift = unit.digits.get(currency, iso_digits) - iso_digits
        minor = amount_minor * 10**shift if shift >= 0 else amount_minor // 10**-shift
        return minor if "number" in unit.forms else str(minor)
    whole, part = divmod(amount_minor, 10**iso_digits)
    text = f"{whole}.{part:0{iso_digits}d}" if iso_digits else str(whole)
    return text if "text" in unit.forms else float(text) if part else whole


def amount_of(unit: Unit, facts: Facts) -> int | float | str:
    """The event's amount in a provider's unit."""
    return written(unit, facts.amount_minor, facts.currency)


def money_of(facts: Facts) -> Body:
    """Value and currency, as Mollie and others write them."""
    return {"value": amount_of(MAJOR_TEXT, facts), "currency": facts.currency}
