"""``paddle``: ``Paddle-Signature: ts=…;h1=…`` over ``{ts}:{body}``, keyed with the whole secret's text.

Paddle's own window is 5 s; a source may widen it. Amounts are texts in minor units. Refunds and
chargebacks are adjustments, which name the transaction and not the order.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.amounts import MINOR_TEXT
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import BodyId
from receiver.providers.paths import TRANSACTION, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import KeyValues, MacScheme, Timestamp

_PAID = Where(
    order_reference=("data", "custom_data", "order_id"),
    transaction_id=("data", "id"),
    effect_id=TRANSACTION,
    amount=("data", "details", "totals", "grand_total"),
    currency=("data", "currency_code"),
    occurred_at=("occurred_at",),
    unit=MINOR_TEXT,
)
_STATUS = replace(_PAID, effect_id=None)
_ADJUSTMENT = replace(
    _PAID,
    order_reference=None,
    transaction_id=("data", "transaction_id"),
    effect_id=("data", "id"),
    amount=("data", "totals", "total"),
)
# A chargeback and its reversal are two adjustments: the transaction is what they have in common.
_CHARGEBACK = replace(_ADJUSTMENT, effect_id=TRANSACTION)
_ACTION: Path = ("data", "action")
_APPROVED = (("data", "status"), frozenset({"approved"}))
_UNDONE = (("data", "status"), frozenset({"rejected", "reversed"}))
_ADJUSTMENTS = (
    Meaning(Kind.REFUNDED, _ADJUSTMENT, ((_ACTION, frozenset({"refund"})), _APPROVED)),
    Meaning(Kind.REFUND_FAILED, _ADJUSTMENT, ((_ACTION, frozenset({"refund"})), _UNDONE)),
    Meaning(
        Kind.DISPUTE_OPENED,
        _CHARGEBACK,
        ((_ACTION, frozenset({"chargeback", "chargeback_warning"})), _APPROVED),
    ),
    Meaning(Kind.DISPUTE_WON, _CHARGEBACK, ((_ACTION, frozenset({"chargeback_reverse"})), _APPROVED)),
)

PADDLE = Provider(
    name="paddle",
    authentication=MacAuthentication(
        (
            MacScheme(
                header="Paddle-Signature",
                parse=KeyValues(";", "h1"),
                template="{ts}:{body}",
                timestamp=Timestamp(key="ts", past=5, future=5),
            ),
        )
    ),
    identity=BodyId(("event_id",)),
    body=BodyMap(
        type=("event_type",),
        meanings={
            "transaction.paid": Meaning(Kind.SUCCEEDED, _PAID),
            "transaction.completed": Meaning(Kind.SUCCEEDED, _PAID),
            "transaction.payment_failed": Meaning(Kind.FAILED, _STATUS),
            "transaction.past_due": Meaning(Kind.FAILED, _STATUS),
            "transaction.canceled": Meaning(Kind.FAILED, _STATUS),
            "adjustment.created": _ADJUSTMENTS,
            "adjustment.updated": _ADJUSTMENTS,
        },
        otherwise=Where(occurred_at=("occurred_at",)),
    ),
    never_carries=frozenset({"account", "live", "sequence"}),
    signed=("ts", "body"),
    reference_option=True,
)
