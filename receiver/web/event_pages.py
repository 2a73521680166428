"""Events: the list with its filters, one event, its payload; its replay, release and rejection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from flask import Blueprint, Response, abort, flash, redirect, render_template, request, url_for
from flask_login import current_user
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from receiver.inbox.event_detail import EventDetail, find_event
from receiver.inbox.filter import DEAD, STATES, Filter
from receiver.inbox.find_events import list_events
from receiver.inbox.reasons import OUTCOMES, REFUSED
from receiver.inbox.release import NotReleasable, check_release, reject_event, release_event
from receiver.inbox.replay import NotReplayable, RowChanged, UnknownEvent, preview_replay, replay_event
from receiver.inbox.waiting import waits_for
from receiver.retention.restore import where_archived
from receiver.web.access import needs
from receiver.web.bodies import MAX_SHOWN, as_text, download, header_pairs, pretty
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.facts import Pair, event_against_order
from receiver.web.forms import integer_field, page_before, reason_field
from receiver.web.sources import spoken_by

blueprint = Blueprint("events", __name__)


@blueprint.get("/events")
def index() -> Any:
    """Events by filter, newest first."""
    asked = Filter.parse(request.args)
    return render_template("events.html", title="Events", **listing(asked, {"state": (*STATES, DEAD)}))


def listing(
    asked: Filter, choices: Mapping[str, Sequence[str]], without: str | None = None
) -> dict[str, Any]:
    """What the list of events shows of a filter. ``without`` is the state that goes unsaid in its links."""
    with transaction() as session:
        page = list_events(session, asked, before=page_before())
    query = asked.as_query()
    if without is not None and query.get("state") == without:
        del query["state"]
    every = {
        "source": tuple(sorted(current_deps().settings.sources)),
        "reason": tuple(sorted(REFUSED)),
        "outcome": tuple(OUTCOMES),
        **choices,
    }
    return {
        "endpoint": request.endpoint,
        "filter": asked,
        "query": query,
        "page": page,
        "choices": every,
    }


@blueprint.get("/events/<uuid:event_id>")
def show(event_id: UUID) -> Any:
    """One event with all that belongs to it, and what a replay would do now."""
    with transaction() as session:
        detail = find_event(session, event_id)
        if detail is None:
            abort(404, "There is no event of this id.")
        archived = where_archived(session, event_id)
    payload = detail.payload.payload if detail.payload else None
    return render_template(
        "event.html",
        detail=detail,
        event=detail.event,
        payload=payload,
        archived=archived,
        headers=header_pairs(detail.payload.headers if detail.payload else None),
        as_payload=as_text,
        raw=as_text(payload),
        pretty=pretty(payload),
        more=payload is not None and len(payload) > MAX_SHOWN,
        pairs=_pairs(detail),
        waives=_waives(detail),
        preview=_preview(event_id) if detail.event.state not in ("pending", "in_flight") else None,
        waits=waits_for(detail.event),
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
    return download(body, f"{event_id}.bin")


@blueprint.get("/events/<uuid:event_id>/read-back/<int:fetch_id>")
def fetched(event_id: UUID, fetch_id: int) -> Response:
    """The exact bytes that the provider's API answered, as a download that no browser interprets."""
    with transaction() as session:
        detail = find_event(session, event_id)
        found = [fetch for fetch in detail.fetches if fetch.id == fetch_id] if detail else []
        body = found[0].body if found else None
    if body is None:
        abort(404, "There is no such answer, or it was erased.")
    return download(body, f"{event_id}-{fetch_id}.bin")


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


@blueprint.post("/events/<uuid:event_id>/release")
@needs("admin")
def release(event_id: UUID) -> Any:
    """Let the rules skip the one check that refused it, and send it round again."""
    return _settle(
        event_id, _release, "Released: the rules skip that check for this event, and no other one."
    )


@blueprint.post("/events/<uuid:event_id>/reject")
@needs("admin")
def reject(event_id: UUID) -> Any:
    """Say that the refusal stands."""
    return _settle(event_id, _reject, "Rejected: the refusal stands, and the event no longer counts as open.")


def _settle(event_id: UUID, act: Callable[[Session, UUID, int, str], None], done: str) -> Any:
    version, reason = integer_field("row_version"), reason_field()
    try:
        with transaction() as session:
            act(session, event_id, version, reason)
    except UnknownEvent:
        abort(404, "There is no event of this id.")
    except RowChanged:
        flash("Not done: the row changed after this page was opened. Look at it as it is now.", "bad")
    except NotReleasable as refusal:
        flash(f"Not done: {refusal.detail}.", "bad")
    else:
        flash(done, "good")
    return redirect(url_for("events.show", event_id=event_id), 303)


def _release(session: Session, event_id: UUID, version: int, reason: str) -> None:
    release_event(
        session,
        event_id,
        actor=actor(),
        reason=reason,
        admin=current_user.may("admin"),
        row_version=version,
        give_up=current_deps().settings.give_up,
        now=statement_time(),
    )


def _reject(session: Session, event_id: UUID, version: int, reason: str) -> None:
    reject_event(
        session,
        event_id,
        actor=actor(),
        reason=reason,
        admin=current_user.may("admin"),
        row_version=version,
        now=statement_time(),
    )


def _pairs(detail: EventDetail) -> list[Pair]:
    """The event's facts against its order's, where there is one and money is meant."""
    if detail.order is None or detail.event.kind == "other":
        return []
    source = current_deps().settings.sources.get(detail.event.source)
    return event_against_order(detail.event, detail.order, source)


def _waives(detail: EventDetail) -> str | None:
    """The check that a release would skip; None where nothing may be released."""
    if detail.event.state != "failed":
        return None
    with transaction() as session:
        try:
            return check_release(session, detail.event)
        except NotReleasable:
            return None


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
