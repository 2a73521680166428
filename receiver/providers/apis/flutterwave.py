"""Flutterwave's v3 API: the verify call. Its v4 API is not offered here."""

from __future__ import annotations

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_NUMBER
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import Where
from receiver.providers.described_api import ApiDescription, Call, Part
from receiver.providers.payment_event import Kind

_PAYMENT = Where(
    order_reference=("tx_ref",),
    transaction_id=("id",),
    amount=("amount",),
    currency=("currency",),
    occurred_at=("created_at",),
    unit=MAJOR_NUMBER,
    ids=facts.text_or_integer,
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "successful": Kind.SUCCEEDED,
        "pending": Kind.PENDING,
        "failed": Kind.FAILED,
        "cancelled": Kind.FAILED,
    },
)

FLUTTERWAVE_V3_API = ApiDescription(
    live="https://api.flutterwave.com",
    keys=KeyHeader(),
    calls=(
        (Call("/v3/transactions/{transaction}/verify", (Part(_STATUSES, at=("data",)),), ids=r"[0-9]+"),),
    ),
)
