"""`receiver inbox`: failures by cause, and the replay of many dead letters at once."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from receiver.cli.desk import desk
from receiver.cli.inbox import filter_options, inbox, read_filter
from receiver.cli.output import (
    actor,
    confirm,
    json_option,
    print_json,
    print_table,
    reason_option,
    refusals,
    yes_option,
)
from receiver.deps import Deps
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
from receiver.inbox.dead_letters import COUNT_TO, count_matching
from receiver.inbox.dry_run import DryRun, dry_run
from receiver.inbox.failure_groups import STATES, GroupKey, GroupRefused, list_groups, set_group
from receiver.inbox.filter import DEAD, Filter, FilterError
from receiver.queue.models import BulkReplay

EXPECTED = (BulkReplayEnded, BulkReplayRefused, FilterError, GroupRefused, UnknownBulkReplay)

DRY_MAX = 100_000
LOOK_SECONDS = 1.0

KEYS = (
    "id",
    "state",
    "counted",
    "done",
    "skipped",
    "filter",
    "row_limit",
    "spread_seconds",
    "by",
    "reason",
    "announcement",
    "created_at",
    "updated_at",
    "finished_at",
)


@inbox.command("groups")
@click.option("--source", help="Of this source.")
@click.option("--state", type=click.Choice(STATES), help="In this state.")
@json_option
def groups(source: str | None, state: str | None, as_json: bool) -> None:
    """Dead letters grouped by cause, the largest group first."""
    if source is not None and not source.isprintable():
        raise click.UsageError("--source has no control characters")
    with desk() as deps, deps.sessions() as session:
        found = list_groups(session, source=source, state=state)
    if as_json:
        print_json(
            [
                {
                    "group": str(group.key),
                    **asdict(group.key),
                    "count": group.count.number,
                    "more": group.count.more,
                    **{
                        name: getattr(group, name)
                        for name in ("first_at", "last_at", "example", "state", "note", "by", "reopened")
                    },
                }
                for group in found
            ]
        )
        return
    print_table(
        ["group", "dead", "first", "last", "example", "state", "note"],
        [
            (g.key, g.count, g.first_at, g.last_at, g.example, g.state + " again" * g.reopened, g.note)
            for g in found
        ],
        empty="no dead letters",
    )


@inbox.command("mark")
@click.argument("group")
@click.argument("state", type=click.Choice(STATES))
@click.option("--note", help="What others should know; without it the note stays.")
@reason_option
@json_option
def mark(group: str, state: str, note: str | None, reason: str, as_json: bool) -> None:
    """Say that GROUP (as `inbox groups` names it) is open, acknowledged or resolved."""
    with desk() as deps, refusals(*EXPECTED), deps.sessions.begin() as session:
        key = GroupKey.parse(group)
        set_group(session, key, state=state, note=note, actor=actor(), reason=reason)
    if as_json:
        print_json({"group": str(key), "state": state})
    else:
        click.echo(f"{key} is {state}")


@inbox.command("replay-all")
@filter_options
@click.option("--group", help="The dead letters of this group, as `inbox groups` names it.")
@click.option("--state", type=click.Choice((DEAD, "failed", "expired")), default=DEAD, show_default=True)
@click.option("--limit", type=click.IntRange(1), help="At most so many, the oldest first.")
@click.option(
    "--spread",
    type=click.IntRange(0, 86400),
    default=int(SPREAD.total_seconds()),
    show_default=True,
    help="Seconds over which they come back.",
)
@click.option("--announcement", help=f"Who was told; needed above {ANNOUNCE_ABOVE:,} events.")
@click.option("--dry-run", "dry", is_flag=True, help="Say what the rules would do now, and do nothing.")
@click.option("--reason", help="Why; kept in the audit row.")
@click.option("--follow", is_flag=True, help="Show the progress until the end.")
@yes_option
@json_option
def replay_all(
    group: str | None,
    state: str,
    limit: int | None,
    spread: int,
    announcement: str | None,
    dry: bool,
    reason: str | None,
    follow: bool,
    yes: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Send failed and expired events round again, as many as a filter finds; the worker does it."""
    wanted = _wanted(group, {**asked, "state": state})
    with desk() as deps, refusals(*EXPECTED):
        if dry:
            with deps.sessions() as session:
                _print_dry(dry_run(session, deps.settings, wanted, limit or DRY_MAX), as_json)
            return
        if reason is None:
            raise click.UsageError("--reason is missing: why are they sent round again?")
        with deps.sessions() as session:
            count = count_matching(session, wanted, COUNT_TO)
        number = count.number if limit is None else min(limit, count.number)
        if number > ANNOUNCE_ABOVE:
            for sentence in who_notices(count, timedelta(seconds=spread)):
                click.echo(sentence, err=True)
        confirm(f"Send {number:,} dead letters round again within {spread} seconds?", yes)
        with deps.sessions.begin() as session:
            replay = start_bulk_replay(
                session,
                replay_id=deps.dice.new_id(),
                filter=wanted,
                actor=actor(),
                reason=reason,
                admin=True,
                spread=timedelta(seconds=spread),
                row_limit=limit,
                announcement=announcement,
            )
        if follow:
            replay = _follow(deps, replay.id)
    _said(replay, as_json)


@inbox.command("replays")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@json_option
def replays(limit: int, as_json: bool) -> None:
    """Bulk replays with their progress, newest first."""
    with desk() as deps, deps.sessions() as session:
        found = list_bulk_replays(session, limit=limit)
    if as_json:
        print_json([_json(replay) for replay in found])
        return
    print_table(
        ["bulk replay", "state", "done", "of", "skipped", "started", "by", "why", "filter"],
        [
            (r.id, r.state, r.done, r.counted, r.skipped, r.created_at, r.by, r.reason, _words(r.filter))
            for r in found
        ],
        empty="no bulk replays yet",
    )


@inbox.command("replay-follow")
@click.argument("replay", type=click.UUID)
@json_option
def replay_follow(replay: UUID, as_json: bool) -> None:
    """Show the progress of a bulk replay until its end."""
    with desk() as deps, refusals(*EXPECTED):
        ended = _follow(deps, replay)
    _said(ended, as_json)


@inbox.command("replay-cancel")
@click.argument("replay", type=click.UUID)
@reason_option
@json_option
def replay_cancel(replay: UUID, reason: str, as_json: bool) -> None:
    """Stop a bulk replay midway: what was not sent yet stays a dead letter."""
    with desk() as deps, refusals(*EXPECTED), deps.sessions.begin() as session:
        cancelled = cancel_bulk_replay(session, replay, actor=actor(), reason=reason)
    _said(cancelled, as_json)


@inbox.command("replay-resume")
@click.argument("replay", type=click.UUID)
@reason_option
@json_option
def replay_resume(replay: UUID, reason: str, as_json: bool) -> None:
    """Go on with a cancelled bulk replay where it stopped."""
    with desk() as deps, refusals(*EXPECTED), deps.sessions.begin() as session:
        resumed = resume_bulk_replay(session, replay, actor=actor(), reason=reason)
    _said(resumed, as_json)


def _wanted(group: str | None, asked: dict[str, Any]) -> Filter:
    if group is None:
        return read_filter(asked)
    return GroupKey.parse(group).filter().with_(state=asked["state"])


def _follow(deps: Deps, replay_id: UUID) -> BulkReplay:
    """Wait for the end with a progress bar on standard error. Raises UnknownBulkReplay."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("replayed", total=None)
        while True:
            with deps.sessions() as session:
                replay = find_bulk_replay(session, replay_id)
            progress.update(task, total=replay.counted, completed=replay.done + replay.skipped)
            if replay.state != "running":
                return replay
            time.sleep(LOOK_SECONDS)


def _print_dry(found: DryRun, as_json: bool) -> None:
    if as_json:
        print_json(asdict(found))
        return
    print_table(
        ["events", "would be", "why", "such as", "which"],
        [(o.count, o.outcome, o.reason, o.sentence, o.examples[0]) for o in found.outcomes],
        empty="no failed or expired event matches",
    )
    if found.more:
        click.echo(f"the first {found.looked_at:,} alone; there are more")


def _said(replay: BulkReplay, as_json: bool) -> None:
    if as_json:
        print_json(_json(replay))
    else:
        click.echo(
            f"bulk replay {replay.id} is {replay.state}: {replay.done:,} of {replay.counted:,} sent,"
            f" {replay.skipped:,} skipped"
        )


def _json(replay: BulkReplay) -> dict[str, Any]:
    return {key: getattr(replay, key) for key in KEYS}


def _words(filter: dict[str, Any]) -> str:  # noqa: A002
    return " ".join(f"{name}={value}" for name, value in filter.items())
