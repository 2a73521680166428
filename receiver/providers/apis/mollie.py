"""Mollie's API, for both of its protocols: a payment with its refunds and chargebacks, and the newest
payments, since no window can be asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import KeyHeader
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.described_api import ASKED, PAYMENT, ApiDescription, Call, Listing, Part
from receiver.providers.mollie import authorized_before
from receiver.providers.paths import TRANSACTION, Computed
from receiver.providers.payment_api import Window
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
_ENDED = (
    Meaning(Kind.VOIDED, replace(_PAYMENT, effect_id=TRANSACTION), authorized_before(("authorizedAt",))),
    Meaning(Kind.FAILED, _PAYMENT),
)
_KNOWN = by_status(
    ("status",),
    _PAYMENT,
    {
        "open": Kind.PENDING,
        "pending": Kind.PENDING,
        "authorized": Kind.AUTHORIZED,
        "paid": Kind.SUCCEEDED,
        "failed": Kind.FAILED,
    },
)
_STATUSES = replace(_KNOWN, meanings={**_KNOWN.meanings, "canceled": _ENDED, "expired": _ENDED})
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


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    links = document.get("_links")
    following = links.get("next") if isinstance(links, dict) else None
    href = following.get("href") if isinstance(following, dict) else None
    if not isinstance(href, str):
        return None
    # Only the place is taken from the link: questions go to the address that is configured.
    begin = parse_qs(urlsplit(href).query).get("from")
    return {**asked, "from": begin[0]} if begin else None


def _passed(items: Sequence[Mapping[str, Any]], window: Window) -> bool:
    created = str(items[-1].get("createdAt")) if items else ""
    try:
        return datetime.fromisoformat(created) < window.start
    except (ValueError, TypeError):
        return False


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
    listing=Listing(
        "/v2/payments",
        lambda _window: {"limit": "250"},
        _following,
        ("_embedded", "payments"),
        # `amountRefunded` may count refunds that are still under way, so refunds are asked for one by one.
        parts=(Part(_STATUSES),),
        passed=_passed,
    ),
)

MOLLIE_CLASSIC_API = replace(MOLLIE_API, reference=((), ()))
