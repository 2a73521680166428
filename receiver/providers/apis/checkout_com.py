"""Checkout.com's API: a payment, and its actions (captures, refunds, voids). The address is the
merchant's own where `api_url` names it.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.checkout_com import UNIT
from receiver.providers.described_api import ASKED, PAYMENT, ApiDescription, Call, Part
from receiver.providers.paths import TRANSACTION, Computed
from receiver.providers.payment_event import Kind

_PAYMENT = Where(
    order_reference=("reference",),
    transaction_id=("id",),
    amount=("amount",),
    currency=("currency",),
    occurred_at=("requested_on",),
    unit=UNIT,
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "Pending": Kind.PENDING,
        "Declined": Kind.FAILED,
        "Canceled": Kind.FAILED,
        "Expired": Kind.FAILED,
        **dict.fromkeys(
            ("Authorized", "Partially Captured", "Captured", "Partially Refunded", "Refunded"),
            Kind.AUTHORIZED,
        ),
    },
)
_ACTION = Where(
    order_reference=(PAYMENT, "reference"),
    transaction_id=(ASKED,),
    effect_id=("id",),
    amount=("amount",),
    currency=(PAYMENT, "currency"),
    occurred_at=("processed_on",),
    unit=UNIT,
)


def _done(name: object, approved: object) -> str | None:
    return str(name) if approved is not False else None


_ACTIONS = BodyMap(
    type=Computed("type and approved", (("type",), ("approved",)), _done),
    meanings={
        "Capture": Meaning(Kind.CAPTURED, _ACTION),
        "Refund": Meaning(Kind.REFUNDED, _ACTION),
        "Void": Meaning(Kind.VOIDED, replace(_ACTION, effect_id=TRANSACTION)),
    },
    otherwise=Where(),
)

CHECKOUT_COM_API = ApiDescription(
    live="https://api.checkout.com",
    sandbox="https://api.sandbox.checkout.com",
    keys=KeyHeader(),
    calls=(
        (Call("/payments/{transaction}", (Part(_STATUSES),)),),
        (Call("/payments/{transaction}/actions", (Part(_ACTIONS, at=("items",), many=True),)),),
    ),
    reference=(("data",), ()),
)
