"""The drift report: open findings with both sides, and the orders that only a person can clear up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from receiver.orders.models import UNPAID, Order
from receiver.reconciliation.models import CatchUp, DriftFinding, OrderCheck

MAX_ROWS = 200
HOLDS = timedelta(minutes=15)
"""A difference that is younger may be on its way through the inbox; an alert waits for it."""

UNANSWERED = ("not_offered", "unavailable", "too_old")


@dataclass(frozen=True, slots=True)
class ForAPerson:
    """An unpaid order that no API answers for: not offered, no answer so far, or too old to ask on."""

    reference: str
    source: str
    state: str
    created_at: datetime
    check: OrderCheck


@dataclass(frozen=True, slots=True)
class Report:
    """The newest rows of each list, and how many there are in all."""

    findings: Sequence[DriftFinding]
    finding_count: int
    for_a_person: Sequence[ForAPerson]
    person_count: int


@dataclass(frozen=True, slots=True)
class DriftCount:
    """A source's open findings that have stood for a while, and the oldest one's time."""

    source: str
    count: int
    since: datetime


def drift_report(session: Session, *, source: str | None = None, limit: int = MAX_ROWS) -> Report:
    """What differs now, of one source or of all."""
    open_ones = select(DriftFinding).where(DriftFinding.closed_at.is_(None))
    if source is not None:
        open_ones = open_ones.where(DriftFinding.source == source)
    findings = session.scalars(open_ones.order_by(DriftFinding.id.desc()).limit(limit)).all()
    count = session.scalar(select(func.count()).select_from(open_ones.subquery())) or 0
    other = aliased(OrderCheck)
    answered = (
        select(other.order_id)
        .where(
            other.order_id == OrderCheck.order_id,
            other.last_result.not_in(UNANSWERED),
            other.source != OrderCheck.source,
        )
        .exists()
    )
    waiting = (
        select(OrderCheck, Order)
        .join(Order, Order.id == OrderCheck.order_id)
        .where(OrderCheck.last_result.in_(UNANSWERED), Order.state.in_(UNPAID), ~answered)
    )
    if source is not None:
        waiting = waiting.where(OrderCheck.source == source)
    rows = session.execute(waiting.order_by(OrderCheck.last_checked_at.desc()).limit(limit)).all()
    persons = session.scalar(select(func.count()).select_from(waiting.subquery())) or 0
    listed = [
        ForAPerson(order.reference, check.source, order.state, order.created_at, check)
        for check, order in rows
    ]
    return Report(findings, count, listed, persons)


def drift_counts(session: Session, now: datetime) -> list[DriftCount]:
    """The findings of each source that stand for longer than HOLDS."""
    rows = session.execute(
        select(DriftFinding.source, func.count(), func.min(DriftFinding.opened_at))
        .where(DriftFinding.closed_at.is_(None), DriftFinding.opened_at <= now - HOLDS)
        .group_by(DriftFinding.source)
        .order_by(DriftFinding.source)
    ).all()
    return [DriftCount(*row) for row in rows]


def checks_of(session: Session, order_id: UUID) -> Sequence[OrderCheck]:
    """What was asked about one order, a row for each source."""
    query = select(OrderCheck).where(OrderCheck.order_id == order_id)
    return session.scalars(query.order_by(OrderCheck.source)).all()


def findings_of(session: Session, reference: str, *, limit: int = 20) -> Sequence[DriftFinding]:
    """The open findings of one order, the newest first."""
    query = select(DriftFinding).where(
        DriftFinding.order_reference == reference, DriftFinding.closed_at.is_(None)
    )
    return session.scalars(query.order_by(DriftFinding.id.desc()).limit(limit)).all()


def catch_ups(session: Session, *, source: str | None = None, limit: int = 20) -> Sequence[CatchUp]:
    """The newest catch-ups, of one source or of all."""
    query = select(CatchUp).order_by(CatchUp.created_at.desc(), CatchUp.id.desc()).limit(limit)
    return session.scalars(query if source is None else query.where(CatchUp.source == source)).all()


_FINDING = (
    "kind",
    "source",
    "order_reference",
    "transaction_id",
    "ours",
    "theirs",
    "opened_at",
    "seen_at",
)


def report_document(report: Report) -> dict[str, Any]:
    """The report as plain values; times as ISO 8601."""
    return {
        "drift": report.finding_count,
        "findings": [{key: _plain(getattr(one, key)) for key in _FINDING} for one in report.findings],
        "for_a_person": [_person(one) for one in report.for_a_person],
        "for_a_person_count": report.person_count,
    }


def _person(one: ForAPerson) -> dict[str, Any]:
    return {
        "order_reference": one.reference,
        "source": one.source,
        "state": one.state,
        "created_at": _plain(one.created_at),
        "why": one.check.last_result,
        "said": one.check.last_said,
        "last_checked_at": _plain(one.check.last_checked_at),
        "next_check_at": _plain(one.check.next_check_at),
    }


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
