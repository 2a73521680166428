"""Midtrans's API: the status call. A capture that fraud detection holds is pending; refunds are a total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.api_documents import running_total
from receiver.providers.api_keys import Pair
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.described_api import ApiDescription, Call, Part
from receiver.providers.midtrans import CAPTURED
from receiver.providers.paths import TRANSACTION
from receiver.providers.payment_api import NotFound, Unavailable
from receiver.providers.payment_event import Kind

_STATUS = Where(
    order_reference=("order_id",),
    transaction_id=("transaction_id",),
    amount=("gross_amount",),
    currency=("currency",),
    account=("merchant_id",),
    occurred_at=("transaction_time",),
    unit=MAJOR_TEXT,
    time=facts.local_time(7),
)
_PAID = Meaning(Kind.SUCCEEDED, replace(_STATUS, effect_id=TRANSACTION))
_FAILED = Meaning(Kind.FAILED, _STATUS)
_STATUSES = BodyMap(
    type=("transaction_status",),
    meanings={
        "authorize": Meaning(Kind.AUTHORIZED, replace(_STATUS, effect_id=TRANSACTION)),
        "capture": (
            Meaning(Kind.PENDING, _STATUS, ((("fraud_status",), frozenset({"challenge"})),)),
            _PAID,
        ),
        "settlement": _PAID,
        "refund": _PAID,
        "partial_refund": _PAID,
        "chargeback": _PAID,
        "partial_chargeback": _PAID,
        "pending": Meaning(Kind.PENDING, _STATUS),
        "deny": _FAILED,
        "expire": _FAILED,
        "failure": _FAILED,
        "cancel": (
            Meaning(Kind.REFUNDED, replace(_STATUS, effect_id=TRANSACTION), CAPTURED),
            Meaning(Kind.VOIDED, replace(_STATUS, effect_id=TRANSACTION)),
        ),
    },
    otherwise=Where(),
)

_CHARGED_BACK = BodyMap(
    type=("transaction_status",),
    meanings={
        "chargeback": Meaning(Kind.DISPUTE_LOST, replace(_STATUS, effect_id=TRANSACTION)),
        "partial_chargeback": Meaning(Kind.DISPUTE_OPENED, replace(_STATUS, effect_id=TRANSACTION)),
    },
    otherwise=Where(),
)
_PARTS = (Part(_STATUSES), Part(running_total(("refund_amount",), _STATUS)), Part(_CHARGED_BACK))


def _judge(document: Mapping[str, Any]) -> NotFound | Unavailable | None:
    """It may say 200 whatever happened; ``status_code`` tells."""
    code = str(document.get("status_code", ""))
    if code == "404":
        return NotFound("the API does not know this payment", 404)
    if code == "401":
        return Unavailable("unauthorized", "the API refuses our credentials (401)")
    return Unavailable("server_error", f"the API failed ({code})") if code[:1] == "5" else None


MIDTRANS_API = ApiDescription(
    live="https://api.midtrans.com",
    sandbox="https://api.sandbox.midtrans.com",
    keys=Pair("server_key"),
    calls=(
        (
            Call("/v2/{transaction}/status", _PARTS, judge=_judge),
            Call("/v2/{reference}/status", _PARTS, judge=_judge),
        ),
    ),
)
