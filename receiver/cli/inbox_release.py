"""`receiver inbox`: release or reject what one check of the rules refused."""

from __future__ import annotations

import click

import receiver.cli.inbox_acts
import receiver.cli.inbox_bulk  # noqa: F401 (their commands hang on the same group)
from receiver.cli.desk import desk, find_one_event
from receiver.cli.inbox import inbox
from receiver.cli.output import (
    actor,
    confirm,
    json_option,
    print_json,
    reason_option,
    refusals,
    yes_option,
)
from receiver.inbox.release import NotReleasable, check_release, reject_event, release_event
from receiver.inbox.replay import RowChanged, UnknownEvent

EXPECTED = (NotReleasable, RowChanged, UnknownEvent)


@inbox.command("release")
@click.argument("event")
@reason_option
@yes_option
@json_option
def release(event: str, reason: str, yes: bool, as_json: bool) -> None:
    """Send EVENT round again without the one check that refused it (account, mode, order_cancelled, or an
    amount below the order's, which then counts as a part).
    """
    with desk() as deps, refusals(*EXPECTED):
        with deps.sessions() as session:
            seen = find_one_event(session, event)
            check = check_release(session, seen)
        confirm(f"Let {seen.source}:{seen.provider_event_id} pass without the check {check}?", yes)
        with deps.sessions.begin() as session:
            released = release_event(
                session,
                seen.id,
                row_version=seen.row_version,
                actor=actor(),
                reason=reason,
                admin=True,
                give_up=deps.settings.give_up,
            )
    if as_json:
        print_json({"id": released.id, "state": released.state, "waived": released.waived})
    else:
        click.echo(f"{released.id} goes round again without the check {check}")


@inbox.command("reject")
@click.argument("event")
@reason_option
@json_option
def reject(event: str, reason: str, as_json: bool) -> None:
    """Say that the refusal of EVENT stands: it leaves the list of dead letters."""
    with desk() as deps, refusals(*EXPECTED), deps.sessions.begin() as session:
        seen = find_one_event(session, event)
        rejected = reject_event(
            session, seen.id, row_version=seen.row_version, actor=actor(), reason=reason, admin=True
        )
    if as_json:
        print_json({"id": rejected.id, "acknowledged_at": rejected.acknowledged_at})
    else:
        click.echo(f"{rejected.id} stays refused and is out of the list")
