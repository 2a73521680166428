"""``midtrans``: ``signature_key`` in the body, the SHA-512 of order id, status code, amount and server key.

``transaction_status`` and ``fraud_status``, which say what happened, are unsigned, and the three signed
fields are joined without any separator: every event is confirmed by the status call. Times are UTC+7
and name no zone.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.envelopes import JsonObject
from receiver.providers.field_digest import FieldDigest
from receiver.providers.identities import CompositeId
from receiver.providers.paths import TRANSACTION, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import MacScheme

_PAID = Where(
    order_reference=("order_id",),
    transaction_id=("transaction_id",),
    effect_id=TRANSACTION,
    amount=("gross_amount",),
    currency=("currency",),
    account=("merchant_id",),
    occurred_at=("transaction_time",),
    unit=MAJOR_TEXT,
    time=facts.local_time(7),
)
_STATUS = replace(_PAID, effect_id=None)

CAPTURED: tuple[tuple[Path, frozenset[str]], ...] = (
    (("payment_type",), frozenset({"credit_card"})),
    (("fraud_status",), frozenset({"accept"})),
)
"""A card payment that was accepted was captured, which counts as paid: cancelled, its money is gone."""

MIDTRANS = Provider(
    name="midtrans",
    authentication=FieldDigest(
        envelope=JsonObject(),
        signature=("signature_key",),
        fields=(
            (("order_id",), r".+"),
            (("status_code",), r"[2-5][0-9]{2}"),
            (("gross_amount",), r"[0-9]+\.[0-9]{2}"),
        ),
        join="",
        scheme=MacScheme(header="", algorithm="sha512"),
        keyed="suffix",
    ),
    identity=CompositeId((("order_id",), ("transaction_status",), ("transaction_id",))),
    body=BodyMap(
        type=("transaction_status",),
        meanings={
            "authorize": Meaning(Kind.AUTHORIZED, _PAID),
            "capture": Meaning(Kind.SUCCEEDED, _PAID),
            "settlement": Meaning(Kind.SUCCEEDED, _PAID),
            "pending": Meaning(Kind.PENDING, _STATUS),
            "deny": Meaning(Kind.FAILED, _STATUS),
            "expire": Meaning(Kind.FAILED, _STATUS),
            "failure": Meaning(Kind.FAILED, _STATUS),
            "cancel": (Meaning(Kind.REFUNDED, _PAID, CAPTURED), Meaning(Kind.VOIDED, _PAID)),
            "refund": Meaning(Kind.REFUNDED, _STATUS),
            "chargeback": Meaning(Kind.DISPUTE_LOST, _PAID),
            # Of how much is not said: a person looks.
            "partial_chargeback": Meaning(Kind.DISPUTE_OPENED, _PAID),
            "partial_refund": Meaning(Kind.REFUNDED, replace(_STATUS, amount=None)),
        },
        otherwise=_STATUS,
    ),
    never_carries=frozenset({"live", "sequence"}),
    signed=("order_id", "status_code", "gross_amount"),
    confirm_by_fetch=True,
)
