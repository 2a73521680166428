"""From a signed body to what it says: the one reader that endpoint, worker and pages share.

A provider describes where its facts stand (``BodyMap``); this turns a parsed body into ``ReadEvent``s.
An unreadable body and an unusable id are exceptions, because nothing can be stored under them; a
flawed fact is not, because the event is authentic and an operator must see it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from receiver.providers import facts
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.providers.strict_json import RepeatingObject, canonical

Path = tuple[str, ...]

TRANSACTION: Path = ()
"""As an effect's path: the effect has no id of its own, and the transaction's stands for it."""

SHOWN_CHARACTERS = 80
"""So much of a flawed value is repeated to operators."""


class UnusableId(Exception):  # noqa: N818 (a refusal of the input, no error of ours)
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
    """

    provider_event_id: str
    event_type: str | None
    facts: PaymentEvent
    facts_sha256: bytes
    payload_sha256: bytes
    item: int = 0
    flaw: str | None = None


@dataclass(frozen=True)
class BodyMap:
    """Where a provider's JSON body says what. A path that is None is never carried.

    ``kinds`` maps the signed type to its kind; what is not in it is ``other``. ``effects`` gives each
    kind's path to the effect's own id, or TRANSACTION. A ``refunded`` that carries a running total
    and not both a refund's id and its amount is read as ``refund_total``. ``payment`` names the object
    without which an event has no money meaning, whatever its type. ``changes_on_retry`` lists the
    top-level fields of a body that differ from one delivery of an event to the next.
    """

    kinds: Mapping[str, Kind]
    order_reference: Path
    transaction_id: Path
    amount: Path
    currency: Path
    effects: Mapping[Kind, Path] = field(default_factory=dict)
    type: Path = ("type",)
    refund_total: Path | None = None
    sequence: Path | None = None
    account: Path | None = None
    live: Path | None = None
    occurred_at: Path | None = None
    payment: Path | None = None
    changes_on_retry: frozenset[str] = frozenset()


class _Flaws:
    """Reads facts from one body and keeps the first flaw."""

    __slots__ = ("body", "error", "flaw")

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body
        self.error: str | None = None
        self.flaw: str | None = None

    def read(self, fact: str, path: Path | None, reader: Callable[[Any], Any]) -> Any:
        """The fact at ``path``; None where it is not carried, or flawed and noted."""
        if path is None:
            return None
        node: Any = self.body
        for key in path:
            # Plain objects, the usual case; absent, flawed and repeating ones go the slow way.
            if type(node) is not dict:
                node = self._walk(path)
                break
            node = node.get(key)
        if node is None:
            return None
        value = reader(node)
        return self._note(f"unreadable_{fact}", path, node) if value is None else value

    def _walk(self, path: Path) -> Any:
        node: Any = self.body
        for depth, key in enumerate(path):
            if node is None:
                return None
            if not isinstance(node, dict):
                return self._note(f"unreadable_{path[depth - 1]}", path[:depth], node)
            if isinstance(node, RepeatingObject) and key in node.repeated:
                return self._note("repeated_field", path[: depth + 1], None)
            node = node.get(key)
        return node

    def _note(self, error: str, path: Path, value: object) -> None:
        if self.error is None:
            name = ".".join(path)
            self.error = error
            self.flaw = (
                f"{name} stands more than once" if error == "repeated_field" else f"{name} is {_shown(value)}"
            )


def _shown(value: object) -> str:
    try:
        spelt = canonical(value).decode()
    except (TypeError, ValueError):
        spelt = type(value).__name__
    return spelt if len(spelt) <= SHOWN_CHARACTERS else spelt[:SHOWN_CHARACTERS] + "…"


def read_event(
    source: str, event_id: str, body: Mapping[str, Any], where: BodyMap, payload_sha256: bytes, item: int = 0
) -> ReadEvent:
    """What the parsed ``body`` says. ``event_id`` has been tested by the caller. Never raises."""
    flaws = _Flaws(body)
    event_type = flaws.read("type", where.type, facts.text)
    kind = where.kinds.get(event_type, Kind.OTHER) if event_type is not None else Kind.OTHER
    if kind is not Kind.OTHER and where.payment is not None and _absent(body, where.payment):
        kind = Kind.OTHER
    if kind is Kind.OTHER:
        meaning = _without_money(source, body, where, flaws)
        kept = {key: value for key, value in body.items() if key not in where.changes_on_retry}
        said = b"other\0" + canonical(kept)
    else:
        meaning = _with_money(source, kind, where, flaws)
        said = _canonical_facts(event_type, meaning)
    return ReadEvent(
        event_id, event_type, meaning, hashlib.sha256(said).digest(), payload_sha256, item, flaws.flaw
    )


def _absent(body: Mapping[str, Any], path: Path) -> bool:
    node: Any = body
    for key in path:
        if not isinstance(node, dict):
            return False
        node = node.get(key)
    return node is None


def _without_money(source: str, body: Mapping[str, Any], where: BodyMap, flaws: _Flaws) -> PaymentEvent:
    """An event that cannot move an order: what helps to find it is read, and its flaws do not matter.

    But an unreadable type is a flaw of any event, since it may hide a meaning.
    """
    found = _Flaws(body)
    return PaymentEvent(
        source=source,
        kind=Kind.OTHER,
        account=found.read("account", where.account, facts.text),
        live=found.read("live", where.live, facts.live),
        order_reference=found.read("order_reference", where.order_reference, facts.text),
        transaction_id=found.read("transaction_id", where.transaction_id, facts.text),
        occurred_at=found.read("occurred_at", where.occurred_at, facts.occurred_at),
        facts_error=flaws.error,
    )


def _with_money(source: str, kind: Kind, where: BodyMap, flaws: _Flaws) -> PaymentEvent:
    read = flaws.read
    order_reference = read("order_reference", where.order_reference, facts.text)
    transaction_id = read("transaction_id", where.transaction_id, facts.text)
    amount_minor = read("amount", where.amount, facts.amount)
    currency = read("currency", where.currency, facts.currency)
    effect = where.effects.get(kind)
    if effect is None:
        effect_id = None
    elif effect == TRANSACTION:
        effect_id = transaction_id
    else:
        effect_id = read("effect_id", effect, facts.text)
    total = None
    if kind is Kind.REFUNDED:
        total = read("refund_total", where.refund_total, facts.running_total)
        if total is not None and (effect_id is None or amount_minor is None):
            kind, effect_id = Kind.REFUND_TOTAL, None
    return PaymentEvent(
        source=source,
        kind=kind,
        account=read("account", where.account, facts.text),
        live=read("live", where.live, facts.live),
        order_reference=order_reference,
        transaction_id=transaction_id,
        effect_id=effect_id,
        amount_minor=amount_minor,
        currency=currency,
        refund_total_minor=total,
        sequence=read("sequence", where.sequence, facts.sequence),
        occurred_at=read("occurred_at", where.occurred_at, facts.occurred_at),
        facts_error=flaws.error,
    )


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
