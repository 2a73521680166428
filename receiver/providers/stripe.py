"""``stripe``: ``Stripe-Signature: t=…,v1=…`` over ``{t}.{body}``, keyed with the whole text ``whsec_…``.

Stripe signs anew at each retry, and its own checks look at the past side alone. The transaction is the
PaymentIntent, in charge, refund and dispute events too; a charge without one is its own. A charge's
``amount_refunded`` is a running total.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers import facts
from receiver.providers.amounts import Unit
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import BodyId
from receiver.providers.paths import TRANSACTION, Computed, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import KeyValues, MacScheme, Timestamp

_OBJECT: Path = ("data", "object")

UNIT = Unit("minor", frozenset({"number"}), {"ISK": 2, "UGX": 2, "MGA": 0})
"""Stripe's exceptions: ISK and UGX are written with two decimals, MGA with none."""


def _intent_or_own(intent: object, own: object) -> object:
    return own if intent is None else intent


_OF_CHARGE = Computed(
    "data.object.payment_intent or id", ((*_OBJECT, "payment_intent"), (*_OBJECT, "id")), _intent_or_own
)
_OF_REFUND = Computed(
    "data.object.payment_intent or charge",
    ((*_OBJECT, "payment_intent"), (*_OBJECT, "charge")),
    _intent_or_own,
)

_INTENT = Where(
    order_reference=(*_OBJECT, "metadata", "order_id"),
    transaction_id=(*_OBJECT, "id"),
    effect_id=TRANSACTION,
    amount=(*_OBJECT, "amount"),
    currency=(*_OBJECT, "currency"),
    account=("account",),
    live=("livemode",),
    occurred_at=("created",),
    unit=UNIT,
    time=facts.unix_seconds,
)
_STATUS = replace(_INTENT, effect_id=None)
_CHARGE = replace(_INTENT, transaction_id=_OF_CHARGE)
_REFUND = replace(_INTENT, transaction_id=_OF_REFUND, effect_id=(*_OBJECT, "id"))
_REFUNDED = ((*_OBJECT, "status"), frozenset({"succeeded"}))
_REFUND_FAILED = ((*_OBJECT, "status"), frozenset({"failed", "canceled"}))
_REFUND_OUTCOMES = (
    Meaning(Kind.REFUNDED, _REFUND, (_REFUNDED,)),
    Meaning(Kind.REFUND_FAILED, _REFUND, (_REFUND_FAILED,)),
)
_CAPTURED = (*_OBJECT, "captured")

STRIPE = Provider(
    name="stripe",
    authentication=MacAuthentication(
        (
            MacScheme(
                header="Stripe-Signature",
                parse=KeyValues(",", "v1"),
                template="{ts}.{body}",
                timestamp=Timestamp(key="t", past=300, future=None),
            ),
        ),
        also=facts.utf8_without_bom,
    ),
    identity=BodyId(),
    body=BodyMap(
        meanings={
            "payment_intent.processing": Meaning(Kind.PENDING, _STATUS),
            "payment_intent.requires_action": Meaning(Kind.PENDING, _STATUS),
            "payment_intent.amount_capturable_updated": Meaning(Kind.AUTHORIZED, _INTENT),
            "payment_intent.succeeded": Meaning(
                Kind.SUCCEEDED, replace(_INTENT, amount=(*_OBJECT, "amount_received"))
            ),
            "payment_intent.payment_failed": Meaning(Kind.FAILED, _STATUS),
            "payment_intent.canceled": Meaning(Kind.VOIDED, _INTENT),
            "charge.pending": Meaning(Kind.PENDING, replace(_CHARGE, effect_id=None)),
            "charge.succeeded": (
                Meaning(Kind.SUCCEEDED, _CHARGE, ((_CAPTURED, frozenset({"true"})),)),
                Meaning(Kind.AUTHORIZED, _CHARGE, ((_CAPTURED, frozenset({"false"})),)),
            ),
            "charge.captured": Meaning(
                Kind.SUCCEEDED, replace(_CHARGE, amount=(*_OBJECT, "amount_captured"))
            ),
            "charge.failed": Meaning(Kind.FAILED, replace(_CHARGE, effect_id=None)),
            "charge.expired": Meaning(Kind.VOIDED, _CHARGE),
            "charge.refunded": Meaning(
                Kind.REFUND_TOTAL,
                replace(_CHARGE, effect_id=None, amount=None, refund_total=(*_OBJECT, "amount_refunded")),
            ),
            "refund.created": _REFUND_OUTCOMES,
            "refund.updated": _REFUND_OUTCOMES,
            "refund.failed": Meaning(Kind.REFUND_FAILED, _REFUND),
            "charge.refund.updated": _REFUND_OUTCOMES,
            "charge.dispute.created": Meaning(Kind.DISPUTE_OPENED, _REFUND),
            "charge.dispute.closed": (
                Meaning(
                    Kind.DISPUTE_WON, _REFUND, (((*_OBJECT, "status"), frozenset({"won", "warning_closed"})),)
                ),
                Meaning(Kind.DISPUTE_LOST, _REFUND, (((*_OBJECT, "status"), frozenset({"lost"})),)),
            ),
        },
        otherwise=Where(
            account=("account",), live=("livemode",), occurred_at=("created",), time=facts.unix_seconds
        ),
    ),
    never_carries=frozenset({"sequence"}),
    signed=("t", "body"),
    reference_option=True,
)
