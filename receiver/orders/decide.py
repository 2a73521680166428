"""What one event may do to its order: a pure decision, never a change.

Checks stand in this order: the facts could be read; the event speaks of money; the source's account
and mode; the order; the facts that its kind needs; currency; the transaction's owner; then statuses
by sequence, or money: effect known, cancelled order, and the rule of its kind.
"""

from __future__ import annotations

from receiver.money import format_amount
from receiver.orders.decisions import Apply, Decision, Ignore, Park, Refuse, Repeat, Stale
from receiver.orders.facts import LedgerLine, OrderFacts, SourceTerms, TransactionFacts
from receiver.orders.statuses import decide_status
from receiver.orders.sums import captured_minor, captured_parts_minor, has_line, refunded_minor
from receiver.providers.payment_event import Kind, PaymentEvent

__all__ = ["Apply", "Decision", "Ignore", "Park", "Refuse", "Repeat", "Stale", "decide"]

_LINE_KINDS = {
    Kind.AUTHORIZED: "authorization",
    Kind.SUCCEEDED: "capture",
    Kind.CAPTURED: "capture",
    Kind.VOIDED: "void",
    Kind.REFUNDED: "refund",
    Kind.REFUND_FAILED: "refund_failed",
    Kind.DISPUTE_OPENED: "dispute",
    Kind.DISPUTE_WON: "dispute_won",
    Kind.DISPUTE_LOST: "dispute_lost",
}
_STATUSES = frozenset({Kind.PENDING, Kind.FAILED})
_CAPTURES = frozenset({Kind.SUCCEEDED, Kind.CAPTURED})
_REFUSED_ONCE_CANCELLED = frozenset({Kind.AUTHORIZED, Kind.SUCCEEDED, Kind.CAPTURED})
_NOT_OURS = frozenset({Kind.PENDING, Kind.FAILED, Kind.AUTHORIZED, Kind.SUCCEEDED})
_OF_THE_TRANSACTION = frozenset({Kind.AUTHORIZED, Kind.SUCCEEDED, Kind.VOIDED})
_OF_THE_WHOLE = frozenset({Kind.REFUNDED, Kind.REFUND_FAILED})
_AMOUNT_COMPARED = frozenset({"authorization", "capture", "refund"})
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
) -> Decision:
    """Decide what ``event`` does to ``order`` (None: neither its reference nor its transaction is known).

    ``foreign``: the event's transaction belongs to another order. ``effect_elsewhere``: the effect
    (`effect_key`) stands in another order's ledger. Both are the caller's to look up, since an order's
    facts know nothing of other orders.
    """
    if event.facts_error is not None:
        return Refuse(event.facts_error, _unreadable(event.facts_error))
    if event.kind == Kind.OTHER:
        return Ignore("no_money_meaning")
    refusal = _against_source(event, terms)
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
        return _refund_total(order, event, transaction)
    return _money(order, event, transaction, effect_elsewhere)


def effect_key(event: PaymentEvent, order_amount_minor: int) -> tuple[str, str, str] | None:
    """(source, ledger kind, effect id) of a money event, as the ledger keys it; None where it has none."""
    kind = _LINE_KINDS.get(event.kind)
    effect_id = _effect_id(event, order_amount_minor)
    return None if kind is None or effect_id is None else (event.source, kind, effect_id)


def _against_source(event: PaymentEvent, terms: SourceTerms) -> Refuse | None:
    if terms.account is not None and event.account != terms.account and "account" not in terms.never_carries:
        return Refuse("account", f"source {terms.account}, event {event.account or 'names none'}")
    if terms.live is not None and event.live != terms.live and "live" not in terms.never_carries:
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
            return Refuse(_REASON_OF_FACT[fact], f"{_order_money(order)}, event carries no {fact}")
    if event.currency is not None and event.currency != order.currency:
        return Refuse("currency", f"{_order_money(order)}, event {_event_money(event)}")
    if foreign:
        return Refuse("transaction", f"transaction {event.transaction_id} belongs to another order")
    return None


def _money(
    order: OrderFacts, event: PaymentEvent, transaction: TransactionFacts, effect_elsewhere: bool
) -> Decision:
    effect_id = _effect_id(event, order.amount_minor)
    if effect_id is None:
        return Refuse("effect", f"a {event.kind} event without an id of its own ({_event_money(event)})")
    line = LedgerLine(
        event.source,
        transaction.transaction_id,
        _LINE_KINDS[event.kind],
        effect_id,
        event.amount_minor,
        event.currency or (order.currency if event.amount_minor is not None else None),
    )
    known = order.effects.get((line.source, line.kind, effect_id))
    if known is not None:
        return _known_effect(order, known, line)
    if effect_elsewhere:
        return Refuse("effect_changed", f"{effect_id} already recorded for another order")
    if order.cancelled and event.kind in _REFUSED_ONCE_CANCELLED:
        marked = _marked(transaction) if event.kind in _CAPTURES else None
        return Refuse("order_cancelled", f"the order is cancelled, event {_event_money(event)}", marked)
    if event.kind in _CAPTURES:
        return _capture(order, event, transaction, line)
    if event.kind == Kind.AUTHORIZED:
        return _whole(order, event, transaction, line)
    if event.kind == Kind.VOIDED:
        return Apply((line,), transaction)
    return _after_capture(order, transaction, line)


def _known_effect(order: OrderFacts, known: LedgerLine, line: LedgerLine) -> Decision:
    if known.transaction_id != line.transaction_id:
        said = f"{line.effect_id} already recorded for transaction {known.transaction_id}"
        return Refuse("effect_changed", said)
    amount = order.amount_minor if line.amount_minor is None else line.amount_minor
    if line.kind in _AMOUNT_COMPARED and known.amount_minor != amount:
        recorded = format_amount(known.amount_minor or 0, order.currency)
        said = f"{line.effect_id} already recorded with {recorded}, event {_money_text(order, amount)}"
        return Refuse("effect_changed", said)
    return Repeat()


def _capture(
    order: OrderFacts, event: PaymentEvent, transaction: TransactionFacts, line: LedgerLine
) -> Decision:
    for key, other in order.transactions.items():
        if other.paying and key != (line.source, line.transaction_id):
            lines = order.lines_of[key]
            captured = captured_minor(lines, order.amount_minor)
            held = captured - refunded_minor(lines, order.amount_minor, other.refund_total_minor)
            if held > 0:
                said = f"transaction {key[1]} already paid, holding {_money_text(order, held)}"
                return Refuse("second_payment", f"{said}; event {_event_money(event)}", _marked(transaction))
    if event.kind == Kind.SUCCEEDED:
        return _whole(order, event, transaction, line)
    if line.amount_minor is None:
        return Refuse("amount", f"{_order_money(order)}, event carries no amount_minor")
    lines_before = order.lines_of.get((line.source, line.transaction_id), [])
    parts = captured_parts_minor(lines_before, order.amount_minor) + line.amount_minor
    if parts > order.amount_minor:
        said = f"{_order_money(order)}, captured would be {_money_text(order, parts)}"
        return Refuse("amount", f"{said} with this event's {_event_money(event)}")
    return Apply((line,), transaction)


def _whole(
    order: OrderFacts, event: PaymentEvent, transaction: TransactionFacts, line: LedgerLine
) -> Decision:
    if line.amount_minor is None:
        # The protocol never carries an amount: these kinds mean the whole of it.
        line = LedgerLine(
            line.source, line.transaction_id, line.kind, line.effect_id, order.amount_minor, order.currency
        )
    if line.amount_minor != order.amount_minor:
        return Refuse("amount", f"{_order_money(order)}, event {_event_money(event)}")
    return Apply((line,), transaction)


def _after_capture(order: OrderFacts, transaction: TransactionFacts, line: LedgerLine) -> Decision:
    waiting = _before_capture(order, transaction)
    if waiting is not None:
        return waiting
    if line.kind == "refund":
        if line.amount_minor is None:
            return Refuse("amount", f"{_order_money(order)}, event carries no amount_minor")
        lines = order.lines_of[(line.source, line.transaction_id)]
        refunded = refunded_minor([*lines, line], order.amount_minor, transaction.refund_total_minor)
        exceeds = _exceeds(order, transaction, lines, refunded)
        if exceeds is not None:
            return exceeds
    return Apply((line,), transaction)


def _refund_total(order: OrderFacts, event: PaymentEvent, transaction: TransactionFacts) -> Decision:
    total, stored = event.refund_total_minor, transaction.refund_total_minor
    if total is None:
        return Refuse("refund_total", f"{_order_money(order)}, event carries no refund_total_minor")
    waiting = _before_capture(order, transaction)
    if waiting is not None:
        return waiting
    if stored is not None and total <= stored:
        if total == stored:
            return Repeat()
        return Stale(f"refund total {_money_text(order, stored)} is known, event {_money_text(order, total)}")
    lines = order.lines_of[(transaction.source, transaction.transaction_id)]
    refunded = refunded_minor(lines, order.amount_minor, total)
    exceeds = _exceeds(order, transaction, lines, refunded)
    return exceeds or Apply((), transaction.with_refund_total(total))


def _before_capture(order: OrderFacts, transaction: TransactionFacts) -> Decision | None:
    lines = order.lines_of.get((transaction.source, transaction.transaction_id), ())
    if has_line(lines, "capture"):
        return None
    if transaction.refused:
        return Ignore("surplus_returned")
    return Park("before_capture", f"transaction {transaction.transaction_id} has captured nothing yet")


def _exceeds(
    order: OrderFacts, transaction: TransactionFacts, lines: list[LedgerLine], refunded: int
) -> Decision | None:
    captured = captured_minor(lines, order.amount_minor)
    if refunded <= captured:
        return None
    if transaction.refused:
        # More than its lines captured can only be the capture that was refused, coming back.
        return Ignore("surplus_returned")
    said = f"refunded would be {_money_text(order, refunded)}, captured is {_money_text(order, captured)}"
    return Park("refund_exceeds_captured", said)


def _effect_id(event: PaymentEvent, order_amount_minor: int) -> str | None:
    if event.kind in _OF_THE_TRANSACTION:
        return event.transaction_id
    if event.effect_id is None and event.kind in _OF_THE_WHOLE and event.amount_minor == order_amount_minor:
        return event.transaction_id
    return event.effect_id


def _transaction(order: OrderFacts, event: PaymentEvent) -> TransactionFacts:
    transaction_id = event.transaction_id or ""
    known = order.transactions.get((event.source, transaction_id))
    return known if known is not None else TransactionFacts(event.source, transaction_id)


def _marked(transaction: TransactionFacts) -> TransactionFacts:
    return transaction.with_marks(paying=transaction.paying, refused=True)


def _unreadable(code: str) -> str:
    field = code.removeprefix("unreadable_")
    if field != code:
        return f"the event's {field} cannot be read"
    return f"the event's facts cannot be trusted ({code})"


def _mode(live: bool | None) -> str:
    if live is None:
        return "names no mode"
    return "live" if live else "test"


def _money_text(order: OrderFacts, minor: int) -> str:
    return format_amount(minor, order.currency)


def _order_money(order: OrderFacts) -> str:
    return f"order {format_amount(order.amount_minor, order.currency)}"


def _event_money(event: PaymentEvent) -> str:
    if event.amount_minor is None:
        return f"in {event.currency}" if event.currency else "without an amount"
    if event.currency is None:
        return f"{event.amount_minor} without a currency"
    return format_amount(event.amount_minor, event.currency)
