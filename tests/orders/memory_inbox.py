"""A small inbox in memory: parks, wakes and sends round again as the acts do over the tables.

It is the loop that the rules' promises need, and no more: no claims, no attempts, no times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from receiver.orders.decide import decide
from receiver.orders.decisions import Apply, Decision, Ignore, Park, Refuse
from receiver.orders.facts import OrderFacts, SourceTerms
from receiver.orders.ledger import Applied, apply, state_of, totals_of
from receiver.providers.payment_event import PaymentEvent

from .payment_stories import Story
from .provider_books import End


@dataclass(eq=False)
class Row:
    """One stored event and what became of it last; None while it is due."""

    event: PaymentEvent
    decision: Decision | None = None


@dataclass
class MemoryInbox:
    """The rows, the orders by reference, and the order of each transaction."""

    terms: SourceTerms = field(default_factory=SourceTerms)
    rows: list[Row] = field(default_factory=list)
    orders: dict[str, OrderFacts] = field(default_factory=dict)
    owners: dict[tuple[str, str | None], OrderFacts] = field(default_factory=dict)

    def receive(self, event: PaymentEvent) -> None:
        """Store an event under an id of its own and work until nothing is due."""
        self.rows.append(Row(event))
        self.work()

    def register(self, story: Story) -> None:
        """Register the story's order and wake what waited for it."""
        order = OrderFacts(UUID(int=1), story.reference, None, story.amount_minor, story.currency)
        self.orders[story.reference] = order
        self._send_round(lambda row: self._concerns(row, order) and isinstance(row.decision, Park))
        self.work()

    def cancel(self, reference: str) -> bool:
        """Cancel the order unless money or a waiting event forbids it; whether it is cancelled now."""
        order = self.orders.get(reference)
        if order is None:
            return False
        waiting = any(self._concerns(row, order) and isinstance(row.decision, Park) for row in self.rows)
        if waiting or state_of(order) not in ("pending", "failed"):
            return False
        order.cancelled = True
        order.state = state_of(order)
        return True

    def work(self) -> None:
        """Decide each due row until none is left; a bound tells a loop that never settles."""
        for _ in range(10_000):
            row = next((row for row in self.rows if row.decision is None), None)
            if row is None:
                return
            self._decide(row)
        raise AssertionError("the rows never settle")

    def end_of(self, reference: str) -> End:
        """How the order stands."""
        order = self.orders[reference]
        totals = totals_of(order)
        assert order.state == state_of(order)
        return End(order.state, totals.authorized_minor, totals.captured_minor, totals.refunded_minor)

    def refused(self) -> set[str]:
        """The reasons for which rows failed."""
        return {row.decision.reason for row in self.rows if isinstance(row.decision, Refuse)}

    def parked(self) -> list[Decision]:
        """What still waits."""
        return [row.decision for row in self.rows if isinstance(row.decision, Park)]

    def _decide(self, row: Row) -> None:
        event = row.event
        key = (event.source, event.transaction_id)
        owner = self.owners.get(key)
        order = owner if event.order_reference is None else self.orders.get(event.order_reference)
        foreign = owner is not None and owner is not order
        row.decision = decision = decide(order, event, self.terms, foreign=foreign)
        if order is None or not (
            isinstance(decision, Apply) or (isinstance(decision, Refuse) and decision.marks)
        ):
            return
        applied = apply(order, decision)
        self.owners[key] = order
        self._after(row, order, applied)

    def _after(self, row: Row, order: OrderFacts, applied: Applied) -> None:
        key = (row.event.source, row.event.transaction_id)
        self._send_round(lambda other: self._concerns(other, order) and isinstance(other.decision, Park))
        if applied.new_transaction:
            self._send_round(
                lambda other: (
                    (other.event.source, other.event.transaction_id) == key
                    and other.decision == Ignore("not_ours")
                )
            )
        if applied.lifted:
            self._send_round(
                lambda other: (
                    self._concerns(other, order)
                    and other is not row
                    and (
                        (isinstance(other.decision, Refuse) and other.decision.reason == "second_payment")
                        or other.decision == Ignore("surplus_returned")
                    )
                )
            )

    def _concerns(self, row: Row, order: OrderFacts) -> bool:
        if row.event.order_reference is not None:
            return row.event.order_reference == order.reference
        return self.owners.get((row.event.source, row.event.transaction_id)) is order

    def _send_round(self, chosen: Callable[[Row], bool]) -> None:
        for row in self.rows:
            if chosen(row):
                row.decision = None
