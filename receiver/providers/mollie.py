"""``mollie`` (next-gen): ``X-Mollie-Signature``, the hex HMAC-SHA256 of the body, with or without
``sha256=``. ``mollie_classic``: a form with an object's id and no proof at all.

They are two providers: a next-gen source without a signature is refused, never read as a classic one.
A next-gen event without its snapshot, and every classic one, counts only once it is read back.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where, meanings_of
from receiver.providers.envelopes import Form
from receiver.providers.identities import BodyId
from receiver.providers.paths import TRANSACTION, Computed, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.providers.tokens import UnsignedHint
from receiver.signature import MacScheme, Plain

_ENTITY: Path = ("_embedded", "entity")
_OBJECT_ID = r"[a-z]{2,8}_[A-Za-z0-9]{1,64}"

_WHERE = Where(
    order_reference=(*_ENTITY, "description"),
    transaction_id=("entityId",),
    amount=(*_ENTITY, "amount", "value"),
    currency=(*_ENTITY, "amount", "currency"),
    live=(*_ENTITY, "mode"),
    occurred_at=("createdAt",),
    unit=MAJOR_TEXT,
    mode=facts.mode(frozenset({"live"}), frozenset({"test"})),
)


def authorized_before(at: Path) -> tuple[tuple[Computed, frozenset[str]], ...]:
    """The condition that the payment was authorized: then what ends it voids that, and is no mere failure."""
    said = Computed("authorizedAt", (at,), lambda found: None if found is None else "authorized")
    return ((said, frozenset({"authorized"})),)


_REFUND = replace(
    _WHERE, order_reference=None, transaction_id=(*_ENTITY, "paymentId"), effect_id=("entityId",)
)
_ENDED = (
    Meaning(
        Kind.VOIDED, replace(_WHERE, effect_id=TRANSACTION), authorized_before((*_ENTITY, "authorizedAt"))
    ),
    Meaning(Kind.FAILED, _WHERE),
)

MOLLIE = Provider(
    name="mollie",
    authentication=MacAuthentication((MacScheme(header="X-Mollie-Signature", parse=Plain("sha256=")),)),
    identity=BodyId(),
    body=BodyMap(
        meanings={
            "refund.refunded": Meaning(Kind.REFUNDED, _REFUND),
            "refund.failed": Meaning(Kind.REFUND_FAILED, _REFUND),
            "refund.canceled": Meaning(Kind.REFUND_FAILED, _REFUND),
            "payment.canceled": _ENDED,
            "payment.expired": _ENDED,
            **meanings_of(
                {
                    "payment-link.paid": Kind.SUCCEEDED,
                    "payment.paid": Kind.SUCCEEDED,
                    "payment.authorized": Kind.AUTHORIZED,
                    "payment.pending": Kind.PENDING,
                    "payment.failed": Kind.FAILED,
                },
                _WHERE,
                {Kind.SUCCEEDED: TRANSACTION, Kind.AUTHORIZED: TRANSACTION},
            ),
        },
        otherwise=_WHERE,
    ),
    never_carries=frozenset({"account", "sequence"}),
    confirm_without=_ENTITY,
    reference_option=True,
)

MOLLIE_CLASSIC = Provider(
    name="mollie_classic",
    authentication=UnsignedHint("id", _OBJECT_ID),
    identity=BodyId(("id",), pattern=_OBJECT_ID, per_receipt=True),
    body=BodyMap(type=None, meanings={}, otherwise=Where(transaction_id=("id",))),
    envelope=Form(),
    never_carries=frozenset({"account", "live", "sequence"}),
    signed=(),
    confirm_by_fetch=True,
    # Of the payment that is read back: its description, unless the source names another place.
    reference_option=True,
)
