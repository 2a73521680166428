"""One event and one order, for tests of single decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from receiver.orders.decide import decide
from receiver.orders.decisions import Apply, Decision, Refuse
from receiver.orders.facts import OrderFacts, SourceTerms
from receiver.orders.ledger import apply
from receiver.providers.payment_event import Kind, PaymentEvent

TERMS = SourceTerms()


def event(kind: str, **facts: Any) -> PaymentEvent:
    """An event of order o_1 over 25.00 EUR, with every fact that its kind needs."""
    complete = PaymentEvent(
        source="demo",
        kind=Kind(kind),
        order_reference="o_1",
        transaction_id="tx_1",
        effect_id={"captured": "cap_1", "refunded": "rf_1", "refund_failed": "rf_1"}.get(
            kind, "dp_1" if kind.startswith("dispute") else None
        ),
        amount_minor=2500,
        currency="EUR",
        refund_total_minor=1000 if kind == "refund_total" else None,
    )
    return replace(complete, **facts)


def order_after(*events: PaymentEvent, **facts: Any) -> OrderFacts:
    """An order of 25.00 EUR to which these events were applied."""
    order = OrderFacts(UUID(int=1), "o_1", None, 2500, "EUR")
    for one in events:
        decision = decide(order, one, TERMS)
        assert isinstance(decision, Apply | Refuse), decision
        apply(order, decision)
    for name, value in facts.items():
        setattr(order, name, value)
    return order


def reason(decision: Decision) -> str:
    """The decision's word, or its kind and reason."""
    said = getattr(decision, "reason", None)
    name = type(decision).__name__.lower()
    return name if said is None else f"{name} {said}"


PAID = (event("succeeded"),)
