"""``coinbase_commerce``: ``X-CC-Webhook-Signature``, the hex HMAC-SHA256 of the body.

The event is the object inside; around it stand the delivery's id, attempt and schedule, which differ at
each retry, so that the same event never comes with the same bytes twice.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import BodyId
from receiver.providers.paths import TRANSACTION, Path
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.providers.strict_json import Unreadable, parse_object
from receiver.signature import MacScheme

_CHARGE: Path = ("event", "data")

_PAID = Where(
    order_reference=(*_CHARGE, "metadata", "order_id"),
    transaction_id=(*_CHARGE, "id"),
    effect_id=TRANSACTION,
    amount=(*_CHARGE, "pricing", "local", "amount"),
    currency=(*_CHARGE, "pricing", "local", "currency"),
    occurred_at=("event", "created_at"),
    unit=MAJOR_TEXT,
)
_STATUS = replace(_PAID, effect_id=None)


def _no_event(body: bytes) -> str | None:
    """The SDKs refuse a signed body without an event, so it is no proof of one."""
    try:
        return None if isinstance(parse_object(body).get("event"), dict) else "unreadable_body"
    except Unreadable:
        return "unreadable_body"


COINBASE_COMMERCE = Provider(
    name="coinbase_commerce",
    authentication=MacAuthentication((MacScheme(header="X-CC-Webhook-Signature"),), also=_no_event),
    identity=BodyId(("event", "id")),
    body=BodyMap(
        type=("event", "type"),
        meanings={
            "charge:created": Meaning(Kind.PENDING, _STATUS),
            "charge:pending": Meaning(Kind.PENDING, _STATUS),
            "charge:confirmed": Meaning(Kind.SUCCEEDED, _PAID),
            "charge:failed": Meaning(Kind.FAILED, _STATUS),
        },
        otherwise=_STATUS,
        changes_on_retry=frozenset({"id", "attempt_number", "scheduled_for"}),
    ),
    never_carries=frozenset({"account", "live", "sequence"}),
    reference_option=True,
)
