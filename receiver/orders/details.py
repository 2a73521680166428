"""Sums of money in the sentences that operators read: both sides, in the currency's own decimals."""

from __future__ import annotations

from receiver.money import format_amount
from receiver.orders.facts import OrderFacts
from receiver.providers.payment_event import PaymentEvent


def money_text(order: OrderFacts, minor: int) -> str:
    """An amount in the order's currency."""
    return format_amount(minor, order.currency)


def order_money(order: OrderFacts) -> str:
    """The order's side: ``order 25.00 EUR``."""
    return f"order {format_amount(order.amount_minor, order.currency)}"


def event_money(event: PaymentEvent) -> str:
    """The event's side: ``26.00 EUR``, or what it lacks."""
    if event.amount_minor is None:
        return f"in {event.currency}" if event.currency else "without an amount"
    if event.currency is None:
        return f"{event.amount_minor} without a currency"
    return format_amount(event.amount_minor, event.currency)
