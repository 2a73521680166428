"""``shopify``: ``X-Shopify-Hmac-Sha256``, the base64 HMAC-SHA256 of the body under the app's client secret.

Topic and ids stand in unsigned headers, so what an event is comes from the signed body: the resource's
own global id says order or refund, ``financial_status`` how the order stands. Shopify's order is the
transaction, since its events name no payment.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import CompositeId
from receiver.providers.paths import TRANSACTION, Computed, Place
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import MacScheme


def _resource(global_id: object, financial_status: object) -> str | None:
    """``order.paid`` of ``gid://shopify/Order/1`` with that status."""
    if not isinstance(global_id, str) or not global_id.startswith("gid://shopify/"):
        return None
    name = global_id.removeprefix("gid://shopify/").partition("/")[0].lower()
    return f"{name}.{financial_status}" if isinstance(financial_status, str) else name


def _given_back(transactions: object) -> list[dict[str, Any]]:
    if not isinstance(transactions, list) or not all(isinstance(each, dict) for each in transactions):
        raise ValueError("transactions is no list of objects")
    return [each for each in transactions if each.get("kind") == "refund" and each.get("status") == "success"]


def _refunded(transactions: object) -> str | None:
    given_back = _given_back(transactions)
    if not given_back:
        return None
    try:
        total = sum((Decimal(str(each["amount"])) for each in given_back), Decimal(0))
    except (KeyError, InvalidOperation) as error:
        raise ValueError("an amount cannot be read") from error
    return f"{total:f}"


def _refund_currency(transactions: object) -> str | None:
    found = {str(each.get("currency")) for each in _given_back(transactions)}
    if len(found) > 1:
        raise ValueError("a refund in two currencies")
    return found.pop() if found else None


_ORDER = Where(
    order_reference=("name",),
    transaction_id=("id",),
    effect_id=TRANSACTION,
    amount=("total_price",),
    currency=("currency",),
    live=("test",),
    occurred_at=("updated_at",),
    unit=MAJOR_TEXT,
    ids=facts.text_or_integer,
    mode=facts.test_mode,
)
_STATUS = replace(_ORDER, effect_id=None)
_REFUND = replace(
    _ORDER,
    order_reference=None,
    transaction_id=("order_id",),
    effect_id=("id",),
    amount=Computed("the refund's transactions", (("transactions",),), _refunded),
    currency=Computed("the refund's transactions' currency", (("transactions",),), _refund_currency),
    live=("test",),
    occurred_at=("created_at",),
)
_IDENTITY: tuple[Place, ...] = (("updated_at",), ("created_at",), ("financial_status",))

_SENT = (
    ("X-Shopify-Topic", "orders/updated"),
    ("X-Shopify-Shop-Domain", "example.myshopify.com"),
    ("X-Shopify-API-Version", "2025-07"),
    ("X-Shopify-Webhook-Id", "00000000-0000-0000-0000-000000000000"),
)

SHOPIFY = Provider(
    name="shopify",
    authentication=MacAuthentication(
        (
            MacScheme(
                header="X-Shopify-Hmac-Sha256",
                encoding="base64",
                required_headers=tuple(name for name, _ in _SENT),
            ),
        ),
        sent=_SENT,
    ),
    identity=CompositeId((("admin_graphql_api_id",), *_IDENTITY), optional=_IDENTITY),
    body=BodyMap(
        type=Computed(
            "admin_graphql_api_id and financial_status",
            (("admin_graphql_api_id",), ("financial_status",)),
            _resource,
        ),
        meanings={
            "order.pending": Meaning(Kind.PENDING, _STATUS),
            "order.authorized": Meaning(Kind.AUTHORIZED, _ORDER),
            "order.paid": Meaning(Kind.SUCCEEDED, _ORDER),
            "order.voided": Meaning(Kind.VOIDED, _ORDER),
            "order.expired": Meaning(Kind.FAILED, _STATUS),
            "refund": Meaning(Kind.REFUNDED, _REFUND),
        },
        otherwise=_STATUS,
    ),
    never_carries=frozenset({"account", "sequence", "live"}),
    reference_option=True,
)
