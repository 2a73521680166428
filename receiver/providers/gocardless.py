"""``gocardless``: ``Webhook-Signature``, the hex HMAC-SHA256 of a body with up to 250 events.

An event says what happened to which payment or refund and never how much: it counts once the payment
is read back. A bad signature is answered 498. The ``Origin`` header, which tells live from sandbox, is
unsigned.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Where, meanings_of
from receiver.providers.envelopes import JsonItems
from receiver.providers.identities import BodyId
from receiver.providers.paths import TRANSACTION, Computed
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Answers, Provider
from receiver.signature import MacScheme


def _type(resource: object, action: object) -> str | None:
    return f"{resource}.{action}" if isinstance(resource, str) and isinstance(action, str) else None


_WHERE = Where(
    order_reference=("resource_metadata", "order_id"),
    transaction_id=("links", "payment"),
    account=("links", "organisation"),
    occurred_at=("created_at",),
)

GOCARDLESS = Provider(
    name="gocardless",
    authentication=MacAuthentication((MacScheme(header="Webhook-Signature"),)),
    identity=BodyId(),
    body=BodyMap(
        type=Computed("resource_type and action", (("resource_type",), ("action",)), _type),
        meanings={
            **meanings_of(
                {
                    "payments.created": Kind.PENDING,
                    "payments.submitted": Kind.PENDING,
                    "payments.confirmed": Kind.SUCCEEDED,
                    "payments.failed": Kind.FAILED,
                    "payments.cancelled": Kind.FAILED,
                    "payments.customer_approval_denied": Kind.FAILED,
                    "payments.charged_back": Kind.DISPUTE_LOST,
                    "payments.chargeback_cancelled": Kind.DISPUTE_WON,
                },
                _WHERE,
                {
                    Kind.SUCCEEDED: TRANSACTION,
                    Kind.DISPUTE_LOST: TRANSACTION,
                    Kind.DISPUTE_WON: TRANSACTION,
                },
            ),
            **meanings_of(
                {
                    "refunds.paid": Kind.REFUNDED,
                    "refunds.failed": Kind.REFUND_FAILED,
                    "refunds.bounced": Kind.REFUND_FAILED,
                    "refunds.funds_returned": Kind.REFUND_FAILED,
                },
                replace(_WHERE, order_reference=None),
                {Kind.REFUNDED: ("links", "refund"), Kind.REFUND_FAILED: ("links", "refund")},
            ),
        },
        otherwise=_WHERE,
    ),
    envelope=JsonItems(("events",)),
    never_carries=frozenset({"live", "sequence", "amount_minor", "currency"}),
    answers=Answers(accepted=204, body="", unverified=498),
    confirm_by_fetch=True,
    reference_option=True,
)
