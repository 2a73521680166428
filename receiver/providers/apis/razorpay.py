"""Razorpay's API: payments, each with its refunds, and the list of a window. The pair is the API key's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from receiver.providers import facts
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import Pair
from receiver.providers.body_map import Where
from receiver.providers.described_api import ApiDescription, Call, Listing, Part
from receiver.providers.payment_api import Window
from receiver.providers.payment_event import Kind

_COUNT = 100
_PAYMENT = Where(
    order_reference=("notes", "merchant_order"),
    transaction_id=("id",),
    amount=("amount",),
    currency=("currency",),
    occurred_at=("created_at",),
    time=facts.unix_seconds,
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "created": Kind.PENDING,
        "authorized": Kind.AUTHORIZED,
        "captured": Kind.SUCCEEDED,
        "refunded": Kind.SUCCEEDED,
        "failed": Kind.FAILED,
    },
)
_REFUNDS = by_status(
    ("status",),
    replace(_PAYMENT, order_reference=None, transaction_id=("payment_id",)),
    {"processed": Kind.REFUNDED, "failed": Kind.REFUND_FAILED},
    effect=("id",),
)


def _window(window: Window) -> dict[str, str]:
    start, end = int(window.start.timestamp()), int(window.end.timestamp())
    return {"from": str(start), "to": str(end), "count": str(_COUNT), "skip": "0"}


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    items = document.get("items")
    if not isinstance(items, list) or len(items) < _COUNT:
        return None
    return {**asked, "skip": str(int(asked["skip"]) + _COUNT)}


RAZORPAY_API = ApiDescription(
    live="https://api.razorpay.com",
    keys=Pair("key_id", "key_secret"),
    calls=(
        (Call("/v1/payments/{transaction}", (Part(_STATUSES),)),),
        (Call("/v1/payments/{transaction}/refunds", (Part(_REFUNDS, at=("items",), many=True),)),),
    ),
    reference=(("payload", "payment", "entity"), ()),
    listing=Listing("/v1/payments", _window, _following, ("items",), parts=(Part(_STATUSES),)),
)
