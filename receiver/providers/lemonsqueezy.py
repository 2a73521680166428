"""``lemonsqueezy``: ``X-Signature``, the hex HMAC-SHA256 of the body; upper case passes at the vendor too.

There is no sure event id: the identity is the event, its object and when that changed. Refunds have no
id; the object carries their running total.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers import facts
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import CompositeId
from receiver.providers.paths import TRANSACTION, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import MacScheme

_ATTRIBUTES: Path = ("data", "attributes")

_ORDER = Where(
    order_reference=("meta", "custom_data", "order_ref"),
    transaction_id=("data", "id"),
    effect_id=TRANSACTION,
    amount=(*_ATTRIBUTES, "total"),
    currency=(*_ATTRIBUTES, "currency"),
    account=(*_ATTRIBUTES, "store_id"),
    live=("meta", "test_mode"),
    occurred_at=(*_ATTRIBUTES, "updated_at"),
    ids=facts.text_or_integer,
    mode=facts.test_mode,
)
_STATUS = replace(_ORDER, effect_id=None)


def _at(*statuses: str) -> tuple[tuple[Path, frozenset[str]], ...]:
    return (((*_ATTRIBUTES, "status"), frozenset(statuses)),)


LEMONSQUEEZY = Provider(
    name="lemonsqueezy",
    authentication=MacAuthentication((MacScheme(header="X-Signature", any_case=True),)),
    identity=CompositeId(
        (("meta", "event_name"), ("data", "type"), ("data", "id"), (*_ATTRIBUTES, "updated_at")),
        optional=((*_ATTRIBUTES, "updated_at"),),
    ),
    body=BodyMap(
        type=("meta", "event_name"),
        meanings={
            "order_created": (
                Meaning(Kind.SUCCEEDED, _ORDER, _at("paid")),
                Meaning(Kind.PENDING, _STATUS, _at("pending")),
                Meaning(Kind.FAILED, _STATUS, _at("failed")),
            ),
            "order_refunded": (
                Meaning(
                    Kind.REFUND_TOTAL,
                    replace(_STATUS, amount=None, refund_total=(*_ATTRIBUTES, "refunded_amount")),
                ),
            ),
        },
        otherwise=_STATUS,
    ),
    never_carries=frozenset({"sequence"}),
    reference_option=True,
)
