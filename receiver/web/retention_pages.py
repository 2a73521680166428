"""`/retention`: the archive's files, what is due; and the acts on one event's payload."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Blueprint, abort, flash, redirect, render_template, url_for
from sqlalchemy import func, select

from receiver.retention.archive import owed, waiting
from receiver.retention.files import ArchiveBroken
from receiver.retention.models import ArchiveFile, RetentionTurn
from receiver.retention.restore import NotRestorable, erase_payload, restore_event
from receiver.retention.turn import archive_of
from receiver.web.access import needs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.forms import number_before, reason_field

blueprint = Blueprint("retention", __name__)

PAGE = 50


@blueprint.get("/retention")
def page() -> Any:
    """The manifest, the newest file first, and what the next run would do."""
    settings = current_deps().settings.retention
    before = number_before()
    with transaction() as session:
        query = select(ArchiveFile).order_by(ArchiveFile.id.desc()).limit(PAGE + 1)
        rows = session.scalars(query if before is None else query.where(ArchiveFile.id < before)).all()
        totals = session.execute(select(func.count(), func.sum(ArchiveFile.payloads))).one()
        turn = session.get(RetentionTurn, 1)
        due = waiting(session, age=settings.payloads, now=statement_time()) if settings.erases else 0
        work = len(owed(session, now=statement_time()))
    return render_template(
        "retention.html",
        rows=rows[:PAGE],
        next_before=rows[PAGE - 1].id if len(rows) > PAGE else None,
        settings=settings,
        files=totals[0],
        payloads=totals[1] or 0,
        turn=turn,
        due=due,
        owed=work,
    )


@blueprint.post("/events/<uuid:event_id>/restore")
@needs("admin")
def restore(event_id: UUID) -> Any:
    """Bring an event's payload back from the archive for a week."""
    archive, reason = archive_of(current_deps()), reason_field()
    if archive is None:
        flash("Not restored: there is no archive, ARCHIVE_URL is not set.", "bad")
        return redirect(url_for("events.show", event_id=event_id), 303)
    try:
        name = restore_event(current_deps(), archive, event_id, actor=actor(), reason=reason)
    except NotRestorable as refusal:
        if refusal.code == "event_unknown":
            abort(404, "There is no event of this id.")
        flash(f"Not restored: {refusal.detail}.", "bad")
    except ArchiveBroken as broken:
        flash(f"Not restored: {broken.detail}.", "bad")
    else:
        flash(f"Restored from {name}; it stays for a week.", "good")
    return redirect(url_for("events.show", event_id=event_id), 303)


@blueprint.post("/events/<uuid:event_id>/erase")
@needs("admin")
def erase(event_id: UUID) -> Any:
    """Erase an event's payload for good, here and in the archive."""
    reason = reason_field()
    try:
        name = erase_payload(
            current_deps(), archive_of(current_deps()), event_id, actor=actor(), reason=reason
        )
    except NotRestorable:
        abort(404, "There is no event of this id.")
    except ArchiveBroken as broken:
        flash(
            f"Erased here. The archive could not be written anew ({broken.detail}): the next run does it.",
            "bad",
        )
    else:
        flash("Erased for good." + (f" {name} was written anew without it." if name else ""), "good")
    return redirect(url_for("events.show", event_id=event_id), 303)
