"""``square``: ``x-square-hmacsha256-signature``, the base64 HMAC-SHA256 of the configured URL and the body.

The URL is ``options.notification_url`` exactly as it stands at Square, never what a proxy makes of it.
One type covers success and failure, so the object's signed status tells them apart. The retired SHA-1
header is never looked at.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import BodyId
from receiver.providers.paths import TRANSACTION, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import MacScheme

_PAYMENT: Path = ("data", "object", "payment")
_REFUND: Path = ("data", "object", "refund")
_DISPUTE: Path = ("data", "object", "dispute")

_OF_PAYMENT = Where(
    order_reference=(*_PAYMENT, "reference_id"),
    transaction_id=(*_PAYMENT, "id"),
    effect_id=TRANSACTION,
    # Without the tip, which is the buyer's to choose and no part of the order.
    amount=(*_PAYMENT, "amount_money", "amount"),
    currency=(*_PAYMENT, "amount_money", "currency"),
    sequence=(*_PAYMENT, "version"),
    account=("merchant_id",),
    occurred_at=("created_at",),
)
_STATUS = replace(_OF_PAYMENT, effect_id=None)
_OF_REFUND = replace(
    _OF_PAYMENT,
    order_reference=None,
    transaction_id=(*_REFUND, "payment_id"),
    effect_id=(*_REFUND, "id"),
    amount=(*_REFUND, "amount_money", "amount"),
    currency=(*_REFUND, "amount_money", "currency"),
    sequence=None,
)
_OF_DISPUTE = replace(
    _OF_REFUND,
    transaction_id=(*_DISPUTE, "disputed_payment", "payment_id"),
    effect_id=(*_DISPUTE, "id"),
    amount=(*_DISPUTE, "amount_money", "amount"),
    currency=(*_DISPUTE, "amount_money", "currency"),
)


def _at(place: Path, *statuses: str) -> tuple[tuple[Path, frozenset[str]], ...]:
    return (((*place, "status"), frozenset(statuses)),)


_PAYMENTS = (
    Meaning(Kind.PENDING, _STATUS, _at(_PAYMENT, "PENDING")),
    Meaning(Kind.AUTHORIZED, _OF_PAYMENT, _at(_PAYMENT, "APPROVED")),
    Meaning(Kind.SUCCEEDED, _OF_PAYMENT, _at(_PAYMENT, "COMPLETED")),
    Meaning(Kind.VOIDED, _OF_PAYMENT, _at(_PAYMENT, "CANCELED")),
    Meaning(Kind.FAILED, _STATUS, _at(_PAYMENT, "FAILED")),
)
_REFUNDS = (
    Meaning(Kind.REFUNDED, _OF_REFUND, _at(_REFUND, "COMPLETED")),
    Meaning(Kind.REFUND_FAILED, _OF_REFUND, _at(_REFUND, "FAILED", "REJECTED")),
)
_STATE = (*_DISPUTE, "state")

SQUARE = Provider(
    name="square",
    authentication=MacAuthentication(
        (
            MacScheme(
                header="x-square-hmacsha256-signature",
                template="{config:notification_url}{body}",
                encoding="base64",
            ),
        )
    ),
    identity=BodyId(("event_id",)),
    body=BodyMap(
        meanings={
            "payment.created": _PAYMENTS,
            "payment.updated": _PAYMENTS,
            "refund.created": _REFUNDS,
            "refund.updated": _REFUNDS,
            "dispute.created": Meaning(Kind.DISPUTE_OPENED, _OF_DISPUTE),
            "dispute.state.updated": (
                Meaning(Kind.DISPUTE_WON, _OF_DISPUTE, ((_STATE, frozenset({"WON"})),)),
                Meaning(Kind.DISPUTE_LOST, _OF_DISPUTE, ((_STATE, frozenset({"LOST", "ACCEPTED"})),)),
            ),
        },
        otherwise=Where(account=("merchant_id",), occurred_at=("created_at",)),
    ),
    never_carries=frozenset({"live"}),
    signed=("options.notification_url", "body"),
    reference_option=True,
    option_names=frozenset({"notification_url"}),
    needed_options=frozenset({"notification_url"}),
)
