"""Flutterwave's v3 API: the verify call, and the transactions of some days. Its v4 API is not asked here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_NUMBER
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import Where
from receiver.providers.described_api import ApiDescription, Call, Listing, Part
from receiver.providers.payment_api import Window
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


def _window(window: Window) -> dict[str, str]:
    # Whole days, both ends included: some transactions more than asked for do no harm.
    start, end = window.start.astimezone(UTC), window.end.astimezone(UTC)
    return {"from": f"{start:%Y-%m-%d}", "to": f"{end:%Y-%m-%d}", "page": "1"}


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    meta = document.get("meta")
    pages = meta.get("page_info") if isinstance(meta, dict) else None
    last = pages.get("total_pages") if isinstance(pages, dict) else None
    page = int(asked["page"])
    return {**asked, "page": str(page + 1)} if isinstance(last, int) and page < last else None


FLUTTERWAVE_V3_API = ApiDescription(
    live="https://api.flutterwave.com",
    keys=KeyHeader(),
    calls=(
        (Call("/v3/transactions/{transaction}/verify", (Part(_STATUSES, at=("data",)),), ids=r"[0-9]+"),),
    ),
    listing=Listing("/v3/transactions", _window, _following, ("data",), parts=(Part(_STATUSES),)),
)
