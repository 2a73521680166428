"""Conflicts: other facts under a known event id, both bodies compared, released or rejected."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, flash, redirect, render_template, url_for
from flask_login import current_user

from receiver.inbox.conflicts import (
    STATES,
    UnknownConflict,
    find_conflict,
    list_conflicts,
    reject_conflict,
    release_conflict,
)
from receiver.inbox.filter import FilterError
from receiver.inbox.release import NotReleasable
from receiver.web.access import needs
from receiver.web.bodies import as_text, header_pairs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.errors import answer
from receiver.web.facts import compare_bodies, event_against_body
from receiver.web.forms import number_before, query_text, reason_field

blueprint = Blueprint("conflicts", __name__)

PAGE = 50
ALL = "all"


@blueprint.get("/conflicts")
def index() -> Any:
    """Conflicts, newest first: the open ones unless asked otherwise. Variants are not among them."""
    state, source = query_text("state") or "open", query_text("source")
    if state not in (*STATES, ALL):
        raise FilterError("state", f"state is one of {', '.join((*STATES, ALL))}")
    with transaction() as session:
        rows = list_conflicts(
            session,
            state=None if state == ALL else state,
            source=source,
            before=number_before(),
            limit=PAGE + 1,
        )
    query = {"state": state, **({"source": source} if source else {})}
    return render_template(
        "conflicts.html",
        rows=rows[:PAGE],
        next_before=rows[PAGE - 1][0].id if len(rows) > PAGE else None,
        query=query,
        states=(*STATES, ALL),
        sources=sorted(current_deps().settings.sources),
    )


@blueprint.get("/conflicts/<int:conflict_id>")
def show(conflict_id: int) -> Any:
    """One conflict: facts against facts, body against body."""
    with transaction() as session:
        detail = find_conflict(session, current_deps().settings, _known(conflict_id))
    first = detail.payload.payload if detail.payload else None
    second = detail.conflict.payload
    both = first is not None and second is not None
    facts = detail.read
    return render_template(
        "conflict.html",
        conflict=detail.conflict,
        event=detail.event,
        pairs=event_against_body(detail.event, facts.event_type, facts.facts) if facts else None,
        lines=compare_bodies(first or b"", second or b"") if both else None,
        bodies=(("The first body, which stands", as_text(first)), ("The other body", as_text(second))),
        headers=header_pairs(detail.conflict.headers),
    )


@blueprint.post("/conflicts/<int:conflict_id>/release")
@needs("admin")
def release(conflict_id: int) -> Any:
    """Let the other body in as an event of its own."""
    deps, reason = current_deps(), reason_field()
    try:
        with transaction() as session:
            event = release_conflict(
                session,
                deps.settings,
                _known(conflict_id),
                event_id=deps.dice.new_id(),
                payload_id=deps.dice.new_id(),
                actor=actor(),
                reason=reason,
                admin=current_user.may("admin"),
                give_up=deps.settings.give_up,
                now=statement_time(),
            )
    except NotReleasable as refusal:
        flash(f"Not released: {refusal.detail}.", "bad")
        return redirect(url_for("conflicts.show", conflict_id=conflict_id), 303)
    flash("Released as an event of its own; the rules decide about it like any other.", "good")
    return redirect(url_for("events.show", event_id=event.id), 303)


@blueprint.post("/conflicts/<int:conflict_id>/reject")
@needs("admin")
def reject(conflict_id: int) -> Any:
    """Say that the other body shall never count."""
    reason = reason_field()
    try:
        with transaction() as session:
            reject_conflict(
                session,
                _known(conflict_id),
                actor=actor(),
                reason=reason,
                admin=current_user.may("admin"),
                now=statement_time(),
            )
    except NotReleasable as refusal:
        flash(f"Not rejected: {refusal.detail}.", "bad")
    else:
        flash("Rejected: the first body stands.", "good")
    return redirect(url_for("conflicts.show", conflict_id=conflict_id), 303)


MISSING = "There is no conflict of this number."


def _known(conflict_id: int) -> int:
    # Larger than any number that a row can have: the database would refuse it.
    if conflict_id >= 2**63:
        abort(404, MISSING)
    return conflict_id


def not_there(_error: UnknownConflict) -> Any:
    """A conflict that nobody knows is a page that is not there."""
    return answer(404, MISSING)


blueprint.register_error_handler(UnknownConflict, not_there)
