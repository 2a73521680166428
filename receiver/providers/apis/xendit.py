"""Xendit's API: a payment by its id, a refund by its own."""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.amounts import MAJOR_NUMBER
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import Pair
from receiver.providers.body_map import Where
from receiver.providers.described_api import ApiDescription, Call, Part
from receiver.providers.payment_event import Kind

_PAYMENT = Where(
    order_reference=("reference_id",),
    transaction_id=("payment_id",),
    amount=("request_amount",),
    currency=("currency",),
    account=("business_id",),
    occurred_at=("created",),
    unit=MAJOR_NUMBER,
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "PENDING": Kind.PENDING,
        "AUTHORIZED": Kind.AUTHORIZED,
        "SUCCEEDED": Kind.SUCCEEDED,
        "FAILED": Kind.FAILED,
        "EXPIRED": Kind.VOIDED,
        "CANCELED": Kind.VOIDED,
    },
)
_REFUNDS = by_status(
    ("status",),
    replace(_PAYMENT, order_reference=None, amount=("amount",)),
    {"SUCCEEDED": Kind.REFUNDED, "FAILED": Kind.REFUND_FAILED, "CANCELLED": Kind.REFUND_FAILED},
    effect=("id",),
)

XENDIT_API = ApiDescription(
    # A key is a live or a test key; the address is one.
    live="https://api.xendit.co",
    keys=Pair("key"),
    headers={"api-version": "2024-11-11"},
    calls=(
        (
            Call(
                "/refunds/{effect}",
                (Part(_REFUNDS),),
                claimed=frozenset({Kind.REFUNDED, Kind.REFUND_FAILED}),
            ),
            Call("/v3/payments/{transaction}", (Part(_STATUSES),)),
        ),
    ),
)
