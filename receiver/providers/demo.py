"""``demo``: the home protocol that signs its timestamp too.

``X-Timestamp`` is unix seconds, ``X-Signature`` is ``v1=<hex>[,v1=<hex>]`` over ``v1:{time}:{body}``. The
leading ``v1:`` keeps it apart from ``lesson``, whose MAC over a body can never be read as one of these.
"""

from __future__ import annotations

from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Where, meanings_of
from receiver.providers.identities import BodyId
from receiver.providers.paths import TRANSACTION
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import MacScheme, SignatureList, Timestamp

_WHERE = Where(
    order_reference=("data", "order_id"),
    transaction_id=("data", "transaction_id"),
    amount=("data", "amount"),
    currency=("data", "currency"),
    refund_total=("data", "refund_total"),
    sequence=("sequence",),
    account=("account",),
    live=("live",),
    occurred_at=("created_at",),
)

HOME_BODY = BodyMap(
    otherwise=_WHERE,
    meanings=meanings_of(
        {
            "payment.pending": Kind.PENDING,
            "payment.authorized": Kind.AUTHORIZED,
            "payment.captured": Kind.CAPTURED,
            "payment.succeeded": Kind.SUCCEEDED,
            "payment.failed": Kind.FAILED,
            "payment.voided": Kind.VOIDED,
            "payment.refunded": Kind.REFUNDED,
            "payment.refund_failed": Kind.REFUND_FAILED,
            "dispute.opened": Kind.DISPUTE_OPENED,
            "dispute.won": Kind.DISPUTE_WON,
            "dispute.lost": Kind.DISPUTE_LOST,
        },
        _WHERE,
        {
            Kind.AUTHORIZED: TRANSACTION,
            Kind.SUCCEEDED: TRANSACTION,
            Kind.VOIDED: TRANSACTION,
            Kind.CAPTURED: ("data", "capture_id"),
            Kind.REFUNDED: ("data", "refund_id"),
            Kind.REFUND_FAILED: ("data", "refund_id"),
            Kind.DISPUTE_OPENED: ("data", "dispute_id"),
            Kind.DISPUTE_WON: ("data", "dispute_id"),
            Kind.DISPUTE_LOST: ("data", "dispute_id"),
        },
    ),
)
"""The body of both home protocols."""

DEMO = Provider(
    name="demo",
    authentication=MacAuthentication(
        (
            MacScheme(
                header="X-Signature",
                parse=SignatureList(separator=",", prefix="v1="),
                template="v1:{ts}:{body}",
                timestamp=Timestamp(header="X-Timestamp"),
            ),
        )
    ),
    identity=BodyId(),
    body=HOME_BODY,
    signed=("X-Timestamp", "body"),
)
