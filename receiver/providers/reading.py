"""From a signed body to what it says: the one reader that endpoint, worker and pages share.

A provider describes where its facts stand (``BodyMap``); this turns a parsed body into ``ReadEvent``s.
An unreadable body and an unusable id are exceptions, because nothing can be stored under them; a
flawed fact is not, because the event is authentic and an operator must see it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from receiver.providers import facts
from receiver.providers.amounts import MINOR
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.paths import TRANSACTION, Flaws, is_absent
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.providers.strict_json import canonical

UNCONFIRMED = "unconfirmed"
"""The ``facts_error`` of an event that counts only once it is read back: see ``ReadEvent``."""


class UnusableId(Exception):
    """A readable body whose event id cannot be stored under.

    ``code``: ``missing_id``, ``invalid_id``, ``repeated_id``. ``detail`` never repeats the id.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class ReadEvent:
    """One event of a request.

    ``facts_sha256`` is equal for two events that say the same (times left out), ``payload_sha256``
    for equal bytes; both are 32 bytes. ``item`` is the place in a batch, from 0. ``flaw`` is a
    sentence on ``facts.facts_error`` that shows the value: for pages and attempts, never for logs.

    ``confirm_by_fetch``: nothing here is proven but that something happened to the object; its facts
    are a hint until they are read back from the provider's API, and carry the error ``unconfirmed``,
    so that nothing that forgets to look at the mark can move an order by them. ``per_receipt``: the
    id is that of an object and repeats for each of its changes; the row's id is
    ``<provider_event_id>@<receipt>``, so that every request is a row of its own.
    """

    provider_event_id: str
    event_type: str | None
    facts: PaymentEvent
    facts_sha256: bytes
    payload_sha256: bytes
    item: int = 0
    flaw: str | None = None
    confirm_by_fetch: bool = False
    per_receipt: bool = False


def read_event(
    source: str, event_id: str, body: Mapping[str, Any], where: BodyMap, payload_sha256: bytes, item: int = 0
) -> ReadEvent:
    """What the parsed ``body`` says. ``event_id`` has been tested by the caller. Never raises."""
    flaws = Flaws(body, where.blanks_absent)
    event_type = flaws.read("type", where.type, facts.text)
    meaning = _meaning(event_type, where, flaws)
    if meaning is not None and where.payment is not None and is_absent(body, where.payment):
        meaning = None
    if meaning is None:
        said_facts = _without_money(source, body, where, flaws)
        kept = {key: value for key, value in body.items() if key not in where.changes_on_retry}
        said = b"other\0" + canonical(kept)
    else:
        said_facts = _with_money(source, meaning.kind, meaning.where, flaws)
        said = _canonical_facts(event_type, said_facts)
    return ReadEvent(
        event_id, event_type, said_facts, hashlib.sha256(said).digest(), payload_sha256, item, flaws.flaw
    )


def _meaning(event_type: str | None, where: BodyMap, flaws: Flaws) -> Meaning | None:
    """The first meaning of the type whose conditions hold; None: no money."""
    if event_type is None:
        return None
    for meaning in where.several.get(event_type, ()):
        for place, values in meaning.when:
            if flaws.read("condition", place, facts.condition) not in values:
                break
        else:
            return meaning
    return None


def _without_money(source: str, body: Mapping[str, Any], where: BodyMap, flaws: Flaws) -> PaymentEvent:
    """An event that cannot move an order: what helps to find it is read, and its flaws do not matter.

    But an unreadable type or condition is a flaw of any event, since it may hide a meaning.
    """
    found = Flaws(body, where.blanks_absent)
    places = where.otherwise
    return PaymentEvent(
        source=source,
        kind=Kind.OTHER,
        account=found.read("account", places.account, places.ids),
        live=found.read("live", places.live, places.mode),
        order_reference=found.read("order_reference", places.order_reference, places.ids),
        transaction_id=found.read("transaction_id", places.transaction_id, places.ids),
        occurred_at=found.read("occurred_at", places.occurred_at, places.time),
        facts_error=flaws.error,
    )


def _with_money(source: str, kind: Kind, where: Where, flaws: Flaws) -> PaymentEvent:
    read = flaws.read
    order_reference = read("order_reference", where.order_reference, where.ids)
    transaction_id = read("transaction_id", where.transaction_id, where.ids)
    if where.unit is MINOR:
        amount_minor = read("amount", where.amount, facts.amount)
        currency = read("currency", where.currency, facts.currency)
    else:
        currency = read("currency", where.currency, facts.currency)
        amount_minor = read("amount", where.amount, _amount_in(where, currency))
    effect = where.effect_id
    if effect is None:
        effect_id = None
    elif effect == TRANSACTION:
        effect_id = transaction_id
    else:
        effect_id = read("effect_id", effect, where.ids)
    total = None
    if kind is Kind.REFUNDED or kind is Kind.REFUND_TOTAL:
        total = read("refund_total", where.refund_total, _total_in(where, currency))
        if total is not None and (effect_id is None or amount_minor is None):
            kind, effect_id = Kind.REFUND_TOTAL, None
    return PaymentEvent(
        source=source,
        kind=kind,
        account=read("account", where.account, where.ids),
        live=read("live", where.live, where.mode),
        order_reference=order_reference,
        transaction_id=transaction_id,
        effect_id=effect_id,
        amount_minor=amount_minor,
        currency=currency,
        refund_total_minor=total,
        sequence=read("sequence", where.sequence, facts.sequence),
        occurred_at=read("occurred_at", where.occurred_at, where.time),
        facts_error=flaws.error,
    )


def _amount_in(where: Where, currency: str | None) -> Callable[[Any], int | None]:
    return lambda value: where.unit.read(value, currency)


def _total_in(where: Where, currency: str | None) -> Callable[[Any], int | None]:
    if where.unit is MINOR:
        return facts.running_total
    return lambda value: where.unit.read(value, currency, lowest=0)


def _canonical_facts(event_type: str | None, meaning: PaymentEvent) -> bytes:
    """The facts that decide, never a time. No text holds a NUL, and none is empty: None is."""
    covered = (
        event_type,
        meaning.kind.value,
        meaning.order_reference,
        meaning.transaction_id,
        meaning.effect_id,
        meaning.amount_minor,
        meaning.currency,
        meaning.refund_total_minor,
        meaning.sequence,
        meaning.account,
        meaning.live,
    )
    return "\0".join("" if fact is None else str(fact) for fact in covered).encode()
