"""What a bulk replay would do now, event by event, without doing it: read only, no order locked."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy.orm import Session

from receiver.inbox.claimed import COLUMNS, Claimed, claimed_from, terms_of
from receiver.inbox.dead_letters import next_matching
from receiver.inbox.filter import Filter
from receiver.inbox.judge import judge
from receiver.inbox.replay import ASKED_FIRST, is_asked_first, say
from receiver.orders.decisions import Apply, Decision, Ignore, Park, Refuse, Repeat, Stale
from receiver.orders.ledger import apply
from receiver.orders.load import Book, load
from receiver.settings import Settings

BATCH = 500
EXAMPLES = 3


@dataclass(slots=True)
class DryOutcome:
    """Events that would come to the same: the outcome's word, its reason, how many, and some of them.

    ``outcome`` is ``asked first`` where the provider's API decides. ``sentence`` says it of the first.
    """

    outcome: str
    reason: str | None
    sentence: str
    count: int = 0
    examples: list[UUID] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DryRun:
    """``looked_at`` events, the most frequent outcome first; ``more``: the filter has further ones."""

    looked_at: int
    more: bool
    outcomes: list[DryOutcome]


def dry_run(
    session: Session,
    settings: Settings,
    filter: Filter,  # noqa: A002
    limit: int = 10_000,
) -> DryRun:
    """Decide the first ``limit`` dead letters of the filter against the orders as they stand.

    Events of one batch of 500 see one another, as they would when worked; those of different batches
    do not, so a refund far behind its capture is said to wait. Raises FilterError.
    """
    found: dict[tuple[str, str | None], DryOutcome] = {}
    looked_at, cursor, all_seen = 0, None, False
    while not all_seen and looked_at < limit:
        rows, cursor, all_seen = next_matching(
            session, filter, COLUMNS, after=cursor, limit=min(BATCH, limit - looked_at)
        )
        looked_at += len(rows)
        _judge_batch(session, settings, [claimed_from(row) for row in rows], found)
    more = not all_seen and bool(next_matching(session, filter, ("id",), after=cursor, limit=1)[0])
    outcomes = sorted(found.values(), key=lambda each: (-each.count, each.outcome, each.reason or ""))
    return DryRun(looked_at, more, outcomes)


def _judge_batch(
    session: Session,
    settings: Settings,
    rows: list[Claimed],
    found: dict[tuple[str, str | None], DryOutcome],
) -> None:
    ordered = sorted(rows, key=lambda row: (row.event.order_reference is None, row.received_at, row.id))
    book = load(session, [row.event for row in ordered], lock=False)
    for row in ordered:
        outcome, reason, sentence = _one(book, settings, row)
        entry = found.setdefault((outcome, reason), DryOutcome(outcome, reason, sentence))
        entry.count += 1
        if len(entry.examples) < EXAMPLES:
            entry.examples.append(row.id)


def _one(book: Book, settings: Settings, row: Claimed) -> tuple[str, str | None, str]:
    event = row.event
    if is_asked_first(settings, event):
        return "asked first", None, ASKED_FIRST
    order, decision = judge(book, event, terms_of(settings, event.source), row.waive)
    sentence = say(decision)
    if order is not None and (
        isinstance(decision, Apply) or (isinstance(decision, Refuse) and decision.marks)
    ):
        applied = apply(order, decision)
        book.bind((event.source, event.transaction_id or ""), order, applied.lines)
        if isinstance(decision, Apply):
            sentence = say(decision, order.reference, applied.from_state, applied.to_state)
    return (*_word(decision), sentence)


def _word(decision: Decision) -> tuple[str, str | None]:
    match decision:
        case Apply():
            return "applied", None
        case Repeat():
            return "repeat", None
        case Stale():
            return "stale", None
        case Ignore(reason):
            return "ignored", reason
        case Park(reason):
            return "parked", reason
        case Refuse(reason):
            return "failed", reason
