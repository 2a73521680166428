"""The dead letters that a filter wants, in the order of their ids: what a bulk replay and its dry run walk.

Only failed and expired rows that nobody acknowledged.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, any_, func, select, text
from sqlalchemy.orm import Session, aliased

from receiver.inbox.counts import Count, bounded
from receiver.inbox.filter import DEAD, Filter, FilterError
from receiver.inbox.find_events import FEW, rows_by_index, the_rest
from receiver.inbox.models import WebhookEvent
from receiver.queue.table import DEAD_LETTERS

LOOK_AT = 5_000
"""Dead letters that one transaction looks at, however few of them the filter wants."""

OPEN = "state IN ('failed', 'expired') AND webhook_events.acknowledged_at IS NULL"
"""What the index of causes holds, as a literal, so that it serves prepared statements too."""

COUNT_TO = 1_000_000
"""How far rows are counted before a start."""


def dead_only(filter: Filter) -> Filter:  # noqa: A002
    """The filter over dead letters alone. Raises FilterError where it asks for other rows."""
    if filter.state is None:
        filter = filter.with_(state=DEAD)  # noqa: A001
    if filter.state not in (DEAD, *DEAD_LETTERS) or filter.parked:
        raise FilterError("state", "only failed and expired events are replayed in bulk")
    return filter


def matching(
    session: Session,
    filter: Filter,  # noqa: A002
    *columns: str,
    after: UUID | None = None,
    dead_at: datetime | None = None,
    look_at: int = LOOK_AT,
) -> tuple[Select[Any], Select[Any]]:
    """Two queries over the next ``look_at`` dead letters in the order of their ids: those that the filter
    wants (``columns``), and the ids of all that are looked at.

    ``dead_at``: only what had ended by then.
    """
    looked_at = rows_by_index(session, dead_only(filter)).where(WebhookEvent.acknowledged_at.is_(None))
    few = None
    if filter.order_reference is None and filter.transaction_id is None:
        few = _while_few(session, filter)
    if few is not None:
        looked_at = looked_at.where(few)
    if after is not None:
        looked_at = looked_at.where(WebhookEvent.id > after)
    if dead_at is not None:
        looked_at = looked_at.where(WebhookEvent.finished_at <= dead_at)
    inner = looked_at.order_by(WebhookEvent.id).limit(look_at).subquery()
    row = aliased(WebhookEvent, inner)
    wanted = (
        select(*(getattr(row, column) for column in columns)).where(*the_rest(filter, row)).order_by(row.id)
    )
    ids = looked_at.with_only_columns(WebhookEvent.id).order_by(WebhookEvent.id).limit(look_at)
    return wanted, ids


def _while_few(session: Session, filter: Filter) -> ColumnElement[bool] | None:  # noqa: A002
    """The open dead letters of the filter's source and reason by their ids, while they are few.

    Most dead letters are acknowledged in the end, which the planner does not know of one reason or
    another: it would read all that ever died of it. The index of causes holds the open ones alone.
    """
    open_ = select(WebhookEvent.id).where(text(f"webhook_events.{OPEN}"))
    equal = {WebhookEvent.source: filter.source, WebhookEvent.reason: filter.reason}
    open_ = open_.where(*(column == value for column, value in equal.items() if value is not None))
    counted = select(func.count()).select_from(open_.limit(FEW + 1).subquery())
    if session.execute(counted).scalar_one() > FEW:
        return None
    ids = func.array(select(open_.limit(FEW + 1).cte("open_dead").c.id).scalar_subquery())
    return WebhookEvent.id == any_(ids)


def next_matching(
    session: Session,
    filter: Filter,  # noqa: A002
    columns: tuple[str, ...],
    *,
    after: UUID | None,
    limit: int,
    dead_at: datetime | None = None,
) -> tuple[list[Row[Any]], UUID | None, bool]:
    """The next wanted rows (``columns`` begin with ``id``), the id to go on after, whether that is all."""
    wanted, looked_at = matching(session, filter, *columns, after=after, dead_at=dead_at)
    rows = list(session.execute(wanted.limit(limit)))
    if len(rows) == limit:
        return rows, rows[-1][0], False
    last = session.execute(looked_at.offset(LOOK_AT - 1).limit(1)).scalar_one_or_none()
    if last is not None:
        return rows, last, False
    return rows, rows[-1][0] if rows else after, True


def count_matching(
    session: Session,
    filter: Filter,  # noqa: A002
    limit: int = 10_000,
) -> Count:
    """How many dead letters a bulk replay with this filter would take, counted up to ``limit``."""
    wanted, _ = matching(session, filter, "id", look_at=COUNT_TO)
    counted = select(func.count()).select_from(wanted.order_by(None).limit(limit + 1).subquery())
    return bounded(session.execute(counted).scalar_one(), limit)
