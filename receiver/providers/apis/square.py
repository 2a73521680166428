"""Square's API: payments with the running total of their refunds, and the list of a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from receiver.providers.api_documents import by_status, running_total
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import Where
from receiver.providers.described_api import ApiDescription, Call, Listing, Part
from receiver.providers.payment_api import Window
from receiver.providers.payment_event import Kind

_PAYMENT = Where(
    order_reference=("reference_id",),
    transaction_id=("id",),
    # Without the tip, as in its messages.
    amount=("amount_money", "amount"),
    currency=("amount_money", "currency"),
    sequence=("version",),
    occurred_at=("created_at",),
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "PENDING": Kind.PENDING,
        "APPROVED": Kind.AUTHORIZED,
        "COMPLETED": Kind.SUCCEEDED,
        "CANCELED": Kind.VOIDED,
        "FAILED": Kind.FAILED,
    },
)
_TOTAL = running_total(
    ("refunded_money", "amount"), replace(_PAYMENT, currency=("refunded_money", "currency"), sequence=None)
)


def _window(window: Window) -> dict[str, str]:
    return {
        "begin_time": window.start.isoformat(),
        "end_time": window.end.isoformat(),
        "sort_order": "ASC",
        "limit": "100",
    }


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    cursor = document.get("cursor")
    return {**asked, "cursor": cursor} if isinstance(cursor, str) and cursor else None


SQUARE_API = ApiDescription(
    live="https://connect.squareup.com",
    sandbox="https://connect.squareupsandbox.com",
    keys=KeyHeader(),
    calls=(
        (
            Call(
                "/v2/payments/{transaction}",
                (Part(_STATUSES, at=("payment",)), Part(_TOTAL, at=("payment",))),
            ),
        ),
    ),
    reference=(("data", "object", "payment"), ()),
    listing=Listing(
        "/v2/payments", _window, _following, ("payments",), parts=(Part(_STATUSES), Part(_TOTAL))
    ),
)
