"""Facts side by side: an event's against its order's, one body's against another's; and lines that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from receiver.inbox.models import WebhookEvent
from receiver.money import format_amount
from receiver.orders.models import Order
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.settings import Source
from receiver.web.bodies import as_text, pretty

WHOLE = (Kind.SUCCEEDED, Kind.AUTHORIZED)
"""Kinds whose amount must be the order's."""

MAX_LINES = 2_000
"""Lines of a body that are compared; beyond it the page shows them without a comparison."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One fact on both sides, as texts; ``differs``: it would refuse the event, or tells two bodies apart."""

    name: str
    left: str
    right: str
    differs: bool


def event_against_order(event: WebhookEvent, order: Order, source: Source | None) -> list[Pair]:
    """What the rules compare: the event on the left, the order and the source's settings on the right."""
    allowed = "any" if order.sources is None else ", ".join(order.sources)
    pairs = [
        Pair("Order", event.order_reference or "by its transaction", order.reference, False),
        Pair(
            "Amount",
            money(event.amount_minor, event.currency),
            money(order.amount_minor, order.currency),
            _amount_differs(event, order),
        ),
        Pair(
            "Currency",
            event.currency or "–",
            order.currency,
            event.currency is not None and event.currency != order.currency,
        ),
        Pair(
            "Source", event.source, allowed, order.sources is not None and event.source not in order.sources
        ),
        Pair(
            "Meaning, and state",
            event.kind,
            _stands(order),
            order.cancelled_at is not None and event.kind in MONEY,
        ),
    ]
    if source is not None and source.account is not None:
        pairs.append(
            Pair("Account", event.account or "–", source.account, event.account not in (None, source.account))
        )
    if source is not None and source.live is not None:
        pairs.append(Pair("Mode", mode(event.live), mode(source.live), event.live not in (None, source.live)))
    return pairs


MONEY = (*WHOLE, Kind.CAPTURED)


def _amount_differs(event: WebhookEvent, order: Order) -> bool:
    if event.amount_minor is None:
        return False
    if event.kind in WHOLE:
        return event.amount_minor != order.amount_minor
    return event.kind == Kind.CAPTURED and event.amount_minor > order.amount_minor


def _stands(order: Order) -> str:
    return f"{order.state}, cancelled" if order.cancelled_at and order.state != "cancelled" else order.state


def event_against_body(event: WebhookEvent, event_type: str | None, facts: PaymentEvent) -> list[Pair]:
    """The stored event on the left, what another body under its id says on the right."""
    sides = (
        ("Type", event.event_type, event_type),
        ("Meaning", event.kind, str(facts.kind)),
        ("Order", event.order_reference, facts.order_reference),
        ("Transaction", event.transaction_id, facts.transaction_id),
        ("Effect id", event.effect_id, facts.effect_id),
        ("Amount", money(event.amount_minor, event.currency), money(facts.amount_minor, facts.currency)),
        ("Currency", event.currency, facts.currency),
        (
            "Refunded in all",
            money(event.refund_total_minor, event.currency),
            money(facts.refund_total_minor, facts.currency),
        ),
        ("Sequence", event.sequence, facts.sequence),
        ("Account", event.account, facts.account),
        ("Mode", mode(event.live), mode(facts.live)),
        ("Unreadable", event.facts_error, facts.facts_error),
    )
    return [
        Pair(name, _shown(left), _shown(right), left != right)
        for name, left, right in sides
        if _shown(left) != "–" or _shown(right) != "–"
    ]


def _shown(value: object) -> str:
    return "–" if value is None or value == "" else str(value)


def money(minor: int | None, currency: str | None) -> str:
    """An amount as a text; without a currency in minor units."""
    if minor is None:
        return "–"
    return format_amount(minor, currency) if currency else f"{minor} minor units"


def mode(live: bool | None) -> str:
    """Live or test."""
    return "–" if live is None else "live" if live else "test"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a comparison: ``sign`` is a blank, ``-`` (the first body alone) or ``+``."""

    sign: str
    text: str


def lines_of(body: bytes) -> list[str]:
    """A body as lines: indented JSON, a form's fields one a line, or the text as it stands."""
    shown = pretty(body)
    if shown is None:
        text = as_text(body) or ""
        shown = text if "\n" in text.strip() else text.replace("&", "\n&")
    return shown.splitlines()


def compare_bodies(first: bytes, second: bytes) -> list[Line] | None:
    """Both bodies line by line; None where they are too long to compare while somebody waits."""
    left, right = lines_of(first), lines_of(second)
    if max(len(left), len(right)) > MAX_LINES:
        return None
    return list(_compared(left, right))


def _compared(left: Sequence[str], right: Sequence[str]) -> list[Line]:
    found: list[Line] = []
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=True).get_opcodes():
        if tag == "equal":
            found += [Line(" ", text) for text in left[a:b]]
            continue
        found += [Line("-", text) for text in left[a:b]]
        found += [Line("+", text) for text in right[c:d]]
    return found
