"""`/status`: is money stuck, and where?"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, render_template

from receiver.inbox.readings import read_status
from receiver.inbox.refusals import newest_conflicts
from receiver.web.current import current_deps, statement_time, transaction
from receiver.web.sources import all_faults
from receiver.web.verdict import judge

blueprint = Blueprint("status", __name__)


@blueprint.get("/status")
def page() -> Any:
    """Read everything in one transaction, judge it, show it."""
    settings = current_deps().settings
    with transaction() as session:
        status = read_status(
            session, stale=settings.worker_stale, sources=settings.sources, now=statement_time()
        )
        conflicts = newest_conflicts(session) if status.open_conflicts else []
    faults = all_faults(settings.sources)
    return render_template(
        "status.html",
        status=status,
        verdict=judge(status, faults),
        conflicts=conflicts,
        faults=faults,
        stale=settings.worker_stale,
    )
