"""Paddle's API: transactions, and their adjustments (refunds and chargebacks)."""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.amounts import MINOR_TEXT
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import BodyMap, Where
from receiver.providers.described_api import ApiDescription, Call, Part
from receiver.providers.paddle import PADDLE
from receiver.providers.paths import Computed
from receiver.providers.payment_event import Kind

_PAYMENT = Where(
    order_reference=("custom_data", "order_id"),
    transaction_id=("id",),
    amount=("details", "totals", "grand_total"),
    currency=("currency_code",),
    occurred_at=("created_at",),
    unit=MINOR_TEXT,
)
_STATUSES = by_status(
    ("status",),
    _PAYMENT,
    {
        "draft": Kind.PENDING,
        "ready": Kind.PENDING,
        "billed": Kind.PENDING,
        "paid": Kind.SUCCEEDED,
        "completed": Kind.SUCCEEDED,
        "canceled": Kind.FAILED,
        "past_due": Kind.FAILED,
    },
)


def _adjustments() -> BodyMap:
    """As the messages say them: an adjustment is the same object there, under ``data``."""
    said = PADDLE.body.meanings["adjustment.updated"]
    meanings = said if isinstance(said, tuple) else (said,)

    def inside(where: Where) -> Where:
        return replace(
            where,
            transaction_id=("transaction_id",),
            effect_id=("id",) if where.effect_id else where.effect_id,
            amount=("totals", "total"),
            currency=("currency_code",),
            occurred_at=("created_at",),
        )

    stripped = tuple(
        replace(
            meaning,
            where=inside(meaning.where),
            when=tuple(
                (place[1:] if isinstance(place, tuple) else place, values) for place, values in meaning.when
            ),
        )
        for meaning in meanings
    )
    adjustment = Computed("adjustment", (("id",),), lambda _id: "adjustment")
    return BodyMap(type=adjustment, meanings={"adjustment": stripped}, otherwise=Where())


PADDLE_API = ApiDescription(
    live="https://api.paddle.com",
    sandbox="https://sandbox-api.paddle.com",
    keys=KeyHeader(),
    calls=(
        (Call("/transactions/{transaction}", (Part(_STATUSES, at=("data",)),)),),
        (
            Call(
                "/adjustments",
                (Part(_adjustments(), at=("data",), many=True),),
                {"transaction_id": "{transaction}"},
            ),
        ),
    ),
    reference=(("data",), ()),
)
