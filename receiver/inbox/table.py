"""The inbox as a queue."""

from __future__ import annotations

from receiver.queue.settle import LateEnd
from receiver.queue.table import QueueTable

INBOX = QueueTable(
    name="inbox",
    table="webhook_events",
    key="source",
    success="processed",
    attempts_table="webhook_event_attempts",
    attempts_column="event_id",
    # The order in which the intake's one statement meets its rows.
    lock_order=("source", "provider_event_id"),
)

LATE_ENDS = {
    "transaction_unknown": LateEnd("processed", "ignored", "not_ours"),
    "refund_exceeds_captured": LateEnd("failed", "refund_exceeds_captured", "refund_exceeds_captured"),
}
"""How parked rows end at their deadline where that is not `expired`: a transaction that never became
ours was somebody else's; a refund that nothing explained is a contradiction, not a delay."""
