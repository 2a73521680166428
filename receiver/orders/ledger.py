"""The one judge: an order's state and totals are read off its ledger, and `apply` adds to it.

Amounts are minor units of the order's currency. What the caller does: write the lines,
transactions and order that `Applied` names, wake the order's parked events, and send refused rows
round again where ``lifted`` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from receiver.orders.decisions import Apply, Refuse
from receiver.orders.facts import LedgerLine, OrderFacts, Totals, TransactionFacts, TransactionKey
from receiver.orders.sums import captured_minor, has_line, refunded_minor
from receiver.orders.transitions import RELEASE_TRANSITIONS, TRANSITIONS

_NO_LINES: Sequence[LedgerLine] = ()


class IllegalTransition(RuntimeError):
    """One event moved an order between two states that `TRANSITIONS` does not join: a fault of ours."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What `apply` changed.

    ``transactions`` are new or changed ones, to be written whole. ``new_transaction``: the event's
    transaction was not known to this order before. ``lifted``: marks were taken away, so the order's
    rows refused as ``second_payment`` or ignored as ``surplus_returned`` go round again.
    """

    lines: tuple[LedgerLine, ...]
    transactions: tuple[TransactionFacts, ...]
    from_state: str
    to_state: str
    totals: Totals
    new_transaction: bool
    lifted: bool


def apply(order: OrderFacts, decision: Apply | Refuse) -> Applied:
    """Write a decision into ``order``, in place, and say what changed.

    Takes an `Apply`, or a `Refuse` that marks its transaction. Raises IllegalTransition after the
    change, so ``order`` is then unusable.
    """
    lines = decision.lines if isinstance(decision, Apply) else ()
    after = decision.transaction
    if after is None:
        raise ValueError(f"nothing to apply: {decision!r}")
    key = (after.source, after.transaction_id)
    before = order.transactions.get(key)
    changed = {} if before == after else {key: after}
    order.transactions[key] = after
    for line in lines:
        order.add_line(line)
    # A release takes the mark of its own transaction away.
    lifted = _elect(order, key, changed) or (before is not None and before.refused and not after.refused)
    from_state, to_state = order.state, state_of(order)
    if from_state != to_state:
        released = isinstance(decision, Apply) and decision.released
        if (from_state, to_state) not in (TRANSITIONS | RELEASE_TRANSITIONS if released else TRANSITIONS):
            raise IllegalTransition(f"order {order.reference}: {from_state} to {to_state} by {decision!r}")
        order.state = to_state
    return Applied(
        lines, tuple(changed.values()), from_state, to_state, totals_of(order), before is None, lifted
    )


def state_of(order: OrderFacts) -> str:
    """The order's state: the first rule that its ledger meets."""
    key = paying_key(order)
    if key is not None:
        return _paid_state(order, key)
    if any(_is_authorized(lines) for lines in order.lines_of.values()):
        return "authorized"
    if order.cancelled:
        return "cancelled"
    return "failed" if _all_failed(order) else "pending"


def totals_of(order: OrderFacts) -> Totals:
    """The paying transaction's totals; without one, the largest authorization that is not voided."""
    key = paying_key(order)
    if key is None:
        open_ones = (lines for lines in order.lines_of.values() if _is_authorized(lines))
        return Totals(max(map(_authorized_minor, open_ones), default=0), 0, 0)
    lines = order.lines_of[key]
    return Totals(_authorized_minor(lines), captured_of(order, key), refunded_of(order, key))


def paying_key(order: OrderFacts) -> TransactionKey | None:
    """The key of the paying transaction, or None before the first capture."""
    for key, transaction in order.transactions.items():
        if transaction.paying:
            return key
    return None


def captured_of(order: OrderFacts, key: TransactionKey) -> int:
    """What this transaction captured."""
    return captured_minor(order.lines_of.get(key, _NO_LINES), order.amount_minor)


def refunded_of(order: OrderFacts, key: TransactionKey) -> int:
    """What this transaction gave back."""
    total = order.transactions[key].refund_total_minor
    return refunded_minor(order.lines_of.get(key, _NO_LINES), order.amount_minor, total)


def _paid_state(order: OrderFacts, key: TransactionKey) -> str:
    captured, refunded = captured_of(order, key), refunded_of(order, key)
    lines = order.lines_of[key]
    if refunded == captured:
        return "refunded"
    if has_line(lines, "dispute_lost"):
        return "charged_back"
    if _is_disputed(lines):
        return "disputed"
    if refunded:
        return "partially_refunded"
    return "paid" if captured == order.amount_minor else "partially_paid"


def _is_disputed(lines: Sequence[LedgerLine]) -> bool:
    opened = {line.effect_id for line in lines if line.kind == "dispute"}
    return bool(opened) and not opened <= {line.effect_id for line in lines if line.kind == "dispute_won"}


def _is_authorized(lines: Sequence[LedgerLine]) -> bool:
    return has_line(lines, "authorization") and not has_line(lines, "void")


def _authorized_minor(lines: Iterable[LedgerLine]) -> int:
    return max((line.amount_minor or 0 for line in lines if line.kind == "authorization"), default=0)


def _all_failed(order: OrderFacts) -> bool:
    # A transaction with money has no status for this rule: whether its status events came before
    # its money or after it (and were stale) must not matter.
    statuses = [
        transaction.status
        for key, transaction in order.transactions.items()
        if transaction.status is not None
        and not has_line(order.lines_of.get(key, _NO_LINES), "authorization", "capture")
    ]
    return bool(statuses) and all(status == "failed" for status in statuses)


def _elect(
    order: OrderFacts, touched: TransactionKey, changed: dict[TransactionKey, TransactionFacts]
) -> bool:
    """Settle which transaction pays and which hold surplus; True when marks were lifted.

    The paying one stays while it holds money. When it gave everything back, another that holds
    money takes its place: without that, a refund that fails after a second payment had taken over
    would be forgotten as soon as the second was given back.
    """
    paying = paying_key(order)
    if len(order.transactions) == 1:
        # The plain case, kept short: nothing to choose between, and no one else to mark.
        if paying is None and has_line(order.lines_of.get(touched, _NO_LINES), "capture"):
            _set(order, touched, changed, paying=True)
        return False
    if paying is not None and _held(order, paying):
        if touched != paying:
            _mark_surplus(order, touched, changed)
        return False
    lifted = paying is not None and _lift(order, changed)
    elected = _successor(order)
    if elected is None:
        return lifted
    if paying is not None and elected != paying:
        _set(order, paying, changed, paying=False)
    _set(order, elected, changed, paying=True)
    if _held(order, elected):
        for key in order.lines_of:
            if key != elected:
                _mark_surplus(order, key, changed)
    return lifted


def _mark_surplus(
    order: OrderFacts, key: TransactionKey, changed: dict[TransactionKey, TransactionFacts]
) -> None:
    """Mark a transaction beside the paying one if its lines hold money, or clear it once they hold none.

    Cleared only where its lines captured the whole amount: else a refused capture may be out there.
    """
    if _held(order, key):
        _set(order, key, changed, refused=True)
    elif captured_of(order, key) == order.amount_minor:
        _set(order, key, changed, refused=False)


def _successor(order: OrderFacts) -> TransactionKey | None:
    """Who pays when the paying one holds nothing: by the facts alone, never by what came first."""
    ranked = [
        (_held(order, key) > 0, captured_of(order, key), key)
        for key, lines in order.lines_of.items()
        if has_line(lines, "capture")
    ]
    return max(ranked)[2] if ranked else None


def _lift(order: OrderFacts, changed: dict[TransactionKey, TransactionFacts]) -> bool:
    # A cancelled order refuses every payment, so its marks stay.
    if order.cancelled:
        return False
    marked = [key for key, transaction in order.transactions.items() if transaction.refused]
    for key in marked:
        _set(order, key, changed, refused=False)
    return bool(marked)


def _held(order: OrderFacts, key: TransactionKey) -> int:
    return captured_of(order, key) - refunded_of(order, key)


def _set(
    order: OrderFacts,
    key: TransactionKey,
    changed: dict[TransactionKey, TransactionFacts],
    *,
    paying: bool | None = None,
    refused: bool | None = None,
) -> None:
    before = order.transactions[key]
    after = before.with_marks(
        paying=before.paying if paying is None else paying,
        refused=before.refused if refused is None else refused,
    )
    if after is not before:
        order.transactions[key] = changed[key] = after
