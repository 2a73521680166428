"""Register an order, and wake the events that came before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.inbox.wake import wake
from receiver.money import format_amount, is_currency
from receiver.orders.models import Order

MAX_REFERENCE = 255
MAX_AMOUNT = 10**15
"""The largest amount in minor units: the largest that an event may carry."""


class OrderRefused(Exception):
    """Facts that no order can have. ``code``: bad_reference, bad_amount, bad_currency, bad_sources."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class OrderFactsDiffer(Exception):
    """The reference is registered already, with other facts."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.code = "order_exists"
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Registered:
    """The order, and whether it is new; ``woken`` events had been waiting for it."""

    order: Order
    created: bool
    woken: int


def register_order(
    session: Session,
    *,
    order_id: UUID,
    reference: str,
    amount_minor: int,
    currency: str,
    sources: Sequence[str] | None = None,
    now: datetime | None = None,
) -> Registered:
    """Register an order, or find it registered with the same facts.

    Raises OrderRefused for impossible facts and OrderFactsDiffer where the reference is taken.
    """
    check_facts(reference, amount_minor, currency, sources)
    wanted = None if sources is None else sorted(set(sources))
    created = session.execute(
        text(
            "INSERT INTO orders (id, reference, sources, amount_minor, currency, created_at, updated_at)"
            " SELECT :id, :reference, CAST(:sources AS text[]), :amount_minor, :currency, t.now, t.now"
            " FROM (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now) t"
            " ON CONFLICT (reference) DO NOTHING RETURNING id"
        ),
        {
            "id": order_id,
            "reference": reference,
            "sources": wanted,
            "amount_minor": amount_minor,
            "currency": currency,
            "now": now,
        },
    ).first()
    order = session.scalars(select(Order).where(Order.reference == reference)).one()
    if created is None:
        known = (order.amount_minor, order.currency, order.sources)
        if known != (amount_minor, currency, wanted):
            raise OrderFactsDiffer(
                f"{reference} is registered with {format_amount(order.amount_minor, order.currency)}"
                f"{'' if order.sources is None else ' from ' + ', '.join(order.sources)}"
            )
        return Registered(order, created=False, woken=0)
    return Registered(order, created=True, woken=wake(session, [reference], now=now))


def check_facts(reference: object, amount_minor: object, currency: object, sources: object) -> None:
    """Raise OrderRefused for the first fact that no order can have."""
    if not isinstance(reference, str) or not 1 <= len(reference) <= MAX_REFERENCE or not reference.strip():
        raise OrderRefused("bad_reference", f"reference must be a text of 1 to {MAX_REFERENCE} characters")
    if not _can_be_stored(reference):
        raise OrderRefused("bad_reference", "reference must not hold NUL or lone surrogates")
    if not isinstance(amount_minor, int) or isinstance(amount_minor, bool):
        raise OrderRefused("bad_amount", "amount_minor must be an integer in the currency's minor unit")
    if not 1 <= amount_minor <= MAX_AMOUNT:
        raise OrderRefused("bad_amount", f"amount_minor must be from 1 to {MAX_AMOUNT}")
    if not isinstance(currency, str) or not is_currency(currency) or currency != currency.upper():
        raise OrderRefused("bad_currency", "currency must be an ISO 4217 code in upper case, such as EUR")
    if sources is not None and (
        not isinstance(sources, list | tuple) or not sources or not all(map(_is_source_name, sources))
    ):
        raise OrderRefused("bad_sources", "sources must be a list of source names, or left out for any")


def _is_source_name(name: object) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= 64 and _can_be_stored(name)


def _can_be_stored(value: str) -> bool:
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value)
