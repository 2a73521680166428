"""Rejections: what was refused at the door, by source and reason, and the bodies that were kept."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, abort, render_template, request

from receiver.inbox.find_rejections import UnknownRejection, find_rejection, list_rejections
from receiver.inbox.models import WebhookRejection
from receiver.inbox.reasons import REJECTED
from receiver.inbox.rejection_groups import WINDOW, rejection_groups
from receiver.web.bodies import as_text, download, header_pairs, pretty
from receiver.web.current import current_deps, statement_time, transaction
from receiver.web.forms import number_before, query_text

blueprint = Blueprint("rejections", __name__)

PAGE = 50


@blueprint.get("/rejections")
def index() -> Any:
    """The last day's, grouped; below them single ones under a filter."""
    source, reason, kept = query_text("source"), query_text("reason"), request.args.get("kept") == "1"
    with transaction() as session:
        groups = rejection_groups(session, now=statement_time())
        rows = list_rejections(
            session,
            source=source,
            reason=reason,
            with_body=kept,
            before=number_before(),
            limit=PAGE + 1,
        )
    query = {"source": source, "reason": reason, "kept": "1" if kept else None}
    return render_template(
        "rejections.html",
        groups=groups,
        rows=rows[:PAGE],
        next_before=rows[PAGE - 1].id if len(rows) > PAGE else None,
        query={name: value for name, value in query.items() if value},
        hours=int(WINDOW.total_seconds() // 3600),
        sources=sorted(current_deps().settings.sources),
        reasons=sorted(REJECTED),
    )


@blueprint.get("/rejections/<int:rejection_id>")
def show(rejection_id: int) -> Any:
    """One rejection; where the signature was right, the body that could not be read."""
    found = _found(rejection_id)
    return render_template(
        "rejection.html",
        rejection=found,
        raw=as_text(found.payload),
        pretty=pretty(found.payload),
        headers=header_pairs(found.headers),
    )


@blueprint.get("/rejections/<int:rejection_id>/payload")
def payload(rejection_id: int) -> Response:
    """The kept bytes, as a download that no browser interprets."""
    found = _found(rejection_id)
    if found.payload is None:
        abort(404, "No body was kept of this rejection.")
    return download(found.payload, f"rejection-{rejection_id}.bin")


MISSING = "There is no rejection of this number."


def _found(rejection_id: int) -> WebhookRejection:
    # Larger than any number that a row can have: the database would refuse it.
    if rejection_id >= 2**63:
        abort(404, MISSING)
    try:
        with transaction() as session:
            return find_rejection(session, rejection_id)
    except UnknownRejection:
        abort(404, MISSING)
