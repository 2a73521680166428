"""`/alerts`: what is wrong, what is over, and how each was told."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, flash, redirect, render_template, url_for

from receiver.alerts.list_alerts import AlertRefused, acknowledge, list_alerts
from receiver.alerts.read import read_channels
from receiver.alerts.words import advice, headline, page_of
from receiver.web.access import needs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.forms import reason_field

blueprint = Blueprint("alerts", __name__)


@blueprint.get("/alerts")
def index() -> Any:
    """Open alerts, the newest that are over, and the channels."""
    with transaction() as session:
        found = list_alerts(session)
        waiting = {channel.name: channel for channel in read_channels(session)}
    return render_template(
        "alerts.html",
        found=found,
        channels=current_deps().settings.alerts.channels,
        waiting=waiting,
        headline=headline,
        advice=advice,
        page_of=page_of,
    )


@blueprint.post("/alerts/<int:alert_id>/acknowledge")
@needs("operator")
def acknowledge_one(alert_id: int) -> Any:
    """Say that somebody is on it."""
    reason = reason_field()
    if alert_id >= 2**63:
        abort(404, "No alert has such a number.")
    try:
        with transaction() as session:
            acknowledge(session, alert_id, actor=actor(), reason=reason, now=statement_time())
    except AlertRefused as refused:
        abort(404 if refused.code == "unknown_alert" else 422, refused.detail)
    flash("It is noted that you are on it: no reminders until it becomes worse or is over.", "good")
    return redirect(url_for("alerts.index"), 303)
