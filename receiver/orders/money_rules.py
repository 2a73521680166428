"""What a money event does to an order that is found and agrees with it: the rules of each kind."""

from __future__ import annotations

from collections.abc import Set

from receiver.orders.decisions import Apply, Decision, Ignore, Park, Refuse, Repeat, Stale
from receiver.orders.details import event_money, money_text, order_money
from receiver.orders.effects import LINE_KINDS, effect_id_of
from receiver.orders.facts import LedgerLine, OrderFacts, TransactionFacts
from receiver.orders.sums import captured_minor, captured_parts_minor, has_line, refunded_minor
from receiver.providers.payment_event import Kind, PaymentEvent

_CAPTURES = frozenset({Kind.SUCCEEDED, Kind.CAPTURED})
_REFUSED_ONCE_CANCELLED = frozenset({Kind.AUTHORIZED, Kind.SUCCEEDED, Kind.CAPTURED})
_AMOUNT_COMPARED = frozenset({"authorization", "capture", "refund"})


def decide_money(
    order: OrderFacts,
    event: PaymentEvent,
    transaction: TransactionFacts,
    effect_elsewhere: bool,
    waive: Set[str],
) -> Decision:
    """Every money event but a running total. ``transaction``: the event's, new where it was unknown.

    ``waive``: with ``order_cancelled`` a cancelled order takes the money, and the transaction's mark goes;
    with ``amount`` a `succeeded` below the order's amount counts as a part captured.
    """
    effect_id = effect_id_of(event, order.amount_minor)
    if effect_id is None:
        return Refuse("effect", f"a {event.kind} event without an id of its own ({event_money(event)})")
    line = LedgerLine(
        event.source,
        transaction.transaction_id,
        LINE_KINDS[event.kind],
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
        if "order_cancelled" not in waive:
            marked = _marked(transaction) if event.kind in _CAPTURES else None
            return Refuse("order_cancelled", f"the order is cancelled, event {event_money(event)}", marked)
        transaction = transaction.with_marks(paying=transaction.paying, refused=False)
    if event.kind in _CAPTURES:
        return _capture(order, event, transaction, line, waive)
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
        recorded = money_text(order, known.amount_minor or 0)
        said = f"{line.effect_id} already recorded with {recorded}, event {money_text(order, amount)}"
        return Refuse("effect_changed", said)
    return Repeat()


def _capture(
    order: OrderFacts,
    event: PaymentEvent,
    transaction: TransactionFacts,
    line: LedgerLine,
    waive: Set[str],
) -> Decision:
    for key, other in order.transactions.items():
        if other.paying and key != (line.source, line.transaction_id):
            lines = order.lines_of[key]
            captured = captured_minor(lines, order.amount_minor)
            held = captured - refunded_minor(lines, order.amount_minor, other.refund_total_minor)
            if held > 0:
                said = f"transaction {key[1]} already paid, holding {money_text(order, held)}"
                return Refuse("second_payment", f"{said}; event {event_money(event)}", _marked(transaction))
    below = line.amount_minor is not None and line.amount_minor < order.amount_minor
    if event.kind == Kind.SUCCEEDED and not (below and "amount" in waive):
        return _whole(order, event, transaction, line)
    if line.amount_minor is None:
        return Refuse("amount", f"{order_money(order)}, event carries no amount_minor")
    lines_before = order.lines_of.get((line.source, line.transaction_id), [])
    parts = captured_parts_minor(lines_before, order.amount_minor) + line.amount_minor
    if parts > order.amount_minor:
        said = f"{order_money(order)}, captured would be {money_text(order, parts)}"
        return Refuse("amount", f"{said} with this event's {event_money(event)}")
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
        return Refuse("amount", f"{order_money(order)}, event {event_money(event)}")
    return Apply((line,), transaction)


def _after_capture(order: OrderFacts, transaction: TransactionFacts, line: LedgerLine) -> Decision:
    waiting = _before_capture(order, transaction)
    if waiting is not None:
        return waiting
    if line.kind == "refund":
        if line.amount_minor is None:
            return Refuse("amount", f"{order_money(order)}, event carries no amount_minor")
        lines = order.lines_of[(line.source, line.transaction_id)]
        refunded = refunded_minor([*lines, line], order.amount_minor, transaction.refund_total_minor)
        exceeds = _exceeds(order, transaction, lines, refunded)
        if exceeds is not None:
            return exceeds
    return Apply((line,), transaction)


def decide_refund_total(order: OrderFacts, event: PaymentEvent, transaction: TransactionFacts) -> Decision:
    """A running total is set on the transaction, never added; it writes no line."""
    total, stored = event.refund_total_minor, transaction.refund_total_minor
    if total is None:
        return Refuse("refund_total", f"{order_money(order)}, event carries no refund_total_minor")
    waiting = _before_capture(order, transaction)
    if waiting is not None:
        return waiting
    if stored is not None and total <= stored:
        if total == stored:
            return Repeat()
        return Stale(f"refund total {money_text(order, stored)} is known, event {money_text(order, total)}")
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
    if transaction.refused and captured < order.amount_minor:
        # More than its lines captured can only be the capture that was refused, coming back.
        return Ignore("surplus_returned")
    said = f"refunded would be {money_text(order, refunded)}, captured is {money_text(order, captured)}"
    return Park("refund_exceeds_captured", said)


def _marked(transaction: TransactionFacts) -> TransactionFacts:
    return transaction.with_marks(paying=transaction.paying, refused=True)
