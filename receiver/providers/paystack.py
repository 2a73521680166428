"""``paystack``: ``x-paystack-signature``, the hex HMAC-SHA512 of the body under the API secret key itself.

There is no event id: the identity is the event and what it is about. The transaction is Paystack's
``reference``, the one name of a payment that its refunds carry too. An amount in a refund may be a text.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers import facts
from receiver.providers.amounts import MINOR_ANY
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import CompositeId
from receiver.providers.paths import TRANSACTION, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.signature import MacScheme

_CHARGE = Where(
    order_reference=("data", "metadata", "order_id"),
    transaction_id=("data", "reference"),
    effect_id=TRANSACTION,
    amount=("data", "amount"),
    currency=("data", "currency"),
    live=("data", "domain"),
    occurred_at=("data", "paid_at"),
    unit=MINOR_ANY,
    ids=facts.text_or_integer,
    mode=facts.mode(frozenset({"live"}), frozenset({"test"})),
)
_REFUND = replace(
    _CHARGE,
    order_reference=None,
    transaction_id=("data", "transaction_reference"),
    effect_id=("data", "refund_reference"),
    occurred_at=None,
)
_DISPUTE = replace(
    _CHARGE,
    order_reference=("data", "transaction", "metadata", "order_id"),
    transaction_id=("data", "transaction", "reference"),
    effect_id=("data", "id"),
    amount=("data", "refund_amount"),
    occurred_at=("data", "created_at"),
)
_RESOLUTION: Path = ("data", "resolution")
_IDENTITY: tuple[Path, ...] = (
    ("data", "id"),
    ("data", "reference"),
    ("data", "transaction_reference"),
    ("data", "refund_reference"),
    ("data", "status"),
    ("data", "amount"),
)

PAYSTACK = Provider(
    name="paystack",
    authentication=MacAuthentication((MacScheme(header="x-paystack-signature", algorithm="sha512"),)),
    identity=CompositeId((("event",), *_IDENTITY), optional=_IDENTITY),
    body=BodyMap(
        type=("event",),
        meanings={
            "charge.success": Meaning(Kind.SUCCEEDED, _CHARGE),
            "charge.failed": Meaning(Kind.FAILED, replace(_CHARGE, effect_id=None)),
            "refund.processed": Meaning(Kind.REFUNDED, _REFUND),
            "refund.failed": Meaning(Kind.REFUND_FAILED, _REFUND),
            "charge.dispute.create": Meaning(Kind.DISPUTE_OPENED, _DISPUTE),
            "charge.dispute.resolve": (
                Meaning(Kind.DISPUTE_LOST, _DISPUTE, ((_RESOLUTION, frozenset({"merchant-accepted"})),)),
                Meaning(Kind.DISPUTE_WON, _DISPUTE, ((_RESOLUTION, frozenset({"declined"})),)),
            ),
        },
        otherwise=replace(_REFUND, effect_id=None),
        blanks_absent=True,
    ),
    never_carries=frozenset({"account", "sequence"}),
    reference_option=True,
)
