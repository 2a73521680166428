"""``xendit``: ``x-callback-token``, a static text: it says who speaks and nothing of what is said.

Every event is confirmed by fetch. The event id stands in a header that nothing proves, so the identity
is what the event is about.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.amounts import MAJOR_NUMBER
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import CompositeId
from receiver.providers.paths import TRANSACTION, Computed, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.providers.tokens import TokenAuthentication

_PAYMENT = Where(
    order_reference=("data", "reference_id"),
    transaction_id=("data", "payment_id"),
    effect_id=TRANSACTION,
    amount=("data", "request_amount"),
    currency=("data", "currency"),
    account=("business_id",),
    occurred_at=("created",),
    unit=MAJOR_NUMBER,
)
_STATUS = replace(_PAYMENT, effect_id=None)


def _first(payment: object, own: object) -> object:
    return own if payment is None else payment


# What the API before v3 sent. The API that is asked may not know these payments: then a person sees it.
_OLDER = replace(
    _PAYMENT,
    transaction_id=Computed("data.payment_id or id", (("data", "payment_id"), ("data", "id")), _first),
    amount=("data", "amount"),
)
_OLDER_STATUS = replace(_OLDER, effect_id=None)
_REFUND = replace(_PAYMENT, effect_id=("data", "id"), amount=("data", "amount"))
_IDENTITY: tuple[Path, ...] = (("data", "id"), ("data", "payment_id"), ("data", "status"), ("created",))

XENDIT = Provider(
    name="xendit",
    authentication=TokenAuthentication("x-callback-token"),
    identity=CompositeId((("event",), *_IDENTITY), optional=_IDENTITY),
    body=BodyMap(
        type=("event",),
        meanings={
            "payment.authorization": Meaning(Kind.AUTHORIZED, _PAYMENT),
            "payment.capture": Meaning(Kind.SUCCEEDED, _PAYMENT),
            "payment.failure": Meaning(Kind.FAILED, _STATUS),
            # Of an authorization that had succeeded.
            "payment.expiry": Meaning(Kind.VOIDED, _PAYMENT),
            "payment.succeeded": Meaning(Kind.SUCCEEDED, _OLDER),
            "payment.awaiting_capture": Meaning(Kind.AUTHORIZED, _OLDER),
            "payment.pending": Meaning(Kind.PENDING, _OLDER_STATUS),
            "payment.failed": Meaning(Kind.FAILED, _OLDER_STATUS),
            "capture.succeeded": Meaning(Kind.SUCCEEDED, _OLDER),
            "refund.succeeded": Meaning(Kind.REFUNDED, _REFUND),
            "refund.failed": Meaning(Kind.REFUND_FAILED, _REFUND),
        },
        otherwise=_STATUS,
    ),
    never_carries=frozenset({"live", "sequence"}),
    secret_headers=frozenset({"x-callback-token"}),
    signed=(),
    confirm_by_fetch=True,
)
