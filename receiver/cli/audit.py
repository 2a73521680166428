"""`receiver audit`: the record of what people, programs and the system did."""

from __future__ import annotations

import json

import click

from receiver.accounts.actions import list_actions
from receiver.cli.desk import desk
from receiver.cli.output import json_option, print_json, print_table

KEYS = ("id", "at", "actor", "action", "target", "criteria", "count", "reason")


@click.command()
@click.option("--actor", help="By this person, such as ada or cli:root.")
@click.option("--action", help="Of this kind, such as bulk_replay.start.")
@click.option("--target", help="On this row, such as event:<receipt>.")
@click.option("--before", type=click.IntRange(1), help="Before this number: goes on after a page.")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
@json_option
def audit(
    actor: str | None, action: str | None, target: str | None, before: int | None, limit: int, as_json: bool
) -> None:
    """Acts, newest first."""
    asked = {"actor": actor, "action": action, "target": target}
    for name, value in asked.items():
        if value is not None and not value.isprintable():
            raise click.UsageError(f"--{name} has no control characters")
    with desk() as deps, deps.sessions() as session:
        rows = list_actions(session, before, limit, **asked)
    if as_json:
        print_json([{key: getattr(row, key) for key in KEYS} for row in rows])
        return
    print_table(
        ["number", "at", "who", "did", "to", "rows", "why", "how"],
        [
            (
                row.id,
                row.at,
                row.actor,
                row.action,
                row.target,
                row.count,
                row.reason,
                "" if row.criteria is None else json.dumps(row.criteria, ensure_ascii=False),
            )
            for row in rows
        ],
        empty="no such acts",
    )
