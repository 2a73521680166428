"""Mollie's API, for both of its protocols: a payment with its refunds and chargebacks."""

from __future__ import annotations

from dataclasses import replace

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.described_api import ASKED, PAYMENT, ApiDescription, Call, Part
from receiver.providers.paths import Computed
from receiver.providers.payment_event import Kind

_PAYMENT = Where(
    order_reference=("description",),
    transaction_id=("id",),
    amount=("amount", "value"),
    currency=("amount", "currency"),
    live=("mode",),
    occurred_at=("createdAt",),
    unit=MAJOR_TEXT,
    mode=facts.mode(frozenset({"live"}), frozenset({"test"})),
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "open": Kind.PENDING,
        "pending": Kind.PENDING,
        "authorized": Kind.AUTHORIZED,
        "paid": Kind.SUCCEEDED,
        "failed": Kind.FAILED,
        "canceled": Kind.FAILED,
        "expired": Kind.FAILED,
    },
)
_PART = replace(
    _PAYMENT,
    order_reference=(PAYMENT, "description"),
    transaction_id=(ASKED,),
    effect_id=("id",),
    live=(PAYMENT, "mode"),
)
_REFUNDS = by_status(
    ("status",),
    _PART,
    {"refunded": Kind.REFUNDED, "failed": Kind.REFUND_FAILED, "canceled": Kind.REFUND_FAILED},
    effect=("id",),
)


def _reversed(at: object) -> str:
    return "lost" if at is None else "won"


_CHARGEBACKS = BodyMap(
    type=Computed("reversedAt", (("reversedAt",),), _reversed),
    meanings={"lost": Meaning(Kind.DISPUTE_LOST, _PART), "won": Meaning(Kind.DISPUTE_WON, _PART)},
    otherwise=Where(),
)

MOLLIE_API = ApiDescription(
    # A key is a live or a test key; the address is one.
    live="https://api.mollie.com",
    keys=KeyHeader(),
    calls=(
        (
            Call(
                "/v2/payments/{transaction}",
                (
                    Part(_STATUSES),
                    Part(_REFUNDS, at=("_embedded", "refunds"), many=True),
                    Part(_CHARGEBACKS, at=("_embedded", "chargebacks"), many=True),
                ),
                {"embed": "refunds,chargebacks"},
                ids=r"tr_[A-Za-z0-9]+",
            ),
        ),
    ),
    reference=(("_embedded", "entity"), ()),
)

MOLLIE_CLASSIC_API = replace(MOLLIE_API, reference=((), ()))
