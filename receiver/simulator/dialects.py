"""How the simulated providers write their bodies: one description per provider, pure.

The other direction (reading a body) is ``receiver.providers``; a test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from receiver.providers.payment_event import Kind


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


HOME_TYPES: dict[Kind, str] = {
    Kind.PENDING: "payment.pending",
    Kind.FAILED: "payment.failed",
    Kind.AUTHORIZED: "payment.authorized",
    Kind.SUCCEEDED: "payment.succeeded",
    Kind.CAPTURED: "payment.captured",
    Kind.VOIDED: "payment.voided",
    Kind.REFUNDED: "payment.refunded",
    Kind.REFUND_FAILED: "payment.refund_failed",
    Kind.DISPUTE_OPENED: "dispute.opened",
    Kind.DISPUTE_WON: "dispute.won",
    Kind.DISPUTE_LOST: "dispute.lost",
}

STANDARD_TYPES: dict[Kind, str] = {
    **HOME_TYPES,
    Kind.REFUNDED: "refund.completed",
    Kind.REFUND_FAILED: "refund.failed",
}

EFFECTS: dict[Kind, tuple[str, str]] = {
    Kind.CAPTURED: ("capture_id", "cap_"),
    Kind.REFUNDED: ("refund_id", "re_"),
    Kind.REFUND_FAILED: ("refund_id", "re_"),
    Kind.DISPUTE_OPENED: ("dispute_id", "dp_"),
    Kind.DISPUTE_WON: ("dispute_id", "dp_"),
    Kind.DISPUTE_LOST: ("dispute_id", "dp_"),
}
"""The field that names an effect, and how its ids begin."""


def _home_body(facts: Facts) -> bytes:
    body: dict[str, Any] = {
        "id": facts.event_id,
        "type": HOME_TYPES[facts.kind],
        "created_at": _iso(facts.made_at),
        "sequence": facts.sequence,
    }
    if facts.account is not None:
        body["account"] = facts.account
    if facts.live is not None:
        body["live"] = facts.live
    body["data"] = _data(facts, "transaction_id")
    return _json(body)


def _standard_body(facts: Facts) -> bytes:
    return _json(
        {
            "type": STANDARD_TYPES[facts.kind],
            "timestamp": _iso(facts.made_at),
            "data": _data(facts, "payment_id"),
        }
    )


def _data(facts: Facts, transaction_field: str) -> dict[str, Any]:
    data: dict[str, Any] = {
        "order_id": facts.order_reference,
        transaction_field: facts.transaction_id,
        "amount": facts.amount_minor,
        "currency": facts.currency,
    }
    if facts.kind in EFFECTS:
        name, prefix = EFFECTS[facts.kind]
        data[name] = prefix + facts.effect_id
    return data


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


DIALECTS: dict[str, Dialect] = {
    "demo": Dialect(HOME_TYPES, _home_body),
    "lesson": Dialect(HOME_TYPES, _home_body),
    "standard": Dialect(STANDARD_TYPES, _standard_body),
}
"""The providers that `receiver trigger` can play, by name."""
