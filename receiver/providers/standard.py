"""``standard``: Standard Webhooks, under its own header names or under Svix's, never mixed.

The id is the signed ``webhook-id``. Payloads are the sender's own; this reads those of the shape
``{"type", "timestamp", "data": {"payment_id", "order_id", "amount", "currency", …}}``. A shared secret
verifies ``v1`` entries, a public key (``whpk_``) ``v1a``; entries of other versions are skipped. A
``data.status`` is never read.
"""

from __future__ import annotations

from receiver.providers.body_map import BodyMap, Where, meanings_of
from receiver.providers.ed25519 import MacOrPublicKey
from receiver.providers.identities import HeaderId
from receiver.providers.paths import TRANSACTION
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import MacScheme, SignatureList, Timestamp


def standard_scheme(prefix: str = "webhook") -> MacScheme:
    """The scheme with the headers ``{prefix}-id``, ``-timestamp`` and ``-signature``."""
    return MacScheme(
        header=f"{prefix}-signature",
        parse=SignatureList(separator=" ", prefix="v1,"),
        template=f"{{header:{prefix}-id}}.{{ts}}.{{body}}",
        encoding="base64",
        key="base64",
        key_prefix="whsec_",
        timestamp=Timestamp(header=f"{prefix}-timestamp"),
    )


_WHERE = Where(
    order_reference=("data", "order_id"),
    transaction_id=("data", "payment_id"),
    amount=("data", "amount"),
    currency=("data", "currency"),
    refund_total=("data", "refund_total"),
    occurred_at=("timestamp",),
)

STANDARD = Provider(
    name="standard",
    authentication=MacOrPublicKey((standard_scheme("webhook"), standard_scheme("svix"))),
    identity=HeaderId((("webhook-signature", "webhook-id"), ("svix-signature", "svix-id"))),
    body=BodyMap(
        otherwise=_WHERE,
        meanings=meanings_of(
            {
                "payment.pending": Kind.PENDING,
                "payment.authorized": Kind.AUTHORIZED,
                "payment.captured": Kind.CAPTURED,
                "payment.succeeded": Kind.SUCCEEDED,
                "payment.failed": Kind.FAILED,
                "payment.voided": Kind.VOIDED,
                "refund.completed": Kind.REFUNDED,
                "refund.failed": Kind.REFUND_FAILED,
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
    ),
    never_carries=frozenset({"account", "live", "sequence"}),
    signed=("webhook-id", "webhook-timestamp", "body"),
)
