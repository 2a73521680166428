"""`/events.csv`: a list of events for a spreadsheet, its cells neutral whatever strangers named things."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from uuid import UUID

from flask import Blueprint, Response, request

from receiver.inbox.filter import Filter
from receiver.inbox.find_events import MAX_PAGE, list_events
from receiver.inbox.models import WebhookEvent
from receiver.money import format_amount
from receiver.web.current import transaction

blueprint = Blueprint("events_csv", __name__)

MAX_ROWS = 10_000
"""Rows of one download; its last line says when there are more."""

COLUMNS = (
    "receipt",
    "received_at",
    "source",
    "provider_event_id",
    "event_type",
    "order_reference",
    "transaction_id",
    "amount",
    "amount_minor",
    "currency",
    "state",
    "outcome",
    "reason",
    "detail",
    "attempts",
    "replays",
    "finished_at",
)

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
"""What a spreadsheet takes for the beginning of a formula, or skips before one."""


@blueprint.get("/events.csv")
def download() -> Response:
    """The events of a filter, newest first, as CSV."""
    asked = Filter.parse(request.args)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    written, before = 0, None
    while written < MAX_ROWS:
        rows, before = _page(asked, before)
        for event in rows[: MAX_ROWS - written]:
            writer.writerow(_cells(event))
        written += len(rows)
        if before is None:
            break
    if before is not None:
        writer.writerow([f"more events match: only the newest {MAX_ROWS} stand here"])
    response = Response(out.getvalue(), mimetype="text/csv")
    response.headers["Content-Disposition"] = 'attachment; filename="events.csv"'
    return response


def _page(asked: Filter, before: UUID | None) -> tuple[list[WebhookEvent], UUID | None]:
    # A transaction a page: a long download holds no snapshot.
    with transaction() as session:
        page = list_events(session, asked, before=before, limit=MAX_PAGE)
    return list(page.rows), page.next_before


def _cells(event: WebhookEvent) -> list[str]:
    known = event.amount_minor is not None and event.currency is not None
    cells: tuple[object, ...] = (
        event.id,
        _time(event.received_at),
        event.source,
        event.provider_event_id,
        event.event_type,
        event.order_reference,
        event.transaction_id,
        format_amount(event.amount_minor or 0, event.currency or "") if known else None,
        event.amount_minor,
        event.currency,
        event.state,
        event.outcome,
        event.reason or event.parked_reason,
        event.last_error,
        event.attempts,
        event.replays,
        _time(event.finished_at),
    )
    return [neutral(cell) for cell in cells]


def neutral(cell: object) -> str:
    """A cell that no spreadsheet runs: what could begin a formula gets an apostrophe in front.

    >>> neutral("=cmd|' /C calc'!A0"), neutral("evt_1"), neutral(None), neutral(-5)
    ("'=cmd|' /C calc'!A0", 'evt_1', '', '-5')
    """
    if cell is None:
        return ""
    if isinstance(cell, int):
        return str(cell)
    text = str(cell).replace("\0", "")
    return (
        f"'{text}" if text.lstrip(" \u00a0\ufeff").startswith(_FORMULA) or text.startswith(_FORMULA) else text
    )


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
