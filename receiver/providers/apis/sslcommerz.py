"""SSLCommerz's API: order validation by the merchant's ``tran_id``. The password stands in the query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import InTheQuery
from receiver.providers.body_map import Where
from receiver.providers.described_api import ApiDescription, Call, Part
from receiver.providers.paths import Computed
from receiver.providers.payment_api import NotFound, Unavailable
from receiver.providers.payment_event import Kind


def _first(bank: object, ours: object) -> object:
    return ours if bank is None else bank


_PAYMENT = Where(
    order_reference=("tran_id",),
    transaction_id=Computed("bank_tran_id or tran_id", (("bank_tran_id",), ("tran_id",)), _first),
    amount=("currency_amount",),
    currency=("currency_type",),
    occurred_at=("tran_date",),
    unit=MAJOR_TEXT,
    time=facts.local_time(6),
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "VALID": Kind.SUCCEEDED,
        "VALIDATED": Kind.SUCCEEDED,
        "PENDING": Kind.PENDING,
        "FAILED": Kind.FAILED,
        "CANCELLED": Kind.FAILED,
        "EXPIRED": Kind.FAILED,
        "UNATTEMPTED": Kind.FAILED,
    },
)


def _judge(document: Mapping[str, Any]) -> NotFound | Unavailable | None:
    """It says 200 whatever happened."""
    if document.get("APIConnect") != "DONE":
        return Unavailable("unauthorized", "the API refuses our credentials")
    return None if document.get("element") else NotFound("the API does not know this tran_id", 200)


SSLCOMMERZ_API = ApiDescription(
    live="https://securepay.sslcommerz.com",
    sandbox="https://sandbox.sslcommerz.com",
    keys=InTheQuery(("store_id", "store_password")),
    calls=(
        (
            Call(
                "/validator/api/merchantTransIDvalidationAPI.php",
                (Part(_STATUSES, at=("element",), many=True),),
                {
                    "tran_id": "{reference}",
                    "store_id": "{api:store_id}",
                    "store_passwd": "{api:store_password}",
                    "format": "json",
                },
                judge=_judge,
            ),
        ),
    ),
)
