"""Bulk replays: count, try dry, start, watch, cancel, take up again; and the list of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask_login import current_user

from receiver.inbox.bulk_replay import (
    ANNOUNCE_ABOVE,
    SPREAD,
    BulkReplayEnded,
    BulkReplayRefused,
    UnknownBulkReplay,
    cancel_bulk_replay,
    find_bulk_replay,
    list_bulk_replays,
    resume_bulk_replay,
    start_bulk_replay,
    who_notices,
)
from receiver.inbox.dead_letters import count_matching, dead_only
from receiver.inbox.dry_run import dry_run
from receiver.inbox.filter import Filter, FilterError
from receiver.web.access import needs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.forms import MAX_REASON, integer_field, page_before, reason_field, text_field
from receiver.web.wording import link

blueprint = Blueprint("replays", __name__)

PAGE = 50

COUNT_TO = 100_000
"""How far the page counts; a start counts on."""

DRY_ROWS = 2_000
"""Events that a dry run of the page decides, so that this process goes on answering; the shell takes all."""


@blueprint.get("/replays")
def index() -> Any:
    """All bulk replays, newest first."""
    with transaction() as session:
        rows = list_bulk_replays(session, before=page_before(), limit=PAGE + 1)
    return render_template(
        "replays.html", rows=rows[:PAGE], next_before=rows[PAGE - 1].id if len(rows) > PAGE else None
    )


@blueprint.get("/replays/new")
@needs("admin")
def prepare() -> Any:
    """How many a filter takes; with ``dry=1`` also what would become of them. Writes nothing."""
    asked = dead_only(Filter.parse(request.args))
    dry = None
    with transaction() as session:
        count = count_matching(session, asked, COUNT_TO)
    if count and request.args.get("dry") == "1":
        with current_deps().sessions() as session:
            dry = dry_run(session, current_deps().settings, asked, DRY_ROWS)
            session.rollback()
    return render_template(
        "replay_new.html",
        query=asked.as_query(),
        count=count,
        announce=count.number > ANNOUNCE_ABOVE,
        announce_above=ANNOUNCE_ABOVE,
        notices=who_notices(count, SPREAD),
        spread=int(SPREAD.total_seconds() // 60),
        dry=dry,
    )


@blueprint.post("/replays")
@needs("admin")
def start() -> Any:
    """Start a bulk replay. The filter stands in the query string, as the page that counted had it."""
    asked, reason = dead_only(Filter.parse(request.args)), reason_field()
    limit = integer_field("limit") if request.form.get("limit", "").strip() else None
    try:
        with transaction() as session:
            replay = start_bulk_replay(
                session,
                replay_id=current_deps().dice.new_id(),
                filter=asked,
                actor=actor(),
                reason=reason,
                admin=current_user.may("admin"),
                spread=timedelta(minutes=integer_field("spread")),
                row_limit=limit,
                announcement=text_field("announcement", MAX_REASON),
                now=statement_time(),
            )
    except BulkReplayRefused as refusal:
        flash(f"Not started: {refusal.detail}.", "bad")
        return redirect(link("replays.prepare", asked), 303)
    flash("Started. The worker sends the events round again at this pace; you may cancel midway.", "good")
    return redirect(url_for("replays.show", replay_id=replay.id), 303)


@blueprint.get("/replays/<uuid:replay_id>")
def show(replay_id: UUID) -> Any:
    """One bulk replay and how far it is."""
    try:
        with transaction() as session:
            replay = find_bulk_replay(session, replay_id)
    except UnknownBulkReplay:
        abort(404, "There is no bulk replay of this id.")
    looked_at = min(replay.done + replay.skipped, replay.counted)
    left = replay.counted - looked_at
    return render_template(
        "replay.html",
        replay=replay,
        looked_at=looked_at,
        left=timedelta(seconds=left * replay.spread_seconds / max(1, replay.counted)),
        events=_events(replay.filter),
    )


def _events(query: dict[str, Any]) -> str | None:
    """The list of what its filter still finds."""
    try:
        return link("failures.page", Filter.parse(query))
    except FilterError:
        return None


@blueprint.post("/replays/<uuid:replay_id>/cancel")
@needs("admin")
def cancel(replay_id: UUID) -> Any:
    """Stop midway: what was sent goes on, the rest stays dead."""
    reason = reason_field()
    try:
        with transaction() as session:
            replay = cancel_bulk_replay(
                session, replay_id, actor=actor(), reason=reason, now=statement_time()
            )
    except UnknownBulkReplay:
        abort(404, "There is no bulk replay of this id.")
    except BulkReplayEnded as refusal:
        flash(f"Not cancelled: {refusal.detail}.", "bad")
    else:
        flash(f"Cancelled. {replay.done:,} went round again; the rest stays as it was.", "good")
    return redirect(url_for("replays.show", replay_id=replay_id), 303)


@blueprint.post("/replays/<uuid:replay_id>/resume")
@needs("admin")
def go_on(replay_id: UUID) -> Any:
    """Go on with a cancelled one where it stopped."""
    reason = reason_field()
    try:
        with transaction() as session:
            resume_bulk_replay(session, replay_id, actor=actor(), reason=reason, now=statement_time())
    except UnknownBulkReplay:
        abort(404, "There is no bulk replay of this id.")
    except BulkReplayEnded as refusal:
        flash(f"Not taken up again: {refusal.detail}.", "bad")
    else:
        flash("Taken up again where it stopped.", "good")
    return redirect(url_for("replays.show", replay_id=replay_id), 303)
