"""``flutterwave`` (v4): ``flutterwave-signature``, the base64 HMAC-SHA256 of the body. ``flutterwave_v3``:
``verif-hash``, a text of our choice sent back, which proves nothing of the body.

They are two providers, so that a v4 source never falls back to the weaker proof. Amounts are numbers in
major units.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_NUMBER
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import BodyId, CompositeId
from receiver.providers.paths import TRANSACTION, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.providers.tokens import TokenAuthentication
from receiver.signature import MacScheme

_V4 = Where(
    order_reference=("data", "reference"),
    transaction_id=("data", "id"),
    effect_id=TRANSACTION,
    amount=("data", "amount"),
    currency=("data", "currency"),
    occurred_at=("timestamp",),
    unit=MAJOR_NUMBER,
    ids=facts.text_or_integer,
    time=facts.unix_milliseconds,
)
_V3 = replace(
    _V4, order_reference=("data", "tx_ref"), occurred_at=("data", "created_at"), time=facts.occurred_at
)


def _at(*statuses: str) -> tuple[tuple[Path, frozenset[str]], ...]:
    return ((("data", "status"), frozenset(statuses)),)


def _charges(where: Where, paid: str) -> tuple[Meaning, ...]:
    status = replace(where, effect_id=None)
    return (
        Meaning(Kind.SUCCEEDED, where, _at(paid)),
        Meaning(Kind.PENDING, status, _at("pending")),
        Meaning(Kind.FAILED, status, _at("failed", "cancelled")),
    )


_REFUND = replace(_V4, order_reference=None, transaction_id=("data", "charge_id"), effect_id=("data", "id"))

FLUTTERWAVE = Provider(
    name="flutterwave",
    authentication=MacAuthentication((MacScheme(header="flutterwave-signature", encoding="base64"),)),
    identity=BodyId(("webhook_id",)),
    body=BodyMap(
        meanings={
            "charge.completed": _charges(_V4, "succeeded"),
            "refund.completed": (
                Meaning(Kind.REFUNDED, _REFUND, _at("succeeded", "completed")),
                Meaning(Kind.REFUND_FAILED, _REFUND, _at("failed")),
            ),
        },
        otherwise=replace(_V4, effect_id=None),
    ),
    never_carries=frozenset({"account", "live", "sequence"}),
)

FLUTTERWAVE_V3 = Provider(
    name="flutterwave_v3",
    authentication=TokenAuthentication("verif-hash"),
    identity=CompositeId((("event",), ("data", "id"), ("data", "status"))),
    body=BodyMap(
        type=("event",),
        meanings={"charge.completed": _charges(_V3, "successful")},
        otherwise=replace(_V3, effect_id=None),
    ),
    never_carries=frozenset({"account", "live", "sequence"}),
    secret_headers=frozenset({"verif-hash"}),
    signed=(),
    confirm_by_fetch=True,
)
