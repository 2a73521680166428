"""Stripe's API: PaymentIntents (or charges of their own), their refunds and disputes, and the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from receiver.providers import facts
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.described_api import ASKED, ApiDescription, Call, Listing, Part
from receiver.providers.payment_api import Window
from receiver.providers.payment_event import Kind
from receiver.providers.stripe import UNIT

_PAYMENT = Where(
    order_reference=("metadata", "order_id"),
    transaction_id=("id",),
    amount=("amount",),
    currency=("currency",),
    live=("livemode",),
    occurred_at=("created",),
    unit=UNIT,
    time=facts.unix_seconds,
)
_INTENT = by_status(
    ("status",),
    _PAYMENT,
    {
        "processing": Kind.PENDING,
        "requires_action": Kind.PENDING,
        "requires_payment_method": Kind.PENDING,
        "requires_confirmation": Kind.PENDING,
        "requires_capture": Kind.AUTHORIZED,
        "canceled": Kind.VOIDED,
    },
)
_PAID = BodyMap(
    type=("status",),
    meanings={
        "succeeded": Meaning(Kind.SUCCEEDED, replace(_PAYMENT, effect_id=(), amount=("amount_received",)))
    },
    otherwise=Where(),
)
_CHARGE = BodyMap(
    type=("status",),
    meanings={
        "succeeded": (
            Meaning(
                Kind.SUCCEEDED,
                replace(_PAYMENT, effect_id=(), amount=("amount_captured",)),
                ((("captured",), frozenset({"true"})),),
            ),
            Meaning(Kind.AUTHORIZED, replace(_PAYMENT, effect_id=())),
        ),
        "pending": Meaning(Kind.PENDING, _PAYMENT),
        "failed": Meaning(Kind.FAILED, _PAYMENT),
    },
    otherwise=Where(),
)
_OF_PAYMENT = replace(_PAYMENT, order_reference=None, live=None, transaction_id=(ASKED,), effect_id=("id",))
_REFUNDS = BodyMap(
    type=("status",),
    meanings={
        "succeeded": Meaning(Kind.REFUNDED, _OF_PAYMENT),
        "failed": Meaning(Kind.REFUND_FAILED, _OF_PAYMENT),
        "canceled": Meaning(Kind.REFUND_FAILED, _OF_PAYMENT),
    },
    otherwise=Where(),
)
_DISPUTES = BodyMap(
    type=("status",),
    meanings={
        "won": Meaning(Kind.DISPUTE_WON, _OF_PAYMENT),
        "warning_closed": Meaning(Kind.DISPUTE_WON, _OF_PAYMENT),
        "lost": Meaning(Kind.DISPUTE_LOST, _OF_PAYMENT),
        "needs_response": Meaning(Kind.DISPUTE_OPENED, _OF_PAYMENT),
        "under_review": Meaning(Kind.DISPUTE_OPENED, _OF_PAYMENT),
    },
    otherwise=Where(),
)
_REFUND_LIST = (Part(_REFUNDS, at=("data",), many=True),)
_DISPUTE_LIST = (Part(_DISPUTES, at=("data",), many=True),)


def _window(window: Window) -> dict[str, str]:
    return {
        "limit": "100",
        "created[gte]": str(int(window.start.timestamp())),
        "created[lt]": str(int(window.end.timestamp())),
    }


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    items = document.get("data")
    if document.get("has_more") is not True or not isinstance(items, list) or not items:
        return None
    return {**asked, "starting_after": str(items[-1].get("id"))}


_INTENT_ID, _CHARGE_ID = r"pi_.+", r"(?:ch|py)_.+"

STRIPE_API = ApiDescription(
    live="https://api.stripe.com",
    keys=KeyHeader(),
    calls=(
        (
            Call("/v1/payment_intents/{transaction}", (Part(_INTENT), Part(_PAID)), ids=_INTENT_ID),
            Call("/v1/charges/{transaction}", (Part(_CHARGE),), ids=_CHARGE_ID),
        ),
        (
            Call(
                "/v1/refunds",
                _REFUND_LIST,
                {"payment_intent": "{transaction}", "limit": "100"},
                ids=_INTENT_ID,
            ),
            Call("/v1/refunds", _REFUND_LIST, {"charge": "{transaction}", "limit": "100"}, ids=_CHARGE_ID),
        ),
        (
            Call(
                "/v1/disputes",
                _DISPUTE_LIST,
                {"payment_intent": "{transaction}", "limit": "100"},
                ids=_INTENT_ID,
            ),
            Call("/v1/disputes", _DISPUTE_LIST, {"charge": "{transaction}", "limit": "100"}, ids=_CHARGE_ID),
        ),
    ),
    reference=(("data", "object"), ()),
    listing=Listing("/v1/events", _window, _following, ("data",), events=True),
)
