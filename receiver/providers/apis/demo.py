"""The demo provider's API: one JSON object a payment, and the events as they were sent.

``GET /payments/<transaction id>`` answers ``transaction_id, order_id, amount, currency, status, sequence,
account, live, created_at`` with ``captures``, ``refunds`` and ``disputes``, lists of ``id, amount, status``;
``GET /payments?order_id=REFERENCE`` answers ``payments``, a list of such objects;
``GET /events?from=&to=&after=`` answers ``events`` (bodies of messages) and ``next`` (an event id, or
null). Amounts are minor units. Statuses: payments ``pending, failed, authorized, paid, voided``; refunds
``succeeded, failed, pending``; disputes ``opened, won, lost``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.described_api import PAYMENT, ApiDescription, Call, Listing, Part
from receiver.providers.payment_api import Window
from receiver.providers.payment_event import Kind

_WHERE = Where(
    order_reference=("order_id",),
    transaction_id=("transaction_id",),
    amount=("amount",),
    currency=("currency",),
    sequence=("sequence",),
    account=("account",),
    live=("live",),
    occurred_at=("created_at",),
)
_PART = Where(
    order_reference=(PAYMENT, "order_id"),
    transaction_id=(PAYMENT, "transaction_id"),
    effect_id=("id",),
    amount=("amount",),
    currency=(PAYMENT, "currency"),
    account=(PAYMENT, "account"),
    live=(PAYMENT, "live"),
)
_PAYMENTS = by_status(
    ("status",),
    _WHERE,
    {
        "pending": Kind.PENDING,
        "failed": Kind.FAILED,
        "authorized": Kind.AUTHORIZED,
        "paid": Kind.SUCCEEDED,
        "voided": Kind.VOIDED,
    },
)


def _parts(kinds: Mapping[str, Kind]) -> BodyMap:
    meanings = {status: Meaning(kind, _PART) for status, kind in kinds.items()}
    return BodyMap(type=("status",), meanings=meanings, otherwise=Where())


def _window(window: Window) -> dict[str, str]:
    return {"from": window.start.isoformat(), "to": window.end.isoformat()}


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    after = document.get("next")
    return {**asked, "after": after} if isinstance(after, str) else None


DEMO_API = ApiDescription(
    # The address is the merchant's own trial: `api_url` names it.
    live="http://127.0.0.1:8000/demo-api",
    keys=KeyHeader(),
    calls=(
        (
            Call(
                "/payments/{transaction}",
                (
                    Part(_PAYMENTS),
                    Part(_parts({"succeeded": Kind.CAPTURED}), at=("captures",), many=True),
                    Part(
                        _parts({"succeeded": Kind.REFUNDED, "failed": Kind.REFUND_FAILED}),
                        at=("refunds",),
                        many=True,
                    ),
                    Part(
                        _parts(
                            {
                                "opened": Kind.DISPUTE_OPENED,
                                "won": Kind.DISPUTE_WON,
                                "lost": Kind.DISPUTE_LOST,
                            }
                        ),
                        at=("disputes",),
                        many=True,
                    ),
                ),
            ),
            Call(
                "/payments",
                (Part(_PAYMENTS, at=("payments",), many=True),),
                query={"order_id": "{reference}"},
            ),
        ),
    ),
    listing=Listing("/events", _window, _following, ("events",), events=True),
)
