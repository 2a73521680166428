"""Failures: dead letters by cause, what people say of a cause, and the list of them under a filter."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, flash, redirect, render_template, request

from receiver.inbox.failure_groups import (
    MAX_GROUPS,
    MAX_NOTE,
    STATES,
    GroupKey,
    GroupRefused,
    find_group,
    list_groups,
    notes_on,
    set_group,
)
from receiver.inbox.filter import DEAD, NONE, Filter, FilterError
from receiver.inbox.find_events import list_events
from receiver.web.access import needs
from receiver.web.current import actor, statement_time, transaction
from receiver.web.event_pages import listing
from receiver.web.forms import reason_field, text_field
from receiver.web.wording import link

blueprint = Blueprint("failures", __name__)

EXAMPLES = 5


@blueprint.get("/failures")
def page() -> Any:
    """The groups, while no more than a source is asked for; and the dead letters under the filter."""
    asked = Filter.parse(request.args)
    if asked.state not in ("failed", "expired"):
        asked = asked.with_(state=DEAD)
    overview = set(asked.as_query()) <= {"state", "source"} and "before" not in request.args
    groups = []
    if overview:
        with transaction() as session:
            groups = list_groups(session, source=asked.source)
    return render_template(
        "failures.html",
        groups=groups,
        more_groups=len(groups) >= MAX_GROUPS,
        **listing(asked, {"state": ("failed", "expired")}, without=DEAD),
    )


@blueprint.get("/failures/group")
def group() -> Any:
    """One cause: what it means, since when, examples, and what people said."""
    key = _key()
    with transaction() as session:
        found = find_group(session, key)
        said = notes_on(session, [key]).get(key)
        if found is None and said is None:
            abort(404, "No dead letter has this cause.")
        examples = list_events(session, key.filter(), limit=EXAMPLES).rows if found else []
    return render_template(
        "group.html",
        key=key,
        group=found,
        said=said,
        examples=[event for event in examples if event.acknowledged_at is None],
        query=key.filter().as_query(),
        states=STATES,
        max_note=MAX_NOTE,
    )


@blueprint.post("/failures/group")
@needs("operator")
def say() -> Any:
    """Acknowledge, resolve or reopen a cause, with a note. The cause stands in the query string."""
    key, reason = _key(), reason_field()
    state, note = request.form.get("state", ""), text_field("note", MAX_NOTE)
    try:
        with transaction() as session:
            set_group(
                session, key, state=state, note=note, actor=actor(), reason=reason, now=statement_time()
            )
    except GroupRefused as refusal:
        flash(f"Not changed: {refusal.detail}.", "bad")
    else:
        flash(f"The cause is {state}." + (REOPENS if state == "resolved" else ""), "good")
    return redirect(link("failures.group", key.filter()), 303)


REOPENS = " It opens again by itself if it comes back."


def _key() -> GroupKey:
    asked = Filter.parse(request.args)
    if asked.source is None or asked.reason is None:
        raise FilterError("source", "a cause is named by source, reason, event_type and place")
    return GroupKey(asked.source, asked.reason, _or_none(asked.event_type), _or_none(asked.place))


def _or_none(text: str | None) -> str:
    return "" if text in (None, NONE) else str(text)
