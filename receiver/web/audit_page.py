"""`/audit`: what people did, when and why."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, render_template

from receiver.accounts.actions import list_actions
from receiver.web.current import transaction
from receiver.web.forms import number_before, query_text

blueprint = Blueprint("audit", __name__)

PAGE = 50

ACTS = (
    "bulk_replay.cancel",
    "bulk_replay.done",
    "bulk_replay.resume",
    "bulk_replay.start",
    "conflict.reject",
    "conflict.release",
    "event.flush",
    "event.forget",
    "event.reject",
    "event.release",
    "event.replay",
    "group.set",
    "order.cancel",
    "order.correct",
    "payload.erase",
    "payload.prune",
    "payload.restore",
    "source.pause",
    "source.resume",
    "token.add",
    "token.revoke",
    "user.add",
    "user.disable",
    "user.enable",
    "user.link",
    "user.password",
    "user.role",
    "user.sign_in",
    "user.sign_in_link",
    "user.sign_in_oidc",
    "user.sign_out",
)
"""Acts that the filter offers; a link may ask for another one."""


@blueprint.get("/audit")
def page() -> Any:
    """The record of acts under a filter, newest first."""
    query = {name: value for name in ("actor", "action", "target") if (value := query_text(name))}
    with transaction() as session:
        rows = list_actions(session, number_before(), PAGE + 1, **query)
    return render_template(
        "audit.html",
        rows=rows[:PAGE],
        next_before=rows[PAGE - 1].id if len(rows) > PAGE else None,
        query=query,
        acts=ACTS,
    )
