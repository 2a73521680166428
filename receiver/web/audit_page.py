"""`/audit`: what people did, when and why."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, render_template, request

from receiver.accounts.actions import list_actions
from receiver.web.current import transaction

blueprint = Blueprint("audit", __name__)

PAGE = 50


@blueprint.get("/audit")
def page() -> Any:
    """The record of acts, newest first."""
    text = request.args.get("before", "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        abort(400, "`before` is the number that the last page ended with.")
    with transaction() as session:
        rows = list_actions(session, int(text) if text else None, limit=PAGE + 1)
    return render_template(
        "audit.html", rows=rows[:PAGE], next_before=rows[PAGE - 1].id if len(rows) > PAGE else None
    )
