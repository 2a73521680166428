"""Judge one event against the loaded orders: the look-ups that the pure rules leave to their caller."""

from __future__ import annotations

from collections.abc import Set

from receiver.orders import decide as rules
from receiver.orders.decisions import Decision, Park
from receiver.orders.facts import OrderFacts, SourceTerms
from receiver.orders.load import Book
from receiver.providers.payment_event import PaymentEvent


def judge(
    book: Book,
    event: PaymentEvent,
    terms: SourceTerms | None,
    waive: Set[str] = rules.NOTHING_WAIVED,
) -> tuple[OrderFacts | None, Decision]:
    """The event's order and what the event may do to it, ``waive`` naming the checks to skip.

    ``terms`` None: this process has no settings for the source, so account and mode cannot be
    compared, and the event waits for them.
    """
    order = book.order_of(event)
    if terms is None:
        return order, Park("source_unknown", f"no settings for the source {event.source} here")
    decision = rules.decide(
        order,
        event,
        terms,
        foreign=book.is_foreign(order, event),
        effect_elsewhere=book.effect_elsewhere(order, event),
        waive=waive,
    )
    return order, decision
