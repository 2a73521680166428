"""Events: the list with its filters, the dead letters, one event, its payload, and its replay."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from flask import Blueprint, Response, abort, flash, redirect, render_template, request, url_for
from flask_login import current_user
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from receiver.inbox.filter import DEAD, STATES, Filter
from receiver.inbox.find_events import EventDetail, find_event, list_events
from receiver.inbox.reasons import OUTCOMES, REFUSED
from receiver.inbox.replay import NotReplayable, RowChanged, UnknownEvent, preview_replay, replay_event
from receiver.web.access import needs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.forms import integer_field, page_before, reason_field
from receiver.web.sources import spoken_by

blueprint = Blueprint("events", __name__)

MAX_SHOWN = 256 * 1024
"""Bytes of a payload that the page shows; the download has all of them."""


@blueprint.get("/events")
def index() -> Any:
    """Events by filter, newest first."""
    return _listed(Filter.parse(request.args), "Events")


@blueprint.get("/failures")
def failures() -> Any:
    """The dead letters: failed and expired events, under the same filters."""
    asked = Filter.parse(request.args)
    if asked.state not in ("failed", "expired"):
        asked = asked.with_(state=DEAD)
    return _listed(asked, "Failures")


def _listed(asked: Filter, title: str) -> Any:
    with transaction() as session:
        page = list_events(session, asked, before=page_before())
    query = asked.as_query()
    if title == "Failures" and query.get("state") == DEAD:
        del query["state"]
    choices = {
        "state": (*STATES, DEAD) if title == "Events" else ("failed", "expired"),
        "source": tuple(sorted(current_deps().settings.sources)),
        "reason": tuple(sorted(REFUSED)),
        "outcome": tuple(OUTCOMES),
    }
    return render_template(
        "events.html",
        title=title,
        endpoint=request.endpoint,
        filter=asked,
        query=query,
        page=page,
        choices=choices,
    )


@blueprint.get("/events/<uuid:event_id>")
def show(event_id: UUID) -> Any:
    """One event with all that belongs to it, and what a replay would do now."""
    with transaction() as session:
        detail = find_event(session, event_id)
        if detail is None:
            abort(404, "There is no event of this id.")
    payload = detail.payload.payload if detail.payload else None
    return render_template(
        "event.html",
        detail=detail,
        event=detail.event,
        payload=payload,
        headers=_header_pairs(detail),
        as_payload=_as_text,
        raw=_as_text(payload),
        pretty=_pretty(payload),
        more=payload is not None and len(payload) > MAX_SHOWN,
        preview=_preview(event_id) if detail.event.state not in ("pending", "in_flight") else None,
        replayable=_replayable(detail),
        never_carries=_never_carries(detail.event.source),
    )


@blueprint.get("/events/<uuid:event_id>/payload")
def payload(event_id: UUID) -> Response:
    """The exact bytes, as a download that no browser interprets."""
    with transaction() as session:
        detail = find_event(session, event_id)
        if detail is None or detail.payload is None:
            abort(404, "There is no such event, or its payload was erased.")
        body = detail.payload.payload
    response = Response(body, mimetype="application/octet-stream")
    response.headers["Content-Disposition"] = f'attachment; filename="{event_id}.bin"'
    return response


@blueprint.post("/events/<uuid:event_id>/replay")
@needs("operator")
def replay(event_id: UUID) -> Any:
    """Send an ended event round again, unless it changed since the page was opened."""
    version, reason = integer_field("row_version"), reason_field()
    try:
        with transaction() as session:
            replay_event(
                session,
                event_id,
                row_version=version,
                actor=actor(),
                reason=reason,
                admin=current_user.may("admin"),
                give_up=current_deps().settings.give_up,
                now=statement_time(),
            )
    except UnknownEvent:
        abort(404, "There is no event of this id.")
    except RowChanged:
        flash("Not replayed: the row changed after this page was opened. Look at it as it is now.", "bad")
    except NotReplayable as refusal:
        flash(f"Not replayed: {refusal.detail}.", "bad")
    else:
        flash("Sent round again; the worker takes it at once.", "good")
    return redirect(url_for("events.show", event_id=event_id), 303)


def _preview(event_id: UUID) -> str:
    """What a replay would do now, worked out in a transaction of its own that is rolled back."""
    deps = current_deps()
    with deps.sessions() as session:
        # A page never waits long for an order that the worker holds.
        session.execute(text("SET LOCAL lock_timeout = '500ms'"))
        try:
            return preview_replay(session, deps.settings, event_id)
        except OperationalError:
            return "The order is being worked on right now: open this page again in a moment."
        finally:
            session.rollback()


def _replayable(detail: EventDetail) -> str | None:
    """Which role may replay it; None while it has not ended."""
    return {"failed": "operator", "expired": "operator", "processed": "admin"}.get(detail.event.state)


def _never_carries(source_name: str) -> list[str]:
    source = current_deps().settings.sources.get(source_name)
    spoken = spoken_by(source) if source else None
    return sorted(spoken.never_carries) if spoken else []


def _header_pairs(detail: EventDetail) -> list[list[str]]:
    kept = detail.payload.headers if detail.payload else []
    return [[str(part) for part in pair[:2]] for pair in kept if isinstance(pair, list) and len(pair) >= 2]


def _as_text(body: bytes | None) -> str | None:
    if body is None:
        return None
    # Latin-1 would show wrong letters; what is no UTF-8 is shown as escapes.
    return body[:MAX_SHOWN].decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def _pretty(body: bytes | None) -> str | None:
    """The JSON indented, texts readable; None where it is none, or holds what indenting would hide."""
    if body is None or len(body) > MAX_SHOWN:
        return None
    try:
        document = json.loads(body.decode("utf-8-sig"), parse_float=_Literal, object_pairs_hook=_pairs)
        indented = json.dumps(document, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None
    return indented.encode("utf-8", "backslashreplace").decode().replace("\0", "\\u0000")


class _Literal(float):
    """A number shown as it was written: 1.10 stays 1.10."""

    def __new__(cls, text: str) -> _Literal:
        number = super().__new__(cls, text)
        number.text = text  # type: ignore[attr-defined]
        return number

    def __repr__(self) -> str:
        text: str = self.text  # type: ignore[attr-defined]
        return text


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key stands twice: only the raw text shows it")
    return document
