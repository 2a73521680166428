"""Paystack's API: the verify call, by the reference that names a payment, and the list of a window.

Its refunds are known there by other ids than in messages, so only a payment that was given back in full
(``reversed``) is read as refunded, as a running total.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from receiver.providers import facts
from receiver.providers.amounts import MINOR_ANY
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.described_api import ApiDescription, Call, Listing, Part
from receiver.providers.payment_api import Window
from receiver.providers.payment_event import Kind

_PER_PAGE = 100
_PAYMENT = Where(
    order_reference=("metadata", "order_id"),
    transaction_id=("reference",),
    amount=("amount",),
    currency=("currency",),
    live=("domain",),
    occurred_at=("paid_at",),
    unit=MINOR_ANY,
    ids=facts.text_or_integer,
    mode=facts.mode(frozenset({"live"}), frozenset({"test"})),
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "success": Kind.SUCCEEDED,
        "reversed": Kind.SUCCEEDED,
        "failed": Kind.FAILED,
        "abandoned": Kind.PENDING,
        "ongoing": Kind.PENDING,
        "pending": Kind.PENDING,
        "processing": Kind.PENDING,
        "queued": Kind.PENDING,
    },
)
_REVERSED = BodyMap(
    type=("status",),
    meanings={
        "reversed": Meaning(Kind.REFUND_TOTAL, replace(_PAYMENT, amount=None, refund_total=("amount",)))
    },
    otherwise=Where(),
    blanks_absent=True,
)


def _window(window: Window) -> dict[str, str]:
    return {
        "from": window.start.isoformat(),
        "to": window.end.isoformat(),
        "perPage": str(_PER_PAGE),
        "page": "1",
    }


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    items = document.get("data")
    if not isinstance(items, list) or len(items) < _PER_PAGE:
        return None
    return {**asked, "page": str(int(asked["page"]) + 1)}


PAYSTACK_API = ApiDescription(
    live="https://api.paystack.co",
    keys=KeyHeader(),
    calls=(
        (
            Call(
                "/transaction/verify/{transaction}",
                (Part(_STATUSES, at=("data",)), Part(_REVERSED, at=("data",))),
            ),
        ),
    ),
    reference=(("data",), ()),
    listing=Listing("/transaction", _window, _following, ("data",), parts=(Part(_STATUSES), Part(_REVERSED))),
)
