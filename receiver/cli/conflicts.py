"""`receiver conflicts`: other facts under a known event id, shown against the event's, settled once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from receiver.cli.desk import desk
from receiver.cli.output import (
    actor,
    confirm,
    json_option,
    print_facts,
    print_json,
    print_table,
    reason_option,
    refusals,
    yes_option,
)
from receiver.inbox.conflicts import (
    STATES,
    ConflictDetail,
    UnknownConflict,
    find_conflict,
    list_conflicts,
    reject_conflict,
    release_conflict,
)
from receiver.inbox.models import WebhookConflict, WebhookEvent
from receiver.inbox.release import NotReleasable
from receiver.inbox.replay import facts_of

NUMBER = click.IntRange(1, 2**63 - 1)

KEYS = ("id", "event_id", "state", "count", "first_seen_at", "last_seen_at", "payload_sha256", "by", "reason")


@click.group()
def conflicts() -> None:
    """See, release and reject conflicting bodies."""


@conflicts.command("list")
@click.option("--state", type=click.Choice((*STATES, "any")), default="open", show_default=True)
@click.option("--source", help="Of this source.")
@click.option("--before", type=NUMBER, help="Before this number: goes on after a page.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@json_option
def list_(state: str, source: str | None, before: int | None, limit: int, as_json: bool) -> None:
    """Conflicts, newest first."""
    if source is not None and not source.isprintable():
        raise click.UsageError("--source has no control characters")
    with desk() as deps, deps.sessions() as session:
        rows = list_conflicts(
            session, state=None if state == "any" else state, source=source, before=before, limit=limit
        )
    if as_json:
        print_json([_json(conflict, event) for conflict, event in rows])
        return
    print_table(
        ["number", "event", "state", "seen", "first", "last", "by", "why"],
        [
            (
                conflict.id,
                f"{event.source}:{event.provider_event_id}",
                conflict.state,
                conflict.count,
                conflict.first_seen_at,
                conflict.last_seen_at,
                conflict.by,
                conflict.reason,
            )
            for conflict, event in rows
        ],
        empty="no such conflicts",
    )


@conflicts.command("show")
@click.argument("number", type=NUMBER)
@json_option
def show(number: int, as_json: bool) -> None:
    """One conflict: which facts differ from its event's."""
    with desk() as deps, deps.sessions() as session, refusals(UnknownConflict):
        detail = find_conflict(session, deps.settings, number)
    differing = _differing(detail)
    if as_json:
        body = detail.conflict.payload
        print_json(
            {
                **_json(detail.conflict, detail.event),
                "differing": {name: {"event": a, "conflict": b} for name, a, b in differing},
                "payload": None if body is None else body.decode("utf-8", "replace"),
            }
        )
        return
    print_facts([(key, getattr(detail.conflict, key)) for key in KEYS if key != "payload_sha256"])
    click.echo()
    print_table(["fact", "event", "conflict"], differing, empty="the conflicting body can no longer be read")


@conflicts.command("release")
@click.argument("number", type=NUMBER)
@reason_option
@yes_option
@json_option
def release(number: int, reason: str, yes: bool, as_json: bool) -> None:
    """Let a conflicting body in as an event of its own; the rules decide about it like about any other."""
    confirm(f"Let conflict {number} in as an event of its own?", yes)
    with desk() as deps, refusals(UnknownConflict, NotReleasable), deps.sessions.begin() as session:
        event = release_conflict(
            session,
            deps.settings,
            number,
            event_id=deps.dice.new_id(),
            payload_id=deps.dice.new_id(),
            actor=actor(),
            reason=reason,
            admin=True,
            give_up=deps.settings.give_up,
        )
    if as_json:
        print_json({"event": event.id, "provider_event_id": event.provider_event_id})
    else:
        click.echo(f"released as {event.source}:{event.provider_event_id}, receipt {event.id}")


@conflicts.command("reject")
@click.argument("number", type=NUMBER)
@reason_option
@json_option
def reject(number: int, reason: str, as_json: bool) -> None:
    """Say that a conflicting body shall never count."""
    with desk() as deps, refusals(UnknownConflict, NotReleasable), deps.sessions.begin() as session:
        conflict = reject_conflict(session, number, actor=actor(), reason=reason, admin=True)
    if as_json:
        print_json({"id": conflict.id, "state": conflict.state})
    else:
        click.echo(f"conflict {number} is rejected")


def _differing(detail: ConflictDetail) -> list[tuple[str, object, object]]:
    if detail.read is None:
        return []
    ours, theirs = asdict(facts_of(detail.event)), asdict(detail.read.facts)
    facts = [("event_type", detail.event.event_type, detail.read.event_type)]
    facts += [(name, ours[name], theirs[name]) for name in ours]
    return [(name, a, b) for name, a, b in facts if a != b]


def _json(conflict: WebhookConflict, event: WebhookEvent) -> dict[str, Any]:
    facts = {key: getattr(conflict, key) for key in KEYS}
    return {**facts, "source": event.source, "provider_event_id": event.provider_event_id}
