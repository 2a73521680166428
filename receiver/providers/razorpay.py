"""``razorpay``: ``X-Razorpay-Signature``, the hex HMAC-SHA256 of the body; the webhook's secret, not the
API key's.

The event id stands in an unsigned header, so the identity is the signed event, its entities and its
time. Older retries still carry the old secret after a change. ``notes`` is ``[]`` when empty.
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

_PAYMENT: Path = ("payload", "payment", "entity")
_REFUND: Path = ("payload", "refund", "entity")
_DISPUTE: Path = ("payload", "dispute", "entity")

_WHERE = Where(
    order_reference=(*_PAYMENT, "notes", "merchant_order"),
    transaction_id=(*_PAYMENT, "id"),
    effect_id=TRANSACTION,
    amount=(*_PAYMENT, "amount"),
    currency=(*_PAYMENT, "currency"),
    account=("account_id",),
    occurred_at=("created_at",),
    time=facts.unix_seconds,
)
_STATUS = replace(_WHERE, effect_id=None)
_OF_REFUND = replace(
    _WHERE,
    transaction_id=(*_REFUND, "payment_id"),
    effect_id=(*_REFUND, "id"),
    amount=(*_REFUND, "amount"),
    currency=(*_REFUND, "currency"),
)
_OF_DISPUTE = replace(
    _WHERE,
    transaction_id=(*_DISPUTE, "payment_id"),
    effect_id=(*_DISPUTE, "id"),
    amount=(*_DISPUTE, "amount"),
    currency=(*_DISPUTE, "currency"),
)

RAZORPAY = Provider(
    name="razorpay",
    authentication=MacAuthentication((MacScheme(header="X-Razorpay-Signature"),)),
    identity=CompositeId(
        (("event",), (*_PAYMENT, "id"), (*_REFUND, "id"), (*_DISPUTE, "id"), ("created_at",)),
        optional=((*_PAYMENT, "id"), (*_REFUND, "id"), (*_DISPUTE, "id")),
    ),
    body=BodyMap(
        type=("event",),
        meanings={
            "payment.authorized": Meaning(Kind.AUTHORIZED, _WHERE),
            "payment.captured": Meaning(Kind.SUCCEEDED, _WHERE),
            "order.paid": Meaning(Kind.SUCCEEDED, _WHERE),
            "payment.failed": Meaning(Kind.FAILED, _STATUS),
            "refund.processed": Meaning(Kind.REFUNDED, _OF_REFUND),
            "refund.failed": Meaning(Kind.REFUND_FAILED, _OF_REFUND),
            "payment.dispute.created": Meaning(Kind.DISPUTE_OPENED, _OF_DISPUTE),
            "payment.dispute.won": Meaning(Kind.DISPUTE_WON, _OF_DISPUTE),
            "payment.dispute.lost": Meaning(Kind.DISPUTE_LOST, _OF_DISPUTE),
        },
        otherwise=_STATUS,
        blanks_absent=True,
    ),
    never_carries=frozenset({"live", "sequence"}),
    reference_option=True,
)
