"""`/status`: is money stuck, and where?"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, render_template, request, url_for

from receiver.accounts.actions import list_actions
from receiver.alerts.list_alerts import open_alerts
from receiver.inbox.filter import FilterError
from receiver.inbox.history import SPANS, Span, read_history, two_hours
from receiver.inbox.readings import Status, read_status
from receiver.inbox.refusals import newest_conflicts
from receiver.web.current import current_deps, statement_time, transaction
from receiver.web.lights import changes, source_lights, worker_lights
from receiver.web.pictures import (
    Bar,
    backlog_picture,
    oldest_picture,
    reason_bars,
    results_picture,
    times_picture,
)
from receiver.web.sources import all_faults
from receiver.web.verdict import judge
from receiver.web.wording import duration
from receiver.web.wording import span as length

blueprint = Blueprint("status", __name__)

ACTS_LOOKED_AT = 50


@blueprint.get("/status")
def page() -> Any:
    """Read everything in one transaction, judge it, draw it, show it. ``range`` is 1h, 24h or 7d."""
    settings = current_deps().settings
    span = _span()
    with transaction() as session:
        status = read_status(
            session,
            stale=settings.worker_stale,
            sources=settings.sources,
            soon=settings.soon,
            now=statement_time(),
        )
        alerts = open_alerts(session)
        conflicts = newest_conflicts(session) if status.open_conflicts else []
        steps = read_history(session, span, now=status.now)
        hours = two_hours(session, now=status.now)
        acts = list_actions(session, limit=ACTS_LOOKED_AT)
    faults = all_faults(settings.sources)
    return render_template(
        "status.html",
        status=status,
        verdict=judge(status, faults, alerts),
        conflicts=conflicts,
        sources=source_lights(status, faults, alerts),
        workers=worker_lights(status.workers, now=status.now, stale=settings.worker_stale),
        changes=changes(status, hours, conflicts, acts),
        spans=tuple(SPANS),
        span=span,
        pictures=(
            results_picture(steps, span),
            times_picture(steps, span, duration),
            backlog_picture(steps, span),
            oldest_picture(steps, span, lambda ms: length(ms / 1000)),
        ),
        bars=_bars(status),
    )


def _span() -> Span:
    name = request.args.get("range") or "1h"
    if name not in SPANS:
        raise FilterError("range", f"range is one of {', '.join(SPANS)}")
    return SPANS[name]


def _bars(status: Status) -> list[Bar]:
    counts: dict[str, int] = {}
    for group in status.dead:
        counts[group.reason] = counts.get(group.reason, 0) + group.count
    return reason_bars(counts, lambda reason: url_for("failures.page", reason=reason), status.dead_more)
