"""What `receiver trigger` sends: the events that a scenario needs, and what a fault does to them.

Pure: no network, no clock, no chance of its own. The same ``Run`` gives the same plan to the byte, so
that a repeated run sends duplicates. Who posts, signs and looks at the outcome is ``trigger``.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from receiver.providers.payment_event import Kind
from receiver.simulator.dialect import Dialect, Facts

FAULTS = (
    "duplicate",
    "reorder",
    "tamper",
    "stale",
    "future",
    "conflict",
    "wrong-amount",
    "wrong-currency",
    "wrong-transaction",
    "wrong-account",
    "illegal",
    "lost",
)

STEPS: dict[Kind, tuple[Kind, ...]] = {
    Kind.PENDING: (Kind.PENDING,),
    Kind.FAILED: (Kind.FAILED,),
    Kind.AUTHORIZED: (Kind.AUTHORIZED,),
    Kind.SUCCEEDED: (Kind.SUCCEEDED,),
    Kind.CAPTURED: (Kind.AUTHORIZED, Kind.CAPTURED, Kind.CAPTURED),
    Kind.VOIDED: (Kind.AUTHORIZED, Kind.VOIDED),
    Kind.REFUNDED: (Kind.SUCCEEDED, Kind.REFUNDED),
    Kind.REFUND_FAILED: (Kind.SUCCEEDED, Kind.REFUNDED, Kind.REFUND_FAILED),
    Kind.DISPUTE_OPENED: (Kind.SUCCEEDED, Kind.DISPUTE_OPENED),
    Kind.DISPUTE_WON: (Kind.SUCCEEDED, Kind.DISPUTE_OPENED, Kind.DISPUTE_WON),
    Kind.DISPUTE_LOST: (Kind.SUCCEEDED, Kind.DISPUTE_OPENED, Kind.DISPUTE_LOST),
    Kind.OTHER: (Kind.OTHER,),
}
"""The events of one order that lead to the event asked for, in the order of a real payment."""

ENDS: dict[Kind, str] = {
    Kind.PENDING: "pending",
    Kind.FAILED: "failed",
    Kind.AUTHORIZED: "authorized",
    Kind.SUCCEEDED: "paid",
    Kind.CAPTURED: "paid",
    Kind.VOIDED: "pending",
    Kind.REFUNDED: "refunded",
    Kind.REFUND_FAILED: "paid",
    Kind.DISPUTE_OPENED: "disputed",
    Kind.DISPUTE_WON: "paid",
    Kind.DISPUTE_LOST: "charged_back",
    Kind.OTHER: "pending",
}
"""The state in which a scenario without a fault leaves its order."""

NEEDS_CAPTURE = frozenset(
    {Kind.REFUNDED, Kind.REFUND_FAILED, Kind.DISPUTE_OPENED, Kind.DISPUTE_WON, Kind.DISPUTE_LOST}
)

LATE_BY_SECONDS = 600
"""How far outside the source's window the faults `stale` and `future` sign."""

SEEDED_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""When the events of a seeded run say that they were made: a repeat must send the same bytes."""


@dataclass(frozen=True, slots=True)
class PlannedOrder:
    """An order that the events pay; ``given``: it was named by the user and is not registered here.

    ``paid_by`` is the transaction that holds a given order's money already: it is the one refunded.
    """

    reference: str
    amount_minor: int
    currency: str
    given: bool = False
    paid_by: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedPost:
    """One HTTP post: ``signed_shift`` seconds are added to the time of signing; a tampered one has a
    byte changed after that; a ``lost`` one is recorded at the provider and never sent. ``expect``
    is the status that the service must answer with.
    """

    event_id: str
    event_type: str
    order_reference: str
    body: bytes
    signed_shift: int = 0
    tampered: bool = False
    lost: bool = False
    expect: int = 200


@dataclass(frozen=True, slots=True)
class Run:
    """One call of trigger. ``tag`` stands in every id of the run; ``made_at`` in every body."""

    source: str
    kind: Kind
    dialect: Dialect
    tag: str
    made_at: datetime
    fault: str | None = None
    count: int = 1
    currency: str = "EUR"
    account: str | None = None
    live: bool | None = None
    window_seconds: int = 300
    accepted: int = 200
    unverified: int = 401
    given: PlannedOrder | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Orders to register first, then chains of posts: a chain goes out in its order, chains at once."""

    orders: tuple[PlannedOrder, ...]
    chains: tuple[tuple[PlannedPost, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def posts(self) -> list[PlannedPost]:
        """Every post of every chain, those that are lost too."""
        return [post for chain in self.chains for post in chain]


@dataclass(slots=True)
class _Story:
    """The steps of one order, before they become bytes."""

    order: PlannedOrder
    facts: list[Facts] = field(default_factory=list)


def run_tag(seed: int, *scenario: str | None) -> str:
    """The tag of a seeded run: another scenario of the same seed must not reuse its ids."""
    return hashlib.sha256("|".join([str(seed), *map(str, scenario)]).encode()).hexdigest()[:8]


def plan(run: Run) -> Plan:
    """The orders and posts of a run."""
    orders: list[PlannedOrder] = []
    chains: list[tuple[PlannedPost, ...]] = []
    for index in range(run.count):
        chance = random.Random(f"{run.tag}:{index}")  # noqa: S311 (repeatable on purpose)
        order = run.given or PlannedOrder(
            f"ord_{run.tag}_{index + 1}", chance.randrange(100, 20_000), run.currency
        )
        orders.append(order)
        story = _story(run, order, index)
        if run.fault == "wrong-transaction":
            other = PlannedOrder(
                f"ord_{run.tag}_{index + 1}_other", chance.randrange(100, 20_000), order.currency
            )
            orders.append(other)
            paid = _facts(run, other, Kind.SUCCEEDED, index, 0)
            story.facts = [paid, *_on_transaction(story.facts[-1:], paid.transaction_id)]
        chains.append(_posts(run, story))
    notes = []
    if run.fault == "wrong-account" and run.account is None:
        notes.append(f"The source {run.source} states no account, so the wrong one is not compared.")
    if run.fault == "reorder":
        chains = _shuffled(run, chains)
    registered = tuple({order.reference: order for order in orders if not order.given}.values())
    return Plan(registered, tuple(chains), tuple(notes))


def _story(run: Run, order: PlannedOrder, index: int) -> _Story:
    steps: Sequence[Kind] = STEPS[run.kind]
    if run.fault == "illegal":
        steps = (run.kind if run.kind in NEEDS_CAPTURE else _illegal(run.dialect),)
    if order.paid_by and run.kind in NEEDS_CAPTURE:
        steps = [kind for kind in steps if kind is not Kind.SUCCEEDED]
    # A provider may have no event for what comes before.
    steps = [kind for kind in steps if kind in run.dialect.types]
    facts = [_facts(run, order, kind, index, number) for number, kind in enumerate(steps, start=1)]
    if run.kind is Kind.CAPTURED and run.fault != "illegal":
        first = order.amount_minor // 2
        parts = iter((first, order.amount_minor - first))
        facts = [
            replace(fact, amount_minor=next(parts)) if fact.kind is Kind.CAPTURED else fact for fact in facts
        ]
        facts = [fact for fact in facts if fact.amount_minor]
    if order.paid_by and run.kind in NEEDS_CAPTURE:
        facts = _on_transaction(facts, order.paid_by)
    return _Story(order, facts)


def _illegal(dialect: Dialect) -> Kind:
    """An event that needs a capture before it, where the provider has one."""
    return next((kind for kind in dialect.types if kind in NEEDS_CAPTURE), Kind.SUCCEEDED)


def _facts(run: Run, order: PlannedOrder, kind: Kind, index: int, number: int) -> Facts:
    name = f"{run.tag}_{index + 1}"
    effect = number if kind in (Kind.CAPTURED, Kind.AUTHORIZED) else 1
    return Facts(
        event_id=f"evt_{name}_{number}",
        kind=kind,
        order_reference=order.reference,
        transaction_id=f"txn_{name}" if number else f"txn_{name}_other",
        effect_id=f"{name}_{effect}",
        amount_minor=order.amount_minor,
        currency=order.currency,
        sequence=number or 1,
        account=run.account,
        live=run.live,
        made_at=run.made_at + timedelta(seconds=number),
    )


def _on_transaction(facts: Sequence[Facts], transaction_id: str) -> list[Facts]:
    return [replace(fact, transaction_id=transaction_id) for fact in facts]


def _posts(run: Run, story: _Story) -> tuple[PlannedPost, ...]:
    """The posts of one order: a fault strikes the last event, duplicate all of them."""
    *before, last = story.facts
    posts = [_post(run, fact) for fact in before]
    struck = _post(run, _contradicted(run, last))
    shift = run.window_seconds + LATE_BY_SECONDS
    if run.fault == "tamper":
        struck = replace(struck, tampered=True, expect=run.unverified)
    elif run.fault == "stale":
        struck = replace(struck, signed_shift=-shift, expect=run.unverified)
    elif run.fault == "future":
        struck = replace(struck, signed_shift=shift, expect=run.unverified)
    elif run.fault == "lost":
        struck = replace(struck, lost=True)
    posts.append(struck)
    if run.fault == "conflict":
        posts.append(_post(run, replace(last, amount_minor=last.amount_minor + 1)))
    if run.fault == "duplicate":
        posts = [post for post in posts for _ in range(2)]
    return tuple(posts)


def _contradicted(run: Run, facts: Facts) -> Facts:
    if run.fault == "wrong-amount":
        return replace(facts, amount_minor=facts.amount_minor + 100)
    if run.fault == "wrong-currency":
        return replace(facts, currency="USD" if facts.currency != "USD" else "EUR")
    if run.fault == "wrong-account":
        return replace(facts, account="acct_of_somebody_else")
    return facts


def _post(run: Run, facts: Facts) -> PlannedPost:
    return PlannedPost(
        event_id=facts.event_id,
        event_type=run.dialect.types[facts.kind],
        order_reference=facts.order_reference,
        body=run.dialect.body(facts),
        expect=run.accepted,
    )


def _shuffled(run: Run, chains: Sequence[tuple[PlannedPost, ...]]) -> list[tuple[PlannedPost, ...]]:
    posts: list[tuple[PlannedPost, ...]] = [(post,) for chain in chains for post in chain]
    random.Random(f"{run.tag}:order").shuffle(posts)  # noqa: S311 (repeatable on purpose)
    return posts
