"""PayPal's API: captures, authorizations, refunds and disputes, each by its own id, and the events of a
window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.api_documents import by_status
from receiver.providers.api_keys import ClientCredentials
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.described_api import PAYMENT, ApiDescription, Call, Listing, Part
from receiver.providers.paths import Computed, Path, Place
from receiver.providers.payment_api import Window
from receiver.providers.payment_event import Kind
from receiver.providers.paypal import PAYPAL, captured_of

_PAYMENT = Where(
    order_reference=("custom_id",),
    transaction_id=("id",),
    amount=("amount", "value"),
    currency=("amount", "currency_code"),
    occurred_at=("create_time",),
    unit=MAJOR_TEXT,
)
_CAPTURES = by_status(
    ("status",),
    _PAYMENT,
    {
        "COMPLETED": Kind.SUCCEEDED,
        "PARTIALLY_REFUNDED": Kind.SUCCEEDED,
        "REFUNDED": Kind.SUCCEEDED,
        "PENDING": Kind.PENDING,
        "DECLINED": Kind.FAILED,
        "FAILED": Kind.FAILED,
    },
)
_AUTHORIZATIONS = by_status(
    ("status",),
    _PAYMENT,
    {
        "CREATED": Kind.AUTHORIZED,
        "CAPTURED": Kind.AUTHORIZED,
        "PARTIALLY_CAPTURED": Kind.AUTHORIZED,
        "PENDING": Kind.PENDING,
        "DENIED": Kind.FAILED,
        "VOIDED": Kind.VOIDED,
    },
)
_REFUNDS = by_status(
    ("status",),
    replace(_PAYMENT, transaction_id=Computed("the capture in links", (("links",),), captured_of)),
    {"COMPLETED": Kind.REFUNDED, "FAILED": Kind.REFUND_FAILED, "CANCELLED": Kind.REFUND_FAILED},
    effect=("id",),
)
_DISPUTE = Where(
    order_reference=("disputed_transactions", 0, "custom"),
    transaction_id=("disputed_transactions", 0, "seller_transaction_id"),
    effect_id=("dispute_id",),
    amount=("dispute_amount", "value"),
    currency=("dispute_amount", "currency_code"),
    occurred_at=("create_time",),
    unit=MAJOR_TEXT,
)
_OUTCOME: Path = ("dispute_outcome", "outcome_code")
_LOST = frozenset({"RESOLVED_BUYER_FAVOUR", "ACCEPTED"})
_WON = frozenset({"RESOLVED_SELLER_FAVOUR", "RESOLVED_WITH_PAYOUT", "CANCELED_BY_BUYER", "DENIED"})
_DISPUTES = BodyMap(
    type=Computed("status", (("status",),), lambda s: "resolved" if s == "RESOLVED" else "open"),
    meanings={
        "open": Meaning(Kind.DISPUTE_OPENED, _DISPUTE),
        "resolved": (
            Meaning(Kind.DISPUTE_LOST, _DISPUTE, ((_OUTCOME, _LOST),)),
            Meaning(Kind.DISPUTE_WON, _DISPUTE, ((_OUTCOME, _WON),)),
        ),
    },
    otherwise=Where(),
)


def _listed() -> BodyMap:
    """The messages' own map, for their resource as the document with the message around it beside: so a
    source's ``order_reference`` holds for both alike.
    """

    def path(said: Path) -> Path:
        return said[1:] if said[:1] == ("resource",) else (PAYMENT, *said)

    def place(said: Place) -> Place:
        if isinstance(said, Computed):
            return replace(said, paths=tuple(path(each) for each in said.paths))
        return said if not said else path(said)

    def where(said: Where) -> Where:
        return replace(
            said,
            order_reference=place(said.order_reference),
            transaction_id=place(said.transaction_id),
            effect_id=place(said.effect_id),
            amount=place(said.amount),
            currency=place(said.currency),
            occurred_at=place(said.occurred_at),
        )

    meanings = {
        name: tuple(
            replace(meaning, when=tuple((place(at), values) for at, values in meaning.when))
            for meaning in several
        )
        for name, several in PAYPAL.body.several.items()
    }
    return replace(PAYPAL.body, type=place(PAYPAL.body.type), meanings=meanings).changed(where)


def _window(window: Window) -> dict[str, str]:
    # Both ends count there.
    return {
        "start_time": f"{window.start.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "end_time": f"{window.end.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "page_size": "300",
    }


def _following(document: Mapping[str, Any], asked: Mapping[str, str]) -> dict[str, str] | None:
    links, events = document.get("links"), document.get("events")
    for link in links if isinstance(links, list) and events else ():
        if isinstance(link, dict) and link.get("rel") == "next" and isinstance(link.get("href"), str):
            # Only the query is taken from the link: questions go to the address that is configured.
            following = {**asked, **dict(parse_qsl(urlsplit(link["href"]).query))}
            return following if following != asked else None
    return None


PAYPAL_API = ApiDescription(
    live="https://api-m.paypal.com",
    sandbox="https://api-m.sandbox.paypal.com",
    keys=ClientCredentials("/v1/oauth2/token"),
    calls=(
        (
            Call(
                "/v2/payments/refunds/{effect}",
                (Part(_REFUNDS),),
                claimed=frozenset({Kind.REFUNDED, Kind.REFUND_FAILED}),
            ),
            Call(
                "/v1/customer/disputes/{effect}",
                (Part(_DISPUTES),),
                claimed=frozenset({Kind.DISPUTE_OPENED, Kind.DISPUTE_WON, Kind.DISPUTE_LOST}),
            ),
            Call(
                "/v2/payments/authorizations/{transaction}",
                (Part(_AUTHORIZATIONS),),
                claimed=frozenset({Kind.AUTHORIZED, Kind.VOIDED}),
            ),
            Call("/v2/payments/captures/{transaction}", (Part(_CAPTURES),)),
        ),
    ),
    reference=(("resource",), ()),
    listing=Listing(
        "/v1/notifications/webhooks-events",
        _window,
        _following,
        ("events",),
        parts=(Part(_listed(), at=("resource",)),),
    ),
)
