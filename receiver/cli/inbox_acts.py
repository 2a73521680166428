"""The commands of `receiver inbox` that change rows: each with a reason and an audit row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import click
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.cli.desk import desk, find_one_event
from receiver.cli.inbox import filter_options, find_events, inbox, read_filter
from receiver.cli.output import (
    Refused,
    actor,
    confirm,
    json_option,
    print_json,
    reason_option,
    refusals,
    sentence,
    yes_option,
)
from receiver.deps import Deps
from receiver.inbox.acknowledge import flush_failed, forget_event, prune_payloads
from receiver.inbox.filter import DEAD
from receiver.inbox.replay import NotReplayable, RowChanged, UnknownEvent, preview_replay, replay_event
from receiver.inbox.table import INBOX
from receiver.queue.pauses import Resumed, go_on, pause, resume

EXPECTED = (UnknownEvent, RowChanged, NotReplayable)

ALL_MAX = 10_000
"""How many rows `retry all` takes in one call."""

BATCH = 1000
PAYLOAD_DAYS = 90


@inbox.command("retry")
@click.argument("events", nargs=-1, required=True)
@filter_options
@click.option("--dry-run", is_flag=True, help="Say what each replay would do, and do nothing.")
@click.option("--reason", help="Why; kept in the audit row. Not needed with --dry-run.")
@yes_option
@json_option
def retry(
    events: tuple[str, ...], dry_run: bool, reason: str | None, yes: bool, as_json: bool, **asked: Any
) -> None:
    """Send EVENTS round again: receipts, provider event ids, or `all` dead letters (with a filter)."""
    if not dry_run and not reason:
        raise click.MissingParameter(param_hint="'--reason'", param_type="option")
    with desk() as deps:
        ids = _wanted(deps, events, asked)
        if dry_run:
            _preview(deps, ids, as_json)
            return
        if len(ids) > 1 or events == ("all",):
            confirm(f"Replay {len(ids)} events?", yes)
        done, refused = _each(
            deps,
            ids,
            lambda session, event: replay_event(
                session,
                event,
                row_version=_row_version(session, event),
                actor=actor(),
                reason=reason or "",
                admin=events != ("all",),
                give_up=deps.settings.give_up,
            ),
        )
    _report(done, refused, "sent round again", as_json)


@inbox.command("forget")
@click.argument("events", nargs=-1, required=True)
@click.option("--erase", is_flag=True, help="Erase the payload too; the event's key always stays.")
@reason_option
@yes_option
@json_option
def forget(events: tuple[str, ...], erase: bool, reason: str, yes: bool, as_json: bool) -> None:
    """Take failed EVENTS out of the list of dead letters; a late duplicate is still a duplicate."""
    confirm(f"Take {len(events)} events out of the list{' and erase their payloads' * erase}?", yes)
    with desk() as deps:
        done, refused = _each(
            deps,
            _wanted(deps, events, {}),
            lambda session, event: forget_event(session, event, actor=actor(), reason=reason, erase=erase),
        )
    _report(done, refused, "taken out of the list", as_json)


@inbox.command("flush")
@click.option("--hours", type=click.IntRange(0), default=0, help="Only what failed longer ago than this.")
@click.option("--erase", is_flag=True, help="Erase the payloads too; the events' keys always stay.")
@reason_option
@yes_option
@json_option
def flush(hours: int, erase: bool, reason: str, yes: bool, as_json: bool) -> None:
    """Take every dead letter out of the list."""
    confirm(f"Take every dead letter out of the list{' and erase the payloads' * erase}?", yes)
    flushed = 0
    with desk() as deps:
        while True:
            with deps.sessions.begin() as session:
                count = flush_failed(
                    session,
                    older_than=timedelta(hours=hours),
                    actor=actor(),
                    reason=reason,
                    erase=erase,
                    limit=BATCH,
                )
            flushed += count
            if count < BATCH:
                break
    _said(as_json, {"flushed": flushed}, f"{flushed} dead letters taken out of the list")


@inbox.command("prune")
@click.option("--days", type=click.IntRange(1), default=PAYLOAD_DAYS, show_default=True)
@yes_option
@json_option
def prune(days: int, yes: bool, as_json: bool) -> None:
    """Erase payloads of events that ended and are older than this; their keys and outcomes stay."""
    confirm(f"Erase payloads older than {days} days?", yes)
    erased = 0
    with desk() as deps:
        if deps.settings.retention.archives:
            raise Refused("payloads are archived before they are erased here: use `receiver retention run`")
        while True:
            with deps.sessions.begin() as session:
                count = prune_payloads(session, older_than=timedelta(days=days), limit=BATCH)
                if count:
                    record(
                        session,
                        actor=actor(),
                        action="payload.prune",
                        target="inbox",
                        criteria={"days": days},
                        count=count,
                    )
            erased += count
            if count < BATCH:
                break
    _said(as_json, {"erased": erased}, f"{erased} payloads erased")


@inbox.command("pause")
@click.argument("source")
@reason_option
@json_option
def pause_(source: str, reason: str, as_json: bool) -> None:
    """Hold the events of SOURCE: it goes on receiving, nothing is worked and nothing expires."""
    with desk() as deps:
        if source not in deps.settings.sources:
            raise Refused(
                f"there is no source {source}; there are {', '.join(deps.settings.sources) or 'none'}"
            )
        with deps.sessions.begin() as session:
            if not pause(session, INBOX, source, by=actor(), reason=reason):
                raise Refused(f"{source} is paused already, or its resume is not over yet")
            record(session, actor=actor(), action="source.pause", target=f"source:{source}", reason=reason)
    _said(as_json, {"source": source}, f"{source} is paused: events are stored and held")


@inbox.command("resume")
@click.argument("source")
@click.option("--spread-seconds", type=click.IntRange(0, 86400), default=0, show_default=True)
@click.option("--reason", default="resumed", help="Why; kept in the audit row.")
@json_option
def resume_(source: str, spread_seconds: int, reason: str, as_json: bool) -> None:
    """Let the held events of SOURCE go on, at once or spread over some time."""
    with desk() as deps:
        with deps.sessions.begin() as session:
            resumed = resume(session, INBOX, source, spread=timedelta(seconds=spread_seconds))
            if resumed is None:
                raise Refused(f"{source} is not paused")
            record(
                session,
                actor=actor(),
                action="source.resume",
                target=f"source:{source}",
                count=resumed.held,
                reason=reason,
            )
        held = _until_all_have_time(deps, source, resumed, quiet=as_json)
    _said(as_json, {"source": source, "held": held}, f"{source} goes on: {held} held events")


def _until_all_have_time(deps: Deps, source: str, resumed: Resumed, *, quiet: bool) -> int:
    """Go on with a resume until it is over, beside the worker; returns the rows that were given time."""
    while not resumed.over:
        if not quiet:
            click.echo(f"{resumed.held:,} held events have their time so far", err=True)
        with deps.sessions.begin() as session:
            further = go_on(session, INBOX, source)
        if further is None:
            break
        resumed = further
    return resumed.held


def _wanted(deps: Deps, events: tuple[str, ...], asked: dict[str, Any]) -> list[UUID]:
    if events == ("all",):
        rows = find_events(deps, read_filter({**asked, "state": DEAD}), ALL_MAX)
        return [row.id for row in reversed(rows) if row.acknowledged_at is None]
    if any(asked.values()):
        raise click.UsageError("a filter goes with `all`, not with named events")
    with deps.sessions() as session:
        return [find_one_event(session, text).id for text in events]


def _row_version(session: Session, event_id: UUID) -> int:
    return find_one_event(session, str(event_id)).row_version


def _each(
    deps: Deps, ids: list[UUID], act: Callable[[Session, UUID], object]
) -> tuple[list[UUID], dict[UUID, str]]:
    """Do one act per event, each in its own transaction; returns the done and why others were not."""
    done: list[UUID] = []
    refused: dict[UUID, str] = {}
    for event_id in ids:
        try:
            with deps.sessions.begin() as session:
                act(session, event_id)
            done.append(event_id)
        except EXPECTED as error:
            refused[event_id] = sentence(error)
    return done, refused


def _preview(deps: Deps, ids: list[UUID], as_json: bool) -> None:
    found = {}
    for event_id in ids:
        with deps.sessions() as session, refusals(*EXPECTED):
            found[str(event_id)] = preview_replay(session, deps.settings, event_id)
            session.rollback()
    if as_json:
        print_json(found)
    else:
        for event, text in found.items():
            click.echo(f"{event}  {text}")


def _report(done: list[UUID], refused: dict[UUID, str], what: str, as_json: bool) -> None:
    if as_json:
        print_json({"done": done, "refused": {str(event): why for event, why in refused.items()}})
    else:
        click.echo(f"{len(done)} {'event' if len(done) == 1 else 'events'} {what}")
    if refused:
        raise Refused("; ".join(f"{event}: {why}" for event, why in list(refused.items())[:10]))


def _said(as_json: bool, value: dict[str, object], text: str) -> None:
    if as_json:
        print_json(value)
    else:
        click.echo(text)
