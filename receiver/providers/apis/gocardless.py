"""GoCardless's API: payments and refunds, each by its own id, and the payments of a window. The events are
signed; what they lack is the money.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import Where
from receiver.providers.described_api import ApiDescription, Call, Listing, Part
from receiver.providers.payment_api import Window
from receiver.providers.payment_event import Kind

_PAYMENT = Where(
    order_reference=("metadata", "order_id"),
    transaction_id=("id",),
    amount=("amount",),
    currency=("currency",),
    occurred_at=("created_at",),
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "pending_customer_approval": Kind.PENDING,
        "pending_submission": Kind.PENDING,
        "submitted": Kind.PENDING,
        "confirmed": Kind.SUCCEEDED,
        "paid_out": Kind.SUCCEEDED,
        "charged_back": Kind.SUCCEEDED,
        "cancelled": Kind.FAILED,
        "customer_approval_denied": Kind.FAILED,
        "failed": Kind.FAILED,
    },
)
_CHARGED_BACK = by_status(("status",), _PAYMENT, {"charged_back": Kind.DISPUTE_LOST})
# A cancelled chargeback leaves no trace but a payment that stands again.
_STANDS_AGAIN = by_status(
    ("status",), _PAYMENT, {"confirmed": Kind.DISPUTE_WON, "paid_out": Kind.DISPUTE_WON}
)
_REFUNDS = by_status(
    ("status",),
    replace(_PAYMENT, order_reference=None, transaction_id=("links", "payment")),
    {
        "paid": Kind.REFUNDED,
        "cancelled": Kind.REFUND_FAILED,
        "bounced": Kind.REFUND_FAILED,
        "funds_returned": Kind.REFUND_FAILED,
        "failed": Kind.REFUND_FAILED,
    },
    effect=("id",),
)
_REFUND_CLAIMED = frozenset({Kind.REFUNDED, Kind.REFUND_FAILED})


def _window(window: Window) -> dict[str, str]:
    return {
        "created_at[gte]": window.start.isoformat(),
        "created_at[lt]": window.end.isoformat(),
        "limit": "500",
    }


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    meta = document.get("meta")
    cursors = meta.get("cursors") if isinstance(meta, dict) else None
    after = cursors.get("after") if isinstance(cursors, dict) else None
    return {**asked, "after": after} if isinstance(after, str) and after else None


GOCARDLESS_API = ApiDescription(
    live="https://api.gocardless.com",
    sandbox="https://api-sandbox.gocardless.com",
    keys=KeyHeader(),
    headers={"GoCardless-Version": "2015-07-06"},
    calls=(
        (
            # A refund's message names the refund, and often not its payment.
            Call("/refunds/{effect}", (Part(_REFUNDS, at=("refunds",)),), claimed=_REFUND_CLAIMED),
            Call(
                "/payments/{transaction}",
                (
                    Part(_STATUSES, at=("payments",)),
                    Part(_CHARGED_BACK, at=("payments",)),
                    Part(_STANDS_AGAIN, at=("payments",), claimed=frozenset({Kind.DISPUTE_WON})),
                ),
            ),
        ),
    ),
    reference=(("resource_metadata",), ("metadata",)),
    listing=Listing(
        "/payments", _window, _following, ("payments",), parts=(Part(_STATUSES), Part(_CHARGED_BACK))
    ),
)
