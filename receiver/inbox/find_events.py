"""Finding events: lists by filter with keyset paging, and those of one order.

Every list reads at most LOOK_AT rows of one index, however many rows ended before: where the
rest of the filter is not indexed, a page may come back short, and says from where to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    TextClause,
    and_,
    any_,
    func,
    literal_column,
    or_,
    select,
    text,
    tuple_,
)
from sqlalchemy.orm import Session, aliased

from receiver.dice import uuid7
from receiver.inbox.filter import DEAD, NONE, Filter, FilterError
from receiver.inbox.models import WebhookEvent
from receiver.orders.models import Order, OrderTransaction

__all__ = [
    "Filter",
    "FilterError",
    "Page",
    "event_by_provider_id",
    "events_of_order",
    "list_events",
]

LOOK_AT = 5_000
"""Rows that one page may read before it stops and offers to go on."""

FEW = 10_000
"""Up to so many pending, flying or dead rows are sorted by id; more are met soon on the way back."""

ID_SLACK = timedelta(hours=1)
"""How far the clock that makes ids may stand from the database's, which says received_at."""

MAX_PAGE = 200


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, newest first. ``next_before`` None: there are no more.

    ``looked_back_to`` is set when the page stopped after LOOK_AT rows before it was full.
    """

    rows: Sequence[WebhookEvent]
    next_before: UUID | None
    looked_back_to: datetime | None = None


def list_events(
    session: Session,
    filter: Filter,  # noqa: A002
    *,
    before: UUID | None = None,
    limit: int = 50,
) -> Page:
    """Events that the filter asks for, newest first, at most ``limit`` (1 to 200)."""
    limit = max(1, min(limit, MAX_PAGE))
    driver = rows_by_index(session, filter)
    if before is not None:
        driver = driver.where(WebhookEvent.id < before)
    looked_at = driver.order_by(WebhookEvent.id.desc()).limit(LOOK_AT).subquery()
    row = aliased(WebhookEvent, looked_at)
    rows = session.scalars(
        select(row).where(*the_rest(filter, row)).order_by(row.id.desc()).limit(limit + 1)
    ).all()
    if len(rows) > limit:
        return Page(rows[:limit], rows[limit - 1].id)
    stopped = session.execute(
        driver.with_only_columns(WebhookEvent.id, WebhookEvent.received_at)
        .order_by(WebhookEvent.id.desc())
        .offset(LOOK_AT - 1)
        .limit(1)
    ).first()
    return Page(rows, stopped.id, stopped.received_at) if stopped else Page(rows, None)


# Literals, so that the partial indexes serve prepared statements too.
_DEAD_LETTERS = "state IN ('failed', 'expired')"
_WAITING = {"pending": "state = 'pending'", "in_flight": "state = 'in_flight'"}


def rows_by_index(session: Session, filter: Filter) -> Select[WebhookEvent]:  # noqa: A002
    """The rows that one index can give: what bounds the work of a page."""
    query = select(WebhookEvent)
    equal = {
        WebhookEvent.source: filter.source,
        WebhookEvent.event_type: None if filter.event_type == NONE else filter.event_type,
        WebhookEvent.reason: filter.reason,
        WebhookEvent.order_reference: filter.order_reference,
        WebhookEvent.transaction_id: filter.transaction_id,
    }
    query = query.where(*(column == value for column, value in equal.items() if value is not None))
    if filter.text is not None and not filter.text.endswith("*"):
        query = query.where(_has_provider_id(filter.text))
    # Ids are UUIDv7, made at the receipt: they bound the time well enough for the index, and the
    # exact bound is asked of what is left.
    if filter.from_ is not None:
        query = query.where(WebhookEvent.id >= _first_id(filter.from_ - ID_SLACK))
    if filter.to is not None:
        query = query.where(WebhookEvent.id < _first_id(filter.to + ID_SLACK))
    state = "pending" if filter.parked or filter.expires_before is not None else filter.state
    if state in ("failed", "expired", DEAD):
        # Dead letters have an index in the order of their ids: no number of them makes a page slower.
        return query.where(text(f"webhook_events.{_DEAD_LETTERS}"))
    if filter.expires_before is not None:
        return _ends_before(session, query, filter.expires_before)
    return _in_state(session, query, text(_WAITING[state])) if state in _WAITING else query


def _ends_before(session: Session, query: Select[WebhookEvent], until: datetime) -> Select[WebhookEvent]:
    """Pending rows near their deadline, which have an index of their own while they are few."""
    soon = and_(text(_WAITING["pending"]), WebhookEvent.give_up_at < until)
    return _in_state(session, query, soon)


def _in_state(
    session: Session, query: Select[WebhookEvent], state: ColumnElement[bool] | TextClause
) -> Select[WebhookEvent]:
    """The rows of a state that few rows are in, in the order of their ids.

    The partial indexes stand in the order of due times and ends, so that the planner would rather
    walk all ids backwards until it has met enough rows: for ever, when they are few and old. While
    they are few, they are fetched first.
    """
    few = select(WebhookEvent.id).where(state).limit(FEW + 1)
    number: int = session.execute(select(func.count()).select_from(few.subquery())).scalar_one()
    if number <= FEW:
        # As an array their ids are looked up one by one; as a sub-select the whole table is read for them.
        ids = func.array(select(few.cte("few").c.id).scalar_subquery())
        return query.where(WebhookEvent.id == any_(ids))
    return query.where(state)


def _first_id(at: datetime) -> UUID:
    return uuid7(max(0, int(at.timestamp() * 1000)), 0)


def _has_provider_id(provider_event_id: str) -> ColumnElement[bool]:
    """Exactly this id, of any source: through the unique index, whose first column is the source."""
    return and_(
        WebhookEvent.source.in_(select(literal_column("source")).select_from(_sources_seen())),
        WebhookEvent.provider_event_id == provider_event_id,
    )


def _sources_seen() -> Any:
    """The sources that have events, by hopping over the index (a DISTINCT would read every row)."""
    first = select(func.min(WebhookEvent.source).label("source")).cte("sources_seen", recursive=True)
    hop = select(
        select(func.min(WebhookEvent.source)).where(WebhookEvent.source > first.c.source).scalar_subquery()
    ).where(first.c.source.is_not(None))
    return first.union_all(hop)


def the_rest(filter: Filter, row: Any) -> list[ColumnElement[bool]]:  # noqa: A002
    """What no index answers, asked of the rows that were looked at."""
    conditions: list[ColumnElement[bool]] = []
    if filter.state not in (None, DEAD):
        conditions.append(row.state == filter.state)
    if filter.outcome is not None:
        conditions.append(row.outcome == filter.outcome)
    if filter.parked:
        conditions.append(row.parked_reason.is_not(None))
    if filter.expires_before is not None:
        conditions.append(row.state == "pending")
        conditions.append(row.give_up_at < filter.expires_before)
    if filter.event_type == NONE:
        conditions.append(row.event_type.is_(None))
    if filter.place is not None:
        conditions.append(row.failed_in.is_(None) if filter.place == NONE else row.failed_in == filter.place)
    if filter.text is not None and filter.text.endswith("*"):
        conditions.append(func.starts_with(row.provider_event_id, filter.text[:-1]))
    if filter.from_ is not None:
        conditions.append(row.received_at >= filter.from_)
    if filter.to is not None:
        conditions.append(row.received_at < filter.to)
    return conditions


def events_of_order(session: Session, order: Order, *, limit: int = 200) -> Sequence[WebhookEvent]:
    """The order's events, oldest first: those that name it, and those of its transactions.

    An event that names another order is that order's, even where the transaction is this one's.
    """
    transactions = session.execute(
        select(OrderTransaction.source, OrderTransaction.transaction_id)
        .where(OrderTransaction.order_id == order.id)
        .limit(100)
    ).all()
    ids = set(
        session.scalars(
            select(WebhookEvent.id)
            .where(WebhookEvent.order_reference == order.reference)
            .order_by(WebhookEvent.id)
            .limit(limit)
        )
    )
    if transactions:
        of_transactions = and_(
            WebhookEvent.transaction_id.in_({transaction_id for _, transaction_id in transactions}),
            tuple_(WebhookEvent.source, WebhookEvent.transaction_id).in_(
                [tuple(row) for row in transactions]
            ),
            or_(WebhookEvent.order_reference.is_(None), WebhookEvent.order_reference == order.reference),
        )
        ids.update(
            session.scalars(
                select(WebhookEvent.id).where(of_transactions).order_by(WebhookEvent.id).limit(limit)
            )
        )
    return session.scalars(
        select(WebhookEvent).where(WebhookEvent.id.in_(ids)).order_by(WebhookEvent.id).limit(limit)
    ).all()


def event_by_provider_id(
    session: Session, provider_event_id: str, source: str | None = None
) -> list[WebhookEvent]:
    """The events with exactly this provider event id, of one source or of all."""
    query = select(WebhookEvent).where(_has_provider_id(provider_event_id))
    if source is not None:
        query = query.where(WebhookEvent.source == source)
    return list(session.scalars(query.order_by(WebhookEvent.id)))
