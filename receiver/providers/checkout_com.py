"""``checkout_com``: ``Cko-Signature``, the hex HMAC-SHA256 of the body under the workflow's signature key.

A capture, refund or void is known by its action's id. A dispute has an id of its own and names the
payment.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.amounts import Unit
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Where, meanings_of
from receiver.providers.identities import BodyId
from receiver.providers.paths import TRANSACTION
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import MacScheme

UNIT = Unit("minor", frozenset({"number"}), {"CLP": 2})
"""Checkout.com's exception: the Chilean peso is written with two decimals."""

_WHERE = Where(
    order_reference=("data", "reference"),
    transaction_id=("data", "id"),
    amount=("data", "amount"),
    currency=("data", "currency"),
    occurred_at=("created_on",),
    unit=UNIT,
)
_ACTION = ("data", "action_id")
_DISPUTE = replace(
    _WHERE, order_reference=("data", "payment_reference"), transaction_id=("data", "payment_id")
)

CHECKOUT_COM = Provider(
    name="checkout_com",
    authentication=MacAuthentication((MacScheme(header="Cko-Signature"),)),
    identity=BodyId(),
    body=BodyMap(
        meanings={
            **meanings_of(
                {
                    "payment_pending": Kind.PENDING,
                    "payment_capture_pending": Kind.PENDING,
                    "payment_approved": Kind.AUTHORIZED,
                    "payment_captured": Kind.CAPTURED,
                    "payment_declined": Kind.FAILED,
                    "payment_canceled": Kind.FAILED,
                    "payment_expired": Kind.FAILED,
                    "payment_voided": Kind.VOIDED,
                    "payment_refunded": Kind.REFUNDED,
                    "payment_refund_declined": Kind.REFUND_FAILED,
                },
                _WHERE,
                {
                    Kind.AUTHORIZED: TRANSACTION,
                    Kind.VOIDED: TRANSACTION,
                    Kind.CAPTURED: _ACTION,
                    Kind.REFUNDED: _ACTION,
                    Kind.REFUND_FAILED: _ACTION,
                },
            ),
            **meanings_of(
                {
                    "dispute_received": Kind.DISPUTE_OPENED,
                    "dispute_won": Kind.DISPUTE_WON,
                    "dispute_lost": Kind.DISPUTE_LOST,
                    "dispute_accepted": Kind.DISPUTE_LOST,
                    "dispute_expired": Kind.DISPUTE_LOST,
                },
                _DISPUTE,
                {
                    Kind.DISPUTE_OPENED: ("data", "id"),
                    Kind.DISPUTE_WON: ("data", "id"),
                    Kind.DISPUTE_LOST: ("data", "id"),
                },
            ),
        },
        otherwise=_WHERE,
    ),
    never_carries=frozenset({"account", "live", "sequence"}),
    reference_option=True,
)
