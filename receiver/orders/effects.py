"""How a money event stands in the ledger: its kind of line, and the id that makes it unique.

The id is the provider's own for the capture, refund or dispute. What concerns the whole transaction
(an authorization, `succeeded`, a void, a refund of the order's whole amount that names no id) stands
under the transaction's id; anything else without an id would look like a repeat of its equal.
"""

from __future__ import annotations

from receiver.orders.facts import EffectKey
from receiver.providers.payment_event import Kind, PaymentEvent

LINE_KINDS = {
    Kind.AUTHORIZED: "authorization",
    Kind.SUCCEEDED: "capture",
    Kind.CAPTURED: "capture",
    Kind.VOIDED: "void",
    Kind.REFUNDED: "refund",
    Kind.REFUND_FAILED: "refund_failed",
    Kind.DISPUTE_OPENED: "dispute",
    Kind.DISPUTE_WON: "dispute_won",
    Kind.DISPUTE_LOST: "dispute_lost",
}
_OF_THE_TRANSACTION = frozenset({Kind.AUTHORIZED, Kind.SUCCEEDED, Kind.VOIDED})
_OF_THE_WHOLE = frozenset({Kind.REFUNDED, Kind.REFUND_FAILED})


def effect_key(event: PaymentEvent, order_amount_minor: int) -> EffectKey | None:
    """(source, ledger kind, effect id) of a money event, as the ledger keys it; None: not keyed."""
    kind = LINE_KINDS.get(event.kind)
    effect_id = effect_id_of(event, order_amount_minor)
    return None if kind is None or effect_id is None else (event.source, kind, effect_id)


def effect_id_of(event: PaymentEvent, order_amount_minor: int) -> str | None:
    """The effect id of a money event, or None where it lacks one that it needs."""
    if event.kind in _OF_THE_TRANSACTION:
        return event.transaction_id
    if event.effect_id is None and event.kind in _OF_THE_WHOLE and event.amount_minor == order_amount_minor:
        return event.transaction_id
    return event.effect_id
