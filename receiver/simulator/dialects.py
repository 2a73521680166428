"""How the simulated providers write their bodies: one description per provider, pure.

The other direction (reading a body) is ``receiver.providers``; a test holds the two together.
"""

from __future__ import annotations

from typing import Any

from receiver.providers.payment_event import Kind
from receiver.simulator.dialect import Dialect, Facts, as_json, iso
from receiver.simulator.provider_events import PROVIDER_DIALECTS

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
        "created_at": iso(facts.made_at),
        "sequence": facts.sequence,
    }
    if facts.account is not None:
        body["account"] = facts.account
    if facts.live is not None:
        body["live"] = facts.live
    body["data"] = _data(facts, "transaction_id")
    return as_json(body)


def _standard_body(facts: Facts) -> bytes:
    return as_json(
        {
            "type": STANDARD_TYPES[facts.kind],
            "timestamp": iso(facts.made_at),
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


DIALECTS: dict[str, Dialect] = {
    "demo": Dialect(HOME_TYPES, _home_body),
    "lesson": Dialect(HOME_TYPES, _home_body),
    "standard": Dialect(STANDARD_TYPES, _standard_body),
    **PROVIDER_DIALECTS,
}
"""The providers that `receiver trigger` can play, by name."""
