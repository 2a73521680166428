"""`receiver alerts`: what is wrong and how it was told; a test over every channel."""

from __future__ import annotations

from typing import Any

import click

from receiver.alerts.channels import fault_of
from receiver.alerts.list_alerts import AlertRefused, Alerts, acknowledge, list_alerts
from receiver.alerts.models import Alert
from receiver.alerts.tell import try_channel
from receiver.alerts.words import headline
from receiver.cli.desk import desk
from receiver.cli.output import actor, json_option, print_json, print_table, reason_option, refusals

KEYS = (
    "id",
    "kind",
    "key",
    "level",
    "step",
    "facts",
    "since",
    "opened_at",
    "notified_at",
    "closed_at",
    "acknowledged_at",
    "acknowledged_by",
)
NOTICE_KEYS = ("turn", "channel", "state", "attempts", "created_at", "told_at", "last_error")


@click.group()
def alerts() -> None:
    """See what is wrong and how it was told; test the channels."""


@alerts.command("list")
@click.option("--all", "closed", is_flag=True, help="Also those that are over, the newest first.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@json_option
def list_(closed: bool, limit: int, as_json: bool) -> None:
    """Open alerts, the oldest first."""
    with desk() as deps, deps.sessions() as session:
        found = list_alerts(session, limit=limit)
    rows = [*found.open, *(found.closed if closed else ())]
    if as_json:
        print_json([_json(found, row) for row in rows])
        return
    print_table(
        ["number", "level", "what", "since", "told", "over", "somebody is on it"],
        [
            (
                row.id,
                row.level,
                headline(row.kind, row.key, row.facts),
                row.since,
                _told(found, row),
                row.closed_at,
                row.acknowledged_by,
            )
            for row in rows
        ],
        empty="no alert stands open",
    )


@alerts.command("test")
@json_option
def test(as_json: bool) -> None:
    """Send a test over every channel now; ends with code 1 when one did not take it."""
    with desk() as deps:
        settings = deps.settings.alerts
    results = []
    for channel in settings.channels:
        error = fault_of(channel) or try_channel(channel, public_url=settings.public_url)
        results.append({"channel": channel.name, "pages": channel.pages, "taken": not error, "error": error})
    if as_json:
        print_json(results)
    else:
        print_table(
            ["channel", "told of", "", "why not"],
            [
                (
                    one["channel"],
                    "pages alone" if one["pages"] else "everything",
                    "taken" if one["taken"] else "not taken",
                    one["error"],
                )
                for one in results
            ],
            empty="no channel is configured: set ALERT_URLS or SUPPORT_EMAIL",
        )
    if not results or not all(one["taken"] for one in results):
        raise click.exceptions.Exit(1)


@alerts.command("acknowledge")
@click.argument("number", type=click.IntRange(1, 2**63 - 1))
@reason_option
def acknowledge_(number: int, reason: str) -> None:
    """Say that somebody is on it: no reminders until it becomes worse or is over."""
    with desk() as deps, deps.sessions.begin() as session, refusals(AlertRefused):
        acknowledge(session, number, actor=actor(), reason=reason)
    click.echo(f"alert {number} is acknowledged")


def _told(found: Alerts, alert: Alert) -> str:
    notices = found.notices[alert.id]
    waiting = sorted({notice.channel for notice in notices if notice.state == "due"})
    if waiting:
        return f"waits for {', '.join(waiting)}"
    return "told" if alert.notified_at is not None else "to nobody"


def _json(found: Alerts, alert: Alert) -> dict[str, Any]:
    return {
        **{key: getattr(alert, key) for key in KEYS},
        "says": headline(alert.kind, alert.key, alert.facts),
        "notices": [{key: getattr(row, key) for key in NOTICE_KEYS} for row in found.notices[alert.id]],
    }
