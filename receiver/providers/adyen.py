"""``adyen``: payments, a batch of items that each carry their own signature over eight fields.

Everything else in an item is unsigned and is not read: ``live``, ``eventDate``, ``reason``,
``additionalData``. Only the merchant's reference may hold a colon, so that no border between two
fields can be moved. With ``options.capture = "manual"`` an authorisation is one and a capture pays; by
default an authorisation is the payment. ``adyen_banking`` signs the body in a header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from receiver.providers.amounts import Unit
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.envelopes import JsonItems
from receiver.providers.field_digest import FieldDigest
from receiver.providers.identities import CompositeId
from receiver.providers.paths import TRANSACTION, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Answers, Provider
from receiver.signature import MacScheme

UNIT = Unit("minor", frozenset({"number"}), {"CLP": 2, "CVE": 0, "IDR": 0, "ISK": 2})
"""Adyen's exceptions from ISO 4217."""

_ITEMS = JsonItems(("notificationItems",), "NotificationRequestItem")
_SUCCESS: Path = ("success",)
_NO_COLON = r"[^:]*"
_PSP: Path = ("pspReference",)
_ORIGINAL: Path = ("originalReference",)

_PAYMENT = Where(
    order_reference=("merchantReference",),
    transaction_id=_PSP,
    effect_id=TRANSACTION,
    amount=("amount", "value"),
    currency=("amount", "currency"),
    account=("merchantAccountCode",),
    unit=UNIT,
)
_STATUS = replace(_PAYMENT, effect_id=None)
_CHANGE = replace(_PAYMENT, transaction_id=_ORIGINAL, effect_id=_PSP)


def _done(kind: Kind, where: Where) -> Meaning:
    return Meaning(kind, where, ((_SUCCESS, frozenset({"true"})),))


def _not_done(kind: Kind, where: Where) -> Meaning:
    return Meaning(kind, where, ((_SUCCESS, frozenset({"false"})),))


_void = _done(Kind.VOIDED, replace(_CHANGE, effect_id=TRANSACTION))
_returned = _done(Kind.REFUNDED, _CHANGE)


def _meanings(manual: bool) -> dict[str, Meaning | tuple[Meaning, ...]]:
    meanings: dict[str, Meaning | tuple[Meaning, ...]] = {
        "AUTHORISATION": (
            _done(Kind.AUTHORIZED if manual else Kind.SUCCEEDED, _PAYMENT),
            _not_done(Kind.FAILED, _STATUS),
        ),
        "PENDING": _done(Kind.PENDING, _STATUS),
        "OFFER_CLOSED": _done(Kind.FAILED, _STATUS),
        # Where AUTHORISATION was taken for the payment, one that ends before or in its capture takes the
        # money away again: else the order would stay paid.
        "CANCELLATION": _void if manual else _returned,
        "TECHNICAL_CANCEL": _void if manual else _returned,
        "EXPIRE": _void if manual else _returned,
        "CANCEL_OR_REFUND": _returned,
        "CAPTURE_FAILED": _returned,
        "REFUND": (_done(Kind.REFUNDED, _CHANGE), _not_done(Kind.REFUND_FAILED, _CHANGE)),
        "REFUND_FAILED": _done(Kind.REFUND_FAILED, _CHANGE),
        "REFUNDED_REVERSED": _done(Kind.REFUND_FAILED, _CHANGE),
        "NOTIFICATION_OF_CHARGEBACK": _done(Kind.DISPUTE_OPENED, _CHANGE),
        "CHARGEBACK": _done(Kind.DISPUTE_OPENED, _CHANGE),
        "CHARGEBACK_REVERSED": _done(Kind.DISPUTE_WON, _CHANGE),
        "PREARBITRATION_WON": _done(Kind.DISPUTE_WON, _CHANGE),
        "SECOND_CHARGEBACK": _done(Kind.DISPUTE_LOST, _CHANGE),
        "PREARBITRATION_LOST": _done(Kind.DISPUTE_LOST, _CHANGE),
    }
    if manual:
        meanings["CAPTURE"] = _done(Kind.CAPTURED, _CHANGE)
    return meanings


def _described(provider: Provider, options: Mapping[str, object]) -> Provider:
    if options.get("capture") != "manual":
        return provider
    return replace(provider, body=replace(provider.body, meanings=_meanings(manual=True)))


def _described_faults(options: Mapping[str, object]) -> list[str]:
    found = [f"options.{name} is no option of adyen" for name in sorted(set(options) - {"capture"})]
    if options.get("capture") not in (None, "automatic", "manual"):
        found.append("options.capture must be automatic or manual")
    return found


ADYEN = Provider(
    name="adyen",
    authentication=FieldDigest(
        envelope=_ITEMS,
        signature=("additionalData", "hmacSignature"),
        fields=(
            (_PSP, _NO_COLON),
            (_ORIGINAL, _NO_COLON),
            (("merchantAccountCode",), _NO_COLON),
            (("merchantReference",), r".*"),
            (("amount", "value"), r"-?[0-9]+"),
            (("amount", "currency"), _NO_COLON),
            (("eventCode",), _NO_COLON),
            (_SUCCESS, r"true|false"),
        ),
        join=":",
        scheme=MacScheme(header="", encoding="base64", key="hex"),
        keyed="hmac",
    ),
    identity=CompositeId((("eventCode",), _PSP, _SUCCESS)),
    body=BodyMap(
        type=("eventCode",), meanings=_meanings(manual=False), otherwise=_STATUS, blanks_absent=True
    ),
    envelope=_ITEMS,
    never_carries=frozenset({"live", "sequence"}),
    signed=(
        "pspReference",
        "originalReference",
        "merchantAccountCode",
        "merchantReference",
        "amount",
        "eventCode",
        "success",
    ),
    answers=Answers(body="[accepted]"),
    described=_described,
    described_faults=_described_faults,
)

ADYEN_BANKING = Provider(
    name="adyen_banking",
    authentication=MacAuthentication((MacScheme(header="HmacSignature", encoding="base64", key="hex"),)),
    identity=CompositeId(
        (("type",), ("data", "id"), ("data", "sequenceNumber"), ("timestamp",)),
        optional=(("data", "id"), ("data", "sequenceNumber")),
    ),
    body=BodyMap(
        meanings={},
        otherwise=Where(
            order_reference=("data", "reference"),
            transaction_id=("data", "id"),
            account=("data", "balancePlatform"),
            occurred_at=("timestamp",),
        ),
    ),
    never_carries=frozenset({"live", "amount_minor", "currency"}),
)
