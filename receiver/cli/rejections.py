"""`receiver rejections`: refused requests by source and reason, and the bodies that were kept."""

from __future__ import annotations

import sys

import click

from receiver.cli.desk import desk
from receiver.cli.output import Refused, json_option, print_facts, print_json, print_table, refusals
from receiver.inbox.find_rejections import UnknownRejection, find_rejection, list_rejections
from receiver.inbox.reasons import rejection_means

KEYS = (
    "id",
    "source",
    "reason",
    "minute",
    "remote_address",
    "count",
    "length",
    "sha256",
    "skew_seconds",
    "detail",
)


@click.group()
def rejections() -> None:
    """See what was refused at the door, and why."""


@rejections.command("list")
@click.option("--source", help="Of this source.")
@click.option("--code", help="With this reason code, such as signature.")
@click.option("--body", "with_body", is_flag=True, help="Only authentic ones whose body was kept.")
@click.option("--before", type=click.IntRange(1), help="Before this number: goes on after a page.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@json_option
def list_(
    source: str | None, code: str | None, with_body: bool, before: int | None, limit: int, as_json: bool
) -> None:
    """Rejections, newest first: each counts one kind of request of one minute."""
    for name, value in (("source", source), ("code", code)):
        if value is not None and not value.isprintable():
            raise click.UsageError(f"--{name} has no control characters")
    with desk() as deps, deps.sessions() as session:
        rows = list_rejections(
            session, source=source, reason=code, with_body=with_body, before=before, limit=limit
        )
        if as_json:
            print_json([{key: getattr(row, key) for key in KEYS} for row in rows])
            return
    print_table(
        ["number", "minute", "source", "reason", "times", "from", "skew", "means"],
        [
            (
                row.id,
                row.minute,
                row.source,
                row.reason,
                row.count,
                row.remote_address,
                "" if row.skew_seconds is None else f"{row.skew_seconds} s",
                rejection_means(row.reason),
            )
            for row in rows
        ],
        empty="no such rejections",
    )


@rejections.command("show")
@click.argument("number", type=click.IntRange(1, 2**63 - 1))
@click.option("--payload", is_flag=True, help="Write the kept bytes of the body to standard output.")
@json_option
def show(number: int, payload: bool, as_json: bool) -> None:
    """One rejection; an authentic body that could not be read was kept (up to 64 KiB)."""
    with desk() as deps, deps.sessions() as session, refusals(UnknownRejection):
        row = find_rejection(session, number)
    if payload:
        if row.payload is None:
            raise Refused("of this rejection no body was kept")
        sys.stdout.buffer.write(row.payload)
        return
    if as_json:
        body = None if row.payload is None else row.payload.decode("utf-8", "replace")
        print_json({**{key: getattr(row, key) for key in KEYS}, "headers": row.headers, "payload": body})
        return
    print_facts([(key, getattr(row, key)) for key in KEYS])
    print_facts([("means", rejection_means(row.reason)), ("body kept", "yes" if row.payload else "no")])
