"""Paddle's API: transactions, their adjustments (refunds and chargebacks), and the list of a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from receiver.providers.amounts import MINOR_TEXT
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import BodyMap, Where
from receiver.providers.described_api import ApiDescription, Call, Listing, Part
from receiver.providers.paddle import PADDLE
from receiver.providers.paths import Computed
from receiver.providers.payment_api import Window
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


def _window(window: Window) -> dict[str, str]:
    # By the last change: an old transaction that is paid or repaired in the window counts as well.
    return {
        "updated_at[GTE]": window.start.isoformat(),
        "updated_at[LT]": window.end.isoformat(),
        "order_by": "id[ASC]",
        "per_page": "30",
    }


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    meta, items = document.get("meta"), document.get("data")
    pages = meta.get("pagination") if isinstance(meta, dict) else None
    if not isinstance(pages, dict) or pages.get("has_more") is not True:
        return None
    return {**asked, "after": str(items[-1].get("id"))} if isinstance(items, list) and items else None


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
    listing=Listing("/transactions", _window, _following, ("data",), parts=(Part(_STATUSES),)),
)
