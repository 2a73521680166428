"""`/reconciliation`: where the providers' records and ours differ, who must look, and catch-ups."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for

from receiver.inbox.correct_order import UnknownOrder
from receiver.inbox.filter import FilterError, check_text
from receiver.reconciliation.ask import Asker, askable
from receiver.reconciliation.catch_up import CatchUpRefused, begin_catch_up, cancel_catch_up
from receiver.reconciliation.demand import ask_soon
from receiver.reconciliation.report import catch_ups, drift_report
from receiver.web.access import needs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.forms import query_text, reason_field, text_field
from receiver.web.wording import order_url

blueprint = Blueprint("reconciliation", __name__)


@blueprint.get("/reconciliation")
def index() -> Any:
    """The drift report, of all sources or of one."""
    source = query_text("source")
    with transaction() as session:
        report = drift_report(session, source=source)
        listed = catch_ups(session, source=source)
    deps = current_deps()
    asker = Asker(deps)
    names = askable(deps.settings)
    lists = [name for name in names if (api := asker.api(name)) is not None and api.lists]
    return render_template(
        "reconciliation.html",
        report=report,
        catch_ups=listed,
        source=source,
        sources=sorted(deps.settings.sources),
        askable=names,
        lists=lists,
        on=deps.settings.reconcile,
    )


@blueprint.post("/reconciliation/order")
@needs("operator")
def ask_order() -> Any:
    """Let a worker ask for one order in its next round."""
    reference = request.form.get("reference", "")
    try:
        check_text("reference", reference)
        with transaction() as session:
            asked = ask_soon(
                session,
                current_deps().settings,
                reference=reference,
                actor=actor(),
                now=statement_time(),
            )
    except (FilterError, UnknownOrder):
        abort(404, "No order of this reference is registered.")
    if asked:
        flash("A worker asks now; look again in a few seconds.", "good")
    else:
        flash("Not asked: no source that may pay this order has an API that can be asked.", "bad")
    return redirect(order_url(reference), 303)


@blueprint.post("/reconciliation/catch-up")
@needs("operator")
def start() -> Any:
    """List a window of a source's events; a worker does it."""
    reason = reason_field()
    source, begins, ends = text_field("source"), _time("from"), _time("to")
    deps = current_deps()
    try:
        with transaction() as session:
            begin_catch_up(
                session,
                Asker(deps),
                source,
                catch_up_id=deps.dice.new_id(),
                start=begins,
                end=ends,
                actor=actor(),
                reason=reason,
                now=statement_time(),
            )
    except CatchUpRefused as refusal:
        flash(f"Not begun: {refusal.detail}.", "bad")
    else:
        flash("Begun. A worker lists the window; its progress stands below.", "good")
    return redirect(url_for("reconciliation.index"), 303)


@blueprint.post("/reconciliation/catch-ups/<uuid:catch_up_id>/cancel")
@needs("operator")
def cancel(catch_up_id: UUID) -> Any:
    """End a running catch-up."""
    try:
        with transaction() as session:
            cancel_catch_up(session, catch_up_id, actor=actor(), reason=reason_field(), now=statement_time())
    except CatchUpRefused as refusal:
        flash(f"Not cancelled: {refusal.detail}.", "bad")
    else:
        flash("Cancelled. What it stored stays.", "good")
    return redirect(url_for("reconciliation.index"), 303)


def _time(name: str) -> datetime:
    """A time of the form, in UTC unless it says otherwise. Raises FilterError."""
    try:
        found = datetime.fromisoformat(text_field(name, 40))
    except ValueError:
        raise FilterError(name, f"{name} must be a time such as 2026-03-01T12:00") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
