"""What a provider's record of an order says beside ours: what we miss, and where both sides differ. Pure.

Each fact of the API is put to the same rules as an event, on a copy of the order in memory; what they
would apply is missing here, what they would refuse is a difference for a person to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field

from receiver.inbox.judge import judge
from receiver.money import format_amount
from receiver.orders.decisions import Apply, Decision, Park, Refuse, Stale
from receiver.orders.facts import OrderFacts, SourceTerms, TransactionKey
from receiver.orders.ledger import IllegalTransition, apply, captured_of, refunded_of
from receiver.orders.load import Book
from receiver.orders.sums import has_line
from receiver.providers.payment_event import Kind, PaymentEvent

REFUNDS = frozenset({Kind.REFUNDED, Kind.REFUND_TOTAL})
_TAKES = frozenset({Kind.SUCCEEDED, Kind.CAPTURED})
_DIFFERENCES = {
    "amount": "amount_differs",
    "effect_changed": "amount_differs",
    "currency": "currency_differs",
}
_UNKNOWN = frozenset({"order_unknown", "transaction_unknown"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One finding, with both sides in words; ``transaction_id`` empty where there is none."""

    kind: str
    order_reference: str
    transaction_id: str
    ours: str
    theirs: str


@dataclass(slots=True)
class Comparison:
    """``missing`` facts are to be posted. ``holds_money``: the provider holds money for the order, or has
    it authorized, whatever we think of the amount.
    """

    missing: list[PaymentEvent] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    holds_money: bool = False


def compare(
    book: Book,
    order: OrderFacts,
    source: str,
    facts: Sequence[PaymentEvent],
    terms: SourceTerms | None,
    *,
    asked: Iterable[str] = (),
    told: Set[Kind] = frozenset(Kind),
) -> Comparison:
    """Compare the API's ``facts`` with ``order`` as it stands in ``book``, which is not changed.

    ``asked`` are the transactions that the API was asked for and answered, with nothing where it does not
    know them; ``told`` the kinds that it tells at all, since what it never tells cannot be missing there.
    """
    found = Comparison()
    ours = deepcopy(book)
    theirs = _empty(order)
    for fact in facts:
        before = in_words(ours.by_id[order.id], (fact.source, fact.transaction_id or ""))
        if fact.order_reference not in (None, order.reference):
            foreign = Refuse("order", f"it names the order {fact.order_reference}")
            _note(found, order, fact, foreign, before)
            continue
        decision = _judged(ours, fact, terms)
        _note(found, order, fact, decision, before)
        _judged(theirs, fact, terms)
    sides = (book.by_id[order.id], theirs.by_id[order.id])
    differing = {one.transaction_id for one in found.differences}
    for transaction in sorted({*asked, *(fact.transaction_id or "" for fact in facts)} - {""} - differing):
        key = (source, transaction)
        more = _ours_more(*sides, key, facts, told)
        if more:
            said = " and ".join(say(fact) for fact in facts if fact.transaction_id == transaction)
            found.differences.append(
                Difference("state_differs", order.reference, transaction, more, said or "not known there")
            )
    found.holds_money = any(_holds(facts, transaction) for transaction in {f.transaction_id for f in facts})
    return found


def _judged(book: Book, fact: PaymentEvent, terms: SourceTerms | None) -> Decision:
    order, decision = judge(book, fact, terms)
    if order is None or not (
        isinstance(decision, Apply) or (isinstance(decision, Refuse) and decision.marks)
    ):
        return decision
    try:
        applied = apply(order, decision)
    except IllegalTransition:
        return Refuse("illegal_transition", "no one event may move the order so")
    book.bind((fact.source, fact.transaction_id or ""), order, applied.lines)
    if isinstance(decision, Refuse) and not applied.transactions:
        # Marked before: nothing new to tell the inbox.
        return Refuse(decision.reason, decision.detail)
    return decision


def _empty(order: OrderFacts) -> Book:
    """The order as if nothing had been told of it yet."""
    bare = OrderFacts(order.id, order.reference, order.sources, order.amount_minor, order.currency)
    return Book({order.id: bare}, {order.reference: bare})


def _note(found: Comparison, order: OrderFacts, fact: PaymentEvent, decision: Decision, before: str) -> None:
    kind, detail = None, ""
    match decision:
        case Apply():
            found.missing.append(fact)
            kind = None if fact.kind is Kind.PENDING else "missing"
        case Refuse(reason, detail):
            if decision.marks:
                found.missing.append(fact)
            kind = _DIFFERENCES.get(reason, "state_differs")
        case Park(reason, detail) if reason in _UNKNOWN:
            kind = "unknown_to_us"
        case Park(reason, detail) if reason != "source_unknown":
            kind = "state_differs"
        case Stale(detail) if fact.kind is Kind.REFUND_TOTAL:
            kind = "state_differs"
    if kind is None:
        return
    reference = order.reference if kind != "unknown_to_us" else fact.order_reference or ""
    said = f"{say(fact)} ({detail})" if detail else say(fact)
    found.differences = _added(
        found.differences, Difference(kind, reference, fact.transaction_id or "", before, said)
    )


def _added(differences: list[Difference], one: Difference) -> list[Difference]:
    """One finding for a kind and transaction: further facts of it stand in the same sentence."""
    key = (one.kind, one.order_reference, one.transaction_id)
    for index, other in enumerate(differences):
        if (other.kind, other.order_reference, other.transaction_id) == key:
            joined = Difference(*key, other.ours, f"{other.theirs} and {one.theirs}")
            return [*differences[:index], joined, *differences[index + 1 :]]
    return [*differences, one]


def _ours_more(
    ours: OrderFacts,
    theirs: OrderFacts,
    key: TransactionKey,
    facts: Sequence[PaymentEvent],
    told: Set[Kind],
) -> str | None:
    """Our side, where it says more than the provider's record does; None where it does not."""
    if key not in ours.transactions:
        return None
    captured = captured_of(theirs, key) if key in theirs.transactions else 0
    refunded = refunded_of(theirs, key) if key in theirs.transactions else 0
    if captured_of(ours, key) > captured:
        return in_words(ours, key)
    if REFUNDS & told and refunded_of(ours, key) > refunded:
        return in_words(ours, key)
    lines = ours.lines_of.get(key, ())
    stands = has_line(lines, "authorization") and not has_line(lines, "void", "capture")
    known = any(
        fact.transaction_id == key[1] and fact.kind not in (Kind.PENDING, Kind.FAILED) for fact in facts
    )
    return in_words(ours, key) if stands and not known else None


def _holds(facts: Sequence[PaymentEvent], transaction: str | None) -> bool:
    kinds = [fact for fact in facts if fact.transaction_id == transaction]
    # The whole may be told beside its parts.
    taken = max(sum(fact.amount_minor or 0 for fact in kinds if fact.kind is kind) for kind in _TAKES)
    failed = {fact.effect_id for fact in kinds if fact.kind is Kind.REFUND_FAILED}
    parts = sum(
        fact.amount_minor or 0
        for fact in kinds
        if fact.kind is Kind.REFUNDED and fact.effect_id not in failed
    )
    totals = [fact.refund_total_minor or 0 for fact in kinds if fact.kind is Kind.REFUND_TOTAL]
    if any(fact.kind in _TAKES for fact in kinds):
        return taken == 0 or max([parts, *totals]) < taken
    said = {fact.kind for fact in kinds}
    return Kind.AUTHORIZED in said and Kind.VOIDED not in said


def in_words(order: OrderFacts, key: TransactionKey) -> str:
    """What we hold of a transaction: the order's state, and the transaction's money."""
    known = order.transactions.get(key)
    if known is None:
        return f"order {order.state}, this transaction not known"
    money = format_amount(captured_of(order, key), order.currency)
    said = f"order {order.state}, {money} captured"
    refunded = refunded_of(order, key)
    if refunded:
        said += f", {format_amount(refunded, order.currency)} refunded"
    return f"{said}, payment {known.status}" if known.status and not captured_of(order, key) else said


def say(fact: PaymentEvent) -> str:
    """A fact of the API in words: ``succeeded 25.00 EUR``."""
    minor = fact.refund_total_minor if fact.kind is Kind.REFUND_TOTAL else fact.amount_minor
    said = str(fact.kind).replace("_", " ")
    if minor is None:
        return said
    if fact.currency is None:
        return f"{said} {minor} minor units"
    return f"{said} {format_amount(minor, fact.currency)}"
