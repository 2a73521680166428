"""Check orders against a source's record: claim, ask without a transaction, then compare and post in one.

What is missing here goes into the inbox as an event with a deterministic id, so that any number of askers
post it once; the rules decide it there. An order is never written from here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.db import at
from receiver.deps import Deps
from receiver.inbox.claimed import terms_of
from receiver.inbox.post_facts import Posted
from receiver.logs import logger
from receiver.orders.facts import OrderFacts
from receiver.orders.load import Book, load
from receiver.orders.models import UNPAID
from receiver.providers.payment_api import Window
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.reconciliation.ask import Answers, Asker, Listed, Subject, told_kinds
from receiver.reconciliation.compare import Comparison, Difference, compare
from receiver.reconciliation.findings import close_others, keep_findings
from receiver.reconciliation.post import effect_of, post_missing, waiting_effects
from receiver.reconciliation.rhythm import next_check
from receiver.reconciliation.subjects import claim_due

BATCH = 20
"""Orders that are claimed together: their list, where one is needed, is asked for once."""

log = logger("reconcile")


class ClaimLost(Exception):
    """Somebody else asks for this order now; nothing was written."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What one check came to. ``posted`` events are new in the inbox; ``said`` is for people."""

    reference: str
    source: str
    result: str
    said: str
    posted: int
    next_check_at: datetime | None
    holds_money: bool
    differences: tuple[Difference, ...] = ()


def check_due(deps: Deps, asker: Asker, *, seconds: float = 20.0, limit: int = 1_000_000) -> int:
    """Check what is due, batch after batch, until nothing is or the time is over; returns the number."""
    ends = time.monotonic() + seconds
    done = 0
    while done < limit and time.monotonic() < ends:
        sources = asker.open_sources()
        claim_id = deps.dice.new_id()
        with deps.sessions.begin() as session:
            subjects = claim_due(
                session, sources, claim_id=claim_id, batch=min(BATCH, limit - done), now=deps.clock.now()
            )
        if not subjects:
            break
        done += len(subjects)
        check_claimed(deps, asker, subjects, claim_id, ends=ends)
    return done


def check_claimed(
    deps: Deps, asker: Asker, subjects: Sequence[Subject], claim_id: UUID, *, ends: float | None = None
) -> list[Checked]:
    """Ask for claimed orders one after the other; those of a source that gives no answer go back."""
    lists = _lists(deps, asker, subjects)
    checked = []
    for index, subject in enumerate(subjects):
        if subject.source not in asker.open_sources() or (ends is not None and time.monotonic() > ends):
            _give_back(deps, subjects[index : index + 1], claim_id)
            continue
        answers = asker.ask(subject, lists[subject.source])
        if answers.unavailable is not None:
            asker.close(subject.source, answers.unavailable)
        try:
            with deps.sessions.begin() as session:
                checked.append(_conclude(session, deps, subject, answers, claim_id))
        except ClaimLost:
            log.info("check.claim_lost", order=subject.reference, source=subject.source)
    return checked


def _lists(deps: Deps, asker: Asker, subjects: Sequence[Subject]) -> dict[str, Listed]:
    with deps.sessions.begin() as session:
        now: datetime = session.execute(select(at(deps.clock.now()))).scalar_one()
    starts: dict[str, datetime] = {}
    for subject in subjects:
        starts[subject.source] = min(starts.get(subject.source, now), subject.listed_from)
    return {name: Listed(asker.api(name), Window(start, now)) for name, start in starts.items()}


def _conclude(session: Session, deps: Deps, subject: Subject, answers: Answers, claim_id: UUID) -> Checked:
    """Compare, post, note findings, and settle the check, in one transaction."""
    now = deps.clock.now()
    facts = [one.event.facts for one in answers.learnt]
    by_reference = PaymentEvent(subject.source, Kind.OTHER, order_reference=subject.reference)
    book = load(session, [by_reference, *facts], lock=False)
    order = book.by_id[subject.order_id]
    found = _compared(deps, book, order, subject, answers, facts)
    wanted = {id(fact) for fact in found.missing}
    learnt = [one for one in answers.learnt if id(one.event.facts) in wanted]
    waiting = waiting_effects(session, subject, [one.event.facts for one in learnt])
    if waiting:
        learnt = [one for one in learnt if effect_of(one.event.facts) not in waiting]
        found.differences = [one for one in found.differences if one.kind != "missing"]
    posted = post_missing(session, deps, learnt, now)
    by_transaction: dict[str, list[UUID]] = {}
    ids = {one.provider_event_id: one.id for one in posted}
    for one in learnt:
        if one.event.provider_event_id in ids:
            key = one.event.facts.transaction_id or ""
            by_transaction.setdefault(key, []).append(ids[one.event.provider_event_id])
    keep_findings(session, subject.source, found.differences, by_transaction, now=now)
    if answers.unavailable is None and answers.offered:
        close_others(session, subject.source, subject.reference, found.differences, now=now)
    result = _result(answers, found, posted, waiting)
    return _settle(session, deps, subject, order, answers, found, result, posted, claim_id)


def _compared(
    deps: Deps,
    book: Book,
    order: OrderFacts,
    subject: Subject,
    answers: Answers,
    facts: Sequence[PaymentEvent],
) -> Comparison:
    return compare(
        book,
        order,
        subject.source,
        facts,
        terms_of(deps.settings, subject.source),
        asked=[*answers.known, *answers.unknown] if answers.unavailable is None else (),
        told=told_kinds(deps.settings.sources.get(subject.source)),
    )


def _result(answers: Answers, found: Comparison, posted: Sequence[Posted], waiting: object) -> str:
    if answers.unavailable is not None:
        return "unavailable"
    if not answers.offered:
        return "not_offered"
    if any(one.new or one.state != "processed" for one in posted):
        return "posted"
    if waiting:
        return "waiting"
    if found.differences:
        return "drift"
    if answers.learnt:
        return "agrees"
    return "not_found"


_SETTLE = text(
    """\
UPDATE order_checks
SET next_check_at = :next, last_result = :result, last_said = :said,
    checks = checks + CASE WHEN :answered THEN 1 ELSE 0 END,
    failures = CASE WHEN :answered THEN 0 ELSE failures + 1 END,
    last_checked_at = :now,
    last_answered_at = CASE WHEN :answered THEN CAST(:now AS timestamptz) ELSE last_answered_at END,
    claim_id = NULL, claimed_until = NULL
WHERE order_id = :order_id AND source = :source AND claim_id = :claim_id"""
)


def _settle(
    session: Session,
    deps: Deps,
    subject: Subject,
    order: OrderFacts,
    answers: Answers,
    found: Comparison,
    result: str,
    posted: Sequence[Posted],
    claim_id: UUID,
) -> Checked:
    now: datetime = session.execute(select(at(deps.clock.now()))).scalar_one()
    key = {"order_id": subject.order_id, "source": subject.source, "claim_id": claim_id}
    failures = session.execute(
        text(
            "SELECT failures FROM order_checks"
            " WHERE order_id = :order_id AND source = :source AND claim_id = :claim_id FOR UPDATE"
        ),
        key,
    ).scalar_one_or_none()
    if failures is None:
        raise ClaimLost
    unpaid = order.state in UNPAID
    due = next_check(
        result,
        created_at=subject.created_at,
        now=now,
        unpaid=unpaid,
        failures=failures + 1,
        longest=deps.settings.reconcile_longest,
        retry_after=answers.unavailable.retry_after if answers.unavailable else None,
        jitter=deps.dice.jitter(),
    )
    if due is None and unpaid and result in ("agrees", "not_found"):
        result = "too_old"
    said = _said(answers, found)
    session.execute(
        _SETTLE,
        {
            **key,
            "next": due,
            "result": result,
            "said": said[:500],
            "answered": answers.unavailable is None,
            "now": now,
        },
    )
    new = sum(one.new for one in posted)
    log.info("order.checked", order=subject.reference, source=subject.source, result=result, posted=new)
    return Checked(
        subject.reference,
        subject.source,
        result,
        said,
        new,
        due,
        found.holds_money,
        tuple(found.differences),
    )


def _said(answers: Answers, found: Comparison) -> str:
    if answers.unavailable is not None:
        return f"{answers.unavailable.reason}: {answers.unavailable.detail}"
    if found.differences:
        return "; ".join(f"{one.kind}: {one.theirs}" for one in found.differences)
    if answers.learnt:
        return f"{len(answers.learnt)} fact{'' if len(answers.learnt) == 1 else 's'}, all known here"
    return answers.said or "no payment for this order"


def _give_back(deps: Deps, subjects: Sequence[Subject], claim_id: UUID) -> None:
    """Give a claim back: the order is due again, uncounted, once its source can be asked."""
    with deps.sessions.begin() as session:
        for subject in subjects:
            session.execute(
                text(
                    "UPDATE order_checks SET claim_id = NULL, claimed_until = NULL"
                    " WHERE order_id = :order_id AND source = :source AND claim_id = :claim_id"
                ),
                {"order_id": subject.order_id, "source": subject.source, "claim_id": claim_id},
            )
