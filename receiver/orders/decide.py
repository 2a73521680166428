"""What one event may do to its order: a pure decision, never a change.

Checks stand in this order: the facts could be read; the event speaks of money; the source's account
and mode; the order; the facts that its kind needs; currency; the transaction's owner; then statuses
by sequence, or money: effect known, cancelled order, and the rule of its kind.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from receiver.orders.decisions import Apply, Decision, Ignore, Park, Refuse, Repeat, Stale
from receiver.orders.details import event_money, order_money
from receiver.orders.effects import effect_key
from receiver.orders.facts import OrderFacts, SourceTerms, TransactionFacts
from receiver.orders.money_rules import decide_money, decide_refund_total
from receiver.orders.statuses import decide_status
from receiver.providers.payment_event import Kind, PaymentEvent

WAIVABLE = frozenset({"account", "mode", "order_cancelled", "amount"})
"""Checks that an admin's release may tell the rules to skip; of amounts only one below the order's."""

NOTHING_WAIVED: frozenset[str] = frozenset()

__all__ = ["Apply", "Decision", "Ignore", "Park", "Refuse", "Repeat", "Stale", "decide", "effect_key"]

_STATUSES = frozenset({Kind.PENDING, Kind.FAILED})
_NOT_OURS = frozenset({Kind.PENDING, Kind.FAILED, Kind.AUTHORIZED, Kind.SUCCEEDED})
_NEEDS = {
    Kind.AUTHORIZED: ("amount_minor", "currency"),
    Kind.SUCCEEDED: ("amount_minor", "currency"),
    Kind.CAPTURED: ("amount_minor", "currency"),
    Kind.REFUNDED: ("amount_minor", "currency"),
    Kind.REFUND_TOTAL: ("refund_total_minor", "currency"),
}
_REASON_OF_FACT = {"amount_minor": "amount", "currency": "currency", "refund_total_minor": "refund_total"}


def decide(
    order: OrderFacts | None,
    event: PaymentEvent,
    terms: SourceTerms,
    *,
    foreign: bool = False,
    effect_elsewhere: bool = False,
    waive: Set[str] = NOTHING_WAIVED,
) -> Decision:
    """Decide what ``event`` does to ``order`` (None: neither its reference nor its transaction is known).

    ``foreign``: the event's transaction belongs to another order. ``effect_elsewhere``: the effect
    (`effect_key`) stands in another order's ledger. Both are the caller's to look up, since an order's
    facts know nothing of other orders. ``waive`` names checks to skip (WAIVABLE, others are not skipped);
    what is applied for that alone is ``released``.
    """
    decision = _decide(order, event, terms, foreign, effect_elsewhere, waive)
    if waive and isinstance(decision, Apply):
        plain = _decide(order, event, terms, foreign, effect_elsewhere, NOTHING_WAIVED)
        if not isinstance(plain, Apply):
            return replace(decision, released=True)
    return decision


def _decide(
    order: OrderFacts | None,
    event: PaymentEvent,
    terms: SourceTerms,
    foreign: bool,
    effect_elsewhere: bool,
    waive: Set[str],
) -> Decision:
    if event.facts_error is not None:
        return Refuse(event.facts_error, _unreadable(event.facts_error))
    if event.kind == Kind.OTHER:
        return Ignore("no_money_meaning")
    refusal = _against_source(event, terms, waive)
    if refusal is not None:
        return refusal
    if order is None:
        return _without_order(event)
    refusal = _against_order(order, event, terms, foreign)
    if refusal is not None:
        return refusal
    transaction = _transaction(order, event)
    if event.kind in _STATUSES:
        return decide_status(order, event, transaction)
    if event.kind == Kind.REFUND_TOTAL:
        return decide_refund_total(order, event, transaction)
    return decide_money(order, event, transaction, effect_elsewhere, waive)


def _against_source(event: PaymentEvent, terms: SourceTerms, waive: Set[str]) -> Refuse | None:
    never = terms.never_carries
    if terms.account not in (None, event.account) and "account" not in never and "account" not in waive:
        return Refuse("account", f"source {terms.account}, event {event.account or 'names none'}")
    if terms.live not in (None, event.live) and "live" not in never and "mode" not in waive:
        return Refuse("mode", f"source {_mode(terms.live)}, event {_mode(event.live)}")
    return None


def _without_order(event: PaymentEvent) -> Decision:
    if event.order_reference is not None:
        return Park("order_unknown", f"no order {event.order_reference}")
    if event.transaction_id is None or event.kind in _NOT_OURS:
        return Ignore("not_ours")
    return Park("transaction_unknown", f"no order is known for transaction {event.transaction_id}")


def _against_order(
    order: OrderFacts, event: PaymentEvent, terms: SourceTerms, foreign: bool
) -> Refuse | None:
    if order.sources is not None and event.source not in order.sources:
        return Refuse("source", f"order may be paid through {', '.join(order.sources)}, not {event.source}")
    if event.transaction_id is None:
        return Refuse("transaction", "the event names no transaction")
    for fact in _NEEDS.get(event.kind, ()):
        if getattr(event, fact) is None and fact not in terms.never_carries:
            return Refuse(_REASON_OF_FACT[fact], f"{order_money(order)}, event carries no {fact}")
    if event.currency is not None and event.currency != order.currency:
        return Refuse("currency", f"{order_money(order)}, event {event_money(event)}")
    if foreign:
        return Refuse("transaction", f"transaction {event.transaction_id} belongs to another order")
    return None


def _transaction(order: OrderFacts, event: PaymentEvent) -> TransactionFacts:
    transaction_id = event.transaction_id or ""
    known = order.transactions.get((event.source, transaction_id))
    return known if known is not None else TransactionFacts(event.source, transaction_id)


def _unreadable(code: str) -> str:
    field = code.removeprefix("unreadable_")
    if field != code:
        return f"the event's {field} cannot be read"
    return f"the event's facts cannot be trusted ({code})"


def _mode(live: bool | None) -> str:
    if live is None:
        return "names no mode"
    return "live" if live else "test"
