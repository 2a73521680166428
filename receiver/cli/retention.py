"""`receiver retention`: the archive of payloads, what is forgotten, restore and erase."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from sqlalchemy import select

from receiver.cli.desk import desk, find_one_event
from receiver.cli.output import (
    Refused,
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
from receiver.inbox.filter import FilterError, parse_time
from receiver.retention.archive import owed, verify_file, waiting
from receiver.retention.files import Archive, ArchiveBroken
from receiver.retention.models import ArchiveFile, RetentionTurn
from receiver.retention.restore import NotRestorable, erase_payload, restore_event, restore_window
from receiver.retention.turn import TurnTaken, archive_of, run

KEYS = ("id", "name", "state", "payloads", "bytes", "sha256", "first_received_at", "last_received_at",
        "written_at", "verified_at")  # fmt: skip


@click.group()
def retention() -> None:
    """Archive old payloads, bring them back, erase one for good."""


@retention.command("plan")
@json_option
def plan(as_json: bool) -> None:
    """What a run would do now; does nothing."""
    with desk() as deps, deps.sessions() as session:
        settings = deps.settings.retention
        turn = session.get(RetentionTurn, 1)
        found: dict[str, Any] = {
            "archive": settings.archive_shown or None,
            "payloads_in_the_next_file": waiting(session, age=settings.payloads) if settings.erases else 0,
            "files_owed": len(owed(session)),
            "last_run_at": turn.last_run_at if turn else None,
            "last_result": turn.last_result if turn else None,
        }
    if as_json:
        print_json(found)
        return
    print_table(["what", "now"], list(found.items()), empty="")
    if not settings.erases:
        click.echo("ARCHIVE_URL is not set: no payload is archived or erased by itself")


@retention.command("run")
@yes_option
@json_option
def run_now(yes: bool, as_json: bool) -> None:
    """Do now what the worker does once an hour; ends with 1 when the archive could not be used."""
    confirm("Archive, erase and forget what is old enough?", yes)
    with desk() as deps:
        try:
            ran = run(deps, archive_of(deps))
        except TurnTaken:
            raise Refused("another process runs retention now") from None
    if as_json:
        print_json({"files": ran.files, "archived": ran.archived, "erased": ran.erased,
                    "forgotten": ran.forgotten, "failed": ran.failed})  # fmt: skip
    else:
        click.echo(str(ran))
    if ran.failed:
        raise click.exceptions.Exit(1)


@retention.command("files")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@json_option
def files(limit: int, as_json: bool) -> None:
    """The manifest: the archive's files, the newest first."""
    with desk() as deps, deps.sessions() as session:
        rows = session.scalars(select(ArchiveFile).order_by(ArchiveFile.id.desc()).limit(limit)).all()
    if as_json:
        print_json([{key: getattr(row, key) for key in KEYS} for row in rows])
        return
    print_table(
        ["file", "state", "payloads", "bytes", "from", "to", "verified"],
        [
            (row.name, row.state, row.payloads, row.bytes, row.first_received_at, row.last_received_at,
             row.verified_at)
            for row in rows
        ],
        empty="nothing is archived yet",
    )  # fmt: skip


@retention.command("verify")
@json_option
def verify(as_json: bool) -> None:
    """Read every file and compare it with the manifest; ends with 1 when one is missing or changed."""
    with desk() as deps:
        archive = _archive(deps)
        with deps.sessions() as session:
            ids = session.scalars(
                select(ArchiveFile.id).where(ArchiveFile.sha256.is_not(None)).order_by(ArchiveFile.id)
            ).all()
        broken, payloads = [], 0
        for file_id in ids:
            try:
                payloads += verify_file(deps, archive, file_id)
            except ArchiveBroken as error:
                broken.append(error.detail)
    if as_json:
        print_json({"files": len(ids), "payloads": payloads, "broken": broken})
    else:
        click.echo(f"{len(ids)} files, {payloads} payloads, {len(broken)} broken")
        for detail in broken:
            click.echo(detail)
    if broken:
        raise click.exceptions.Exit(1)


@retention.command("restore")
@click.argument("event", required=False)
@click.option("--from", "start", help="Received at or after this time (with --to, instead of EVENT).")
@click.option("--to", "end", help="Received before this time.")
@reason_option
@json_option
def restore(event: str | None, start: str | None, end: str | None, reason: str, as_json: bool) -> None:
    """Bring payloads back for a week: of one EVENT (receipt or provider event id), or of a window."""
    with desk() as deps, refusals(NotRestorable, ArchiveBroken):
        archive = _archive(deps)
        if event is not None and start is None and end is None:
            with deps.sessions() as session:
                event_id = find_one_event(session, event).id
            restore_event(deps, archive, event_id, actor=actor(), reason=reason)
            number = 1
        elif event is None and start is not None and end is not None:
            number = restore_window(
                deps, archive, _time("--from", start), _time("--to", end), actor=actor(), reason=reason
            )
        else:
            raise click.UsageError("name one EVENT, or a window with --from and --to")
    if as_json:
        print_json({"restored": number})
    else:
        click.echo(f"{number} payloads restored")


@retention.command("erase")
@click.argument("event")
@reason_option
@yes_option
@json_option
def erase(event: str, reason: str, yes: bool, as_json: bool) -> None:
    """Erase the payload of one EVENT for good, in the archive too; its key and its outcome stay."""
    confirm(f"Erase the payload of {event} for good?", yes)
    with desk() as deps, refusals(NotRestorable, ArchiveBroken):
        with deps.sessions() as session:
            event_id = find_one_event(session, event).id
        written_anew = erase_payload(deps, archive_of(deps), event_id, actor=actor(), reason=reason)
    if as_json:
        print_json({"erased": str(event_id), "file_written_anew": written_anew})
    else:
        click.echo("erased" + (f"; {written_anew} was written anew without it" if written_anew else ""))


def _archive(deps: Deps) -> Archive:
    archive = archive_of(deps)
    if archive is None:
        raise Refused("there is no archive: ARCHIVE_URL is not set")
    return archive


def _time(name: str, value: str) -> datetime:
    try:
        return parse_time(name, value)
    except FilterError as error:
        raise click.UsageError(str(error)) from None
