"""One batch of claimed events, worked in one transaction: lock, decide in memory, write as sets.

The caller owns the transaction. The effect and the finish of each event commit together, under the
claim that owns the row: a row whose claim is gone raises ClaimLost, and everything rolls back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.orm import Session

from receiver.inbox.claimed import Claimed, terms_of
from receiver.inbox.judge import judge
from receiver.inbox.minutes import Key, MinuteCount, add_minutes, minute_of
from receiver.inbox.table import INBOX, LATE_ENDS
from receiver.inbox.wake import send_round_lifted, send_round_not_ours, wake
from receiver.orders.decisions import Apply, Decision, Ignore, Park, Refuse, Repeat, Stale
from receiver.orders.facts import SourceTerms, TransactionKey
from receiver.orders.ledger import apply
from receiver.orders.load import Book, load
from receiver.orders.record import Change, note_unbound, record
from receiver.queue.settle import Settled, Settlement, fail, finish, park, settle
from receiver.settings import Settings


class ClaimLost(Exception):
    """Some rows of the batch are no longer this claim's; nothing was committed for any."""


@dataclass(slots=True)
class _Work:
    """What the decisions of one batch come to."""

    changes: list[Change] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)
    references: set[str] = field(default_factory=set)
    transactions: set[TransactionKey] = field(default_factory=set)
    bound: set[TransactionKey] = field(default_factory=set)
    unbound: set[TransactionKey] = field(default_factory=set)
    lifted: set[UUID] = field(default_factory=set)
    outcomes: dict[UUID, str] = field(default_factory=dict)
    waiting: set[UUID] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Worked:
    """What a batch came to, for logs: each row's state, outcome word and reason."""

    settled: list[Settled]
    outcomes: dict[UUID, str]


def work_batch(
    session: Session,
    settings: Settings,
    claim_id: UUID,
    rows: Sequence[Claimed],
    *,
    worker: str,
    now: datetime | None = None,
) -> Worked:
    """Work the rows in the caller's transaction. Raises ClaimLost, FactsChanged, or a database error."""
    started = time.monotonic()
    # Events that name their order go first: they bind transactions that the others are found by.
    ordered = sorted(rows, key=lambda row: (row.event.order_reference is None, row.received_at, row.id))
    book = load(session, [row.event for row in ordered])
    work = _Work()
    terms: dict[str, SourceTerms | None] = {}
    for row in ordered:
        source = row.event.source
        if source not in terms:
            terms[source] = terms_of(settings, source)
        _work_one(book, row, terms[source], work)
    record(session, work.changes, now=now)
    note_unbound(session, work.unbound - set(book.owners.keys() & work.bound), now=now)
    settled = _settle(session, claim_id, ordered, work, worker, started, now)
    _wake(session, book, work, settings.give_up, now)
    elapsed = timedelta(seconds=time.monotonic() - started)
    outcomes = _outcomes(settled, work)
    add_minutes(session, _count(ordered, settled, outcomes, work.waiting, elapsed))
    return Worked(settled, outcomes)


def _work_one(book: Book, row: Claimed, terms: SourceTerms | None, work: _Work) -> None:
    event = row.event
    order, decision = judge(book, event, terms, row.waive)
    key = (event.source, event.transaction_id or "")
    if event.transaction_id is not None and _hangs_on_transaction(decision):
        work.unbound.add(key)
    if order is not None and (
        isinstance(decision, Apply) or (isinstance(decision, Refuse) and decision.marks)
    ):
        applied = apply(order, decision)
        if book.owners.get(key) is None:
            work.bound.add(key)
        book.bind(key, order, applied.lines)
        work.changes.append(
            Change(
                order,
                row.id,
                row.provider_event_id,
                applied.lines,
                applied.transactions,
                applied.from_state,
                applied.to_state,
                applied.totals,
                by=_by(row, decision),
            )
        )
        work.references.add(order.reference)
        work.transactions.update(order.transactions)
        if applied.lifted:
            work.lifted.add(order.id)
    work.settlements.append(_settlement(row, decision))
    work.outcomes[row.id] = _outcome(decision)
    if isinstance(decision, Park) and row.parked_reason == decision.reason:
        work.waiting.add(row.id)


def _by(row: Claimed, decision: Decision) -> str:
    if isinstance(decision, Apply) and decision.released:
        return "operator"
    return "event" if row.origin is None else "reconcile"


def _hangs_on_transaction(decision: Decision) -> bool:
    """Whether the event would be decided otherwise if its transaction were known."""
    return isinstance(decision, Ignore | Park) and decision.reason in ("not_ours", "transaction_unknown")


def _settlement(row: Claimed, decision: Decision) -> Settlement:
    match decision:
        case Apply():
            return finish(INBOX, row.id, "applied")
        case Repeat():
            return finish(INBOX, row.id, "repeat")
        case Stale(detail):
            return finish(INBOX, row.id, "stale", "older_than_known", detail)
        case Ignore(reason):
            return finish(INBOX, row.id, "ignored", reason)
        case Park(reason, detail):
            again = row.parked_reason == reason
            return park(row.id, reason, detail, again=again, late=LATE_ENDS.get(reason))
        case Refuse(reason, detail):
            if row.event.facts_error is not None and row.last_error:
                # The intake left what it could not read; the sentence without the value helps nobody.
                detail = row.last_error
            return fail(row.id, reason, detail)


def _outcome(decision: Decision) -> str:
    match decision:
        case Apply():
            return "applied"
        case Repeat():
            return "repeat"
        case Stale():
            return "stale"
        case Ignore():
            return "ignored"
        case Park():
            return "parked"
        case Refuse():
            return "failed"


def _settle(
    session: Session,
    claim_id: UUID,
    rows: Sequence[Claimed],
    work: _Work,
    worker: str,
    started: float,
    now: datetime | None,
) -> list[Settled]:
    settled = settle(
        session,
        INBOX,
        claim_id,
        work.settlements,
        worker=worker,
        started_at=rows[0].claimed_at,
        duration_ms=int((time.monotonic() - started) * 1000),
        now=now,
    )
    if len(settled) != len(rows):
        raise ClaimLost
    return settled


def _wake(session: Session, book: Book, work: _Work, give_up: timedelta, now: datetime | None) -> None:
    if work.bound:
        send_round_not_ours(session, work.bound, give_up=give_up, now=now)
    for order_id in work.lifted:
        order = book.by_id[order_id]
        send_round_lifted(session, [order.reference], list(order.transactions), give_up=give_up, now=now)
    if work.references:
        wake(session, work.references, work.transactions, now=now)


def _outcomes(settled: Sequence[Settled], work: _Work) -> dict[UUID, str]:
    """The words for what became of the rows; the deadline may have ended one that was to wait."""
    words = dict(work.outcomes)
    for row in settled:
        if words[row.row_id] == "parked" and row.state != "pending":
            words[row.row_id] = "ignored" if row.state == INBOX.success else row.state
    return words


def _count(
    rows: Sequence[Claimed],
    settled: Sequence[Settled],
    outcomes: dict[UUID, str],
    waiting: set[UUID],
    elapsed: timedelta,
) -> dict[Key, MinuteCount]:
    states = {row.row_id: row.state for row in settled}
    counted: dict[Key, MinuteCount] = {}
    for row in rows:
        state = states[row.id]
        if state == "pending" and row.id in waiting:
            continue  # a further look is no further event
        result = outcomes[row.id]
        ended = row.claimed_at + elapsed
        duration = None
        if state != "pending":
            duration = max(0, int((ended - row.received_at).total_seconds() * 1000))
        key = (row.event.source, minute_of(ended), result)
        counted.setdefault(key, MinuteCount()).add(duration)
    return counted
