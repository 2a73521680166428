"""`/sources/<name>`: how a source is set up, when it last spoke, and its pause."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, flash, redirect, render_template, url_for
from sqlalchemy.orm import Session

from receiver.accounts import actions
from receiver.inbox.rates import read_rates
from receiver.inbox.readings import pending_of_source
from receiver.inbox.refusals import rejections, source_times
from receiver.inbox.table import INBOX
from receiver.queue.models import Pause
from receiver.queue.pauses import list_pauses, pause, resume
from receiver.settings import Source
from receiver.web.access import needs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.forms import reason_field
from receiver.web.sources import all_faults, faults_of, spoken_by, timestamp_of, window_of
from receiver.web.times import RESUME_SPREAD, database_time, hour_before

blueprint = Blueprint("sources", __name__)


@blueprint.get("/sources")
def index() -> Any:
    """All configured sources."""
    settings = current_deps().settings
    with transaction() as session:
        now = database_time(session)
        rates = {rate.source: rate for rate in read_rates(session, sources=settings.sources, now=now)}
        pauses = {found.key for found in list_pauses(session, INBOX)}
    return render_template(
        "sources.html",
        sources=[settings.sources[name] for name in sorted(settings.sources)],
        rates=rates,
        pauses=pauses,
        faults=all_faults(settings.sources),
    )


@blueprint.get("/sources/<name>")
def show(name: str) -> Any:
    """One source."""
    source = _source(name)
    spoken = spoken_by(source)
    with transaction() as session:
        now = database_time(session)
        paused = _pause_of(session, name)
        times = source_times(session, name)
        pending = pending_of_source(session, name)
        refused = [r for r in rejections(session, since=hour_before(now)) if r.source == name]
        rate = next(r for r in read_rates(session, sources=[name], now=now) if r.source == name)
    return render_template(
        "source.html",
        source=source,
        spoken=spoken,
        usable=spoken.usable_secrets(source) if spoken else (),
        faults=faults_of(source),
        timestamp=timestamp_of(source),
        window=window_of(source),
        paused=paused,
        times=times,
        pending=pending,
        rejections=refused,
        rate=rate,
    )


@blueprint.post("/sources/<name>/pause")
@needs("operator")
def hold(name: str) -> Any:
    """Pause: events are stored and answered as ever, and held until resumed."""
    reason = reason_field()
    _source(name)
    with transaction() as session:
        paused = pause(session, INBOX, name, by=actor(), reason=reason, now=statement_time())
        if paused:
            _record(session, "source.pause", name, reason)
    if paused:
        flash(
            "Paused. Callbacks are stored and answered as ever; nothing is lost and nothing expires.", "good"
        )
    else:
        flash("It is paused already, or its resume is not over yet: the first pause stands.", "bad")
    return redirect(url_for("sources.show", name=name), 303)


@blueprint.post("/sources/<name>/resume")
@needs("operator")
def go_on(name: str) -> Any:
    """Resume: what was held comes back spread over a while, its deadline prolonged by the pause."""
    reason = reason_field()
    with transaction() as session:
        resumed = resume(session, INBOX, name, spread=RESUME_SPREAD, now=statement_time())
        if resumed is not None:
            _record(session, "source.resume", name, reason, count=resumed.held)
    if resumed is None:
        flash("It is not paused.", "bad")
    elif resumed.over:
        flash(f"Resumed; {resumed.held} held event{'' if resumed.held == 1 else 's'} released.", "good")
    else:
        flash(
            f"Being resumed: {resumed.held:,} held events have their time, the worker sees to the rest.",
            "good",
        )
    configured = name in current_deps().settings.sources
    return redirect(url_for("sources.show", name=name) if configured else url_for("status.page"), 303)


def _source(name: str) -> Source:
    source = current_deps().settings.sources.get(name)
    if source is None:
        abort(404, "No source of this name is configured.")
    return source


def _pause_of(session: Session, name: str) -> Pause | None:
    return next((found for found in list_pauses(session, INBOX) if found.key == name), None)


def _record(session: Session, action: str, name: str, reason: str, count: int = 1) -> None:
    actions.record(
        session,
        actor=actor(),
        action=action,
        target=f"source:{name}",
        reason=reason,
        count=count,
        now=statement_time(),
    )
