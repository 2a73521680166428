"""The meaning of an event: the facts that decide what it may do to an order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Kind(StrEnum):
    """What an event says. pending and failed are statuses; the others but `other` are money."""

    PENDING = "pending"
    FAILED = "failed"
    AUTHORIZED = "authorized"
    SUCCEEDED = "succeeded"
    CAPTURED = "captured"
    VOIDED = "voided"
    REFUNDED = "refunded"
    REFUND_TOTAL = "refund_total"
    REFUND_FAILED = "refund_failed"
    DISPUTE_OPENED = "dispute_opened"
    DISPUTE_WON = "dispute_won"
    DISPUTE_LOST = "dispute_lost"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class PaymentEvent:
    """The facts of one event, read at intake and kept in the event's columns.

    ``amount_minor`` and ``refund_total_minor`` are integers in the minor unit of ``currency``
    (upper-case ISO 4217). ``effect_id`` is the provider's id of the capture, refund or dispute.
    ``sequence`` grows within one transaction. ``facts_error`` names the first fact that could not
    be read (``unreadable_amount``, ``repeated_field``); such an event never moves an order.
    """

    source: str
    kind: Kind
    account: str | None = None
    live: bool | None = None
    order_reference: str | None = None
    transaction_id: str | None = None
    effect_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    refund_total_minor: int | None = None
    sequence: int | None = None
    occurred_at: datetime | None = None
    facts_error: str | None = None
