"""Status events (pending, failed) of one transaction: which of them stands.

The rule is over the set, so that arrival does not matter: failed stands if any failed came without
a sequence, or if the status of the highest sequence is failed (failed wins between equals); else
pending. A failed without a sequence is therefore kept without one and never gives way, and a
pending without one gives way to anything.
"""

from __future__ import annotations

from receiver.orders.decisions import Apply, Decision, Stale
from receiver.orders.facts import OrderFacts, TransactionFacts
from receiver.orders.sums import has_line
from receiver.providers.payment_event import PaymentEvent


def decide_status(order: OrderFacts, event: PaymentEvent, transaction: TransactionFacts) -> Decision:
    """Apply the status, or Stale when money or another status of the transaction outweighs it."""
    lines = order.lines_of.get((transaction.source, transaction.transaction_id), ())
    if has_line(lines, "authorization", "capture"):
        return Stale(f"transaction {transaction.transaction_id} already has money")
    if not outweighs(event.kind, event.sequence, transaction.status, transaction.status_sequence):
        known = transaction.status_sequence
        return Stale(
            f"{transaction.status} stands already" if known is None else f"not newer than sequence {known}"
        )
    return Apply((), transaction.with_status(str(event.kind), event.sequence))


def outweighs(new: str, new_sequence: int | None, status: str | None, sequence: int | None) -> bool:
    """Whether a new status changes what stands."""
    if status is None:
        return True
    if status == "failed" and sequence is None:
        return False
    if new_sequence is None:
        return new == "failed"
    if sequence is None or new_sequence > sequence:
        return True
    return new_sequence == sequence and new == "failed" and status == "pending"
