"""`receiver inbox`: what `queue:failed` and its kin are in Laravel, for the events of this inbox.

Reading commands are here; the ones that change rows are in ``inbox_acts`` and hang on this group.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from receiver.cli.desk import desk, find_one_event
from receiver.cli.output import Refused, json_option, print_facts, print_json, print_table
from receiver.deps import Deps
from receiver.inbox.event_detail import EventDetail, find_event
from receiver.inbox.filter import DEAD, STATES, Filter, FilterError
from receiver.inbox.find_events import list_events
from receiver.inbox.models import WebhookEvent
from receiver.inbox.readings import read_status
from receiver.inbox.waiting import waits_for
from receiver.money import format_amount

Command = TypeVar("Command", bound=Callable[..., Any])

PAGE = 200
EVENT_KEYS = (
    "id",
    "source",
    "provider_event_id",
    "event_type",
    "kind",
    "state",
    "outcome",
    "reason",
    "parked_reason",
    "last_error",
    "order_reference",
    "transaction_id",
    "effect_id",
    "amount_minor",
    "currency",
    "attempts",
    "replays",
    "receipts",
    "received_at",
    "next_attempt_at",
    "give_up_at",
    "finished_at",
    "acknowledged_at",
    "waits_for",
)


@click.group()
def inbox() -> None:
    """See, replay and clear events; pause and resume sources."""


def filter_options(command: Command) -> Command:
    """Add the filter of the pages: the same names, the same meaning."""
    for name, text in reversed(
        (
            ("--source", "Of this source."),
            ("--code", "With this reason code, such as amount."),
            ("--outcome", "With this outcome."),
            ("--type", "Of this event type."),
            ("--order", "Of this order reference."),
            ("--transaction", "Of this provider transaction."),
            ("--id", "With this provider event id, or its beginning and a *."),
            ("--place", "Whose last attempt broke there in our code (module:function); - for nowhere."),
            ("--from", "Received at or after this time, such as 2026-03-01T12:00Z."),
            ("--to", "Received before this time."),
        )
    ):
        command = click.option(name, ASKED + FIELDS[name], help=text)(command)
    return command


ASKED = "asked_"
"""Begins the parameter names of the filter's options: an act's own ``reason`` is another thing."""

FIELDS = {
    "--source": "source",
    "--code": "reason",
    "--outcome": "outcome",
    "--type": "event_type",
    "--order": "order_reference",
    "--transaction": "transaction_id",
    "--id": "text",
    "--place": "place",
    "--from": "from_",
    "--to": "to",
}
"""The options of the filter, and the fields of ``Filter`` that they ask."""


def read_filter(asked: dict[str, Any]) -> Filter:
    """The filter of a command's options. Ends the command with a sentence where it cannot be asked."""
    try:
        return Filter.parse({key.removeprefix(ASKED).rstrip("_"): v for key, v in asked.items() if v})
    except FilterError as error:
        raise click.UsageError(str(error)) from error


def find_events(deps: Deps, wanted: Filter, limit: int) -> list[WebhookEvent]:
    """Up to ``limit`` events, newest first, over as many pages as that takes."""
    rows: list[WebhookEvent] = []
    before = None
    while len(rows) < limit:
        with deps.sessions() as session:
            page = list_events(session, wanted, before=before, limit=min(PAGE, limit - len(rows)))
        rows += page.rows
        before = page.next_before
        if before is None:
            break
    return rows


@inbox.command("list")
@click.option("--state", type=click.Choice((*STATES, DEAD)))
@click.option("--parked", is_flag=True, help="Only events that wait for an order or an earlier event.")
@click.option("--expires-before", help="Only pending events whose deadline lies before this time.")
@filter_options
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True)
@json_option
def list_(limit: int, as_json: bool, parked: bool, **asked: Any) -> None:
    """Events, newest first."""
    wanted = read_filter({**asked, "parked": "1" if parked else ""})
    with desk() as deps:
        rows = find_events(deps, wanted, limit)
    _print_events(rows, as_json, "no such events")


@inbox.command("failed")
@filter_options
@click.option("--acknowledged", is_flag=True, help="Also those taken out of the list (forget, flush).")
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True)
@json_option
def failed(limit: int, as_json: bool, acknowledged: bool, **asked: Any) -> None:
    """Dead letters (failed and expired) that nobody acknowledged, newest first."""
    wanted = read_filter({**asked, "state": DEAD})
    with desk() as deps:
        rows = find_events(deps, wanted, limit if acknowledged else 1_000_000)
    if not acknowledged:
        rows = [row for row in rows if row.acknowledged_at is None][:limit]
    _print_events(rows, as_json, "no dead letters")


@inbox.command("show")
@click.argument("event")
@click.option("--payload", is_flag=True, help="Write the exact bytes of the payload to standard output.")
@json_option
def show(event: str, payload: bool, as_json: bool) -> None:
    """One event, by its receipt or the provider's event id: facts, attempts, conflicts."""
    with desk() as deps, deps.sessions() as session:
        detail = find_event(session, find_one_event(session, event).id)
    if detail is None:
        raise Refused(f"there is no event {event}")
    if payload:
        if detail.payload is None:
            raise Refused("the payload of this event was erased")
        sys.stdout.buffer.write(detail.payload.payload)
    elif as_json:
        print_json(_detail_json(detail))
    else:
        _print_detail(detail)


@inbox.command("monitor")
@click.option("--max-pending", type=click.IntRange(0), default=1000, show_default=True)
@click.option("--max-age", type=click.IntRange(0), help="Seconds that the oldest pending event may wait.")
@click.option("--max-expiring", type=click.IntRange(0), help="Events that may soon expire.")
@click.option("--max-failed", type=click.IntRange(0), help="Dead letters that may stand unacknowledged.")
@json_option
def monitor(
    max_pending: int, max_age: int | None, max_expiring: int | None, max_failed: int | None, as_json: bool
) -> None:
    """Compare the backlog with thresholds; ends with code 1 when one is passed. Held events do not count."""
    with desk() as deps, deps.sessions() as session:
        status = read_status(
            session,
            stale=deps.settings.worker_stale,
            sources=deps.settings.sources,
            soon=deps.settings.soon,
        )
    held = sum(count.number for count in status.held.values())
    oldest = status.oldest_pending_at
    age = 0 if oldest is None else int((status.now - oldest).total_seconds())
    readings = [
        ("pending", status.pending_total.number - held, max_pending),
        ("oldest_pending_seconds", age, max_age),
        ("expiring", sum(soon.count for soon in status.expiring), max_expiring),
        ("failed", status.dead_total.number, max_failed),
    ]
    passed = [name for name, value, most in readings if most is not None and value > most]
    if as_json:
        print_json(
            {
                **{name: value for name, value, _ in readings},
                "held": held,
                "in_flight": status.in_flight.number,
                "workers_alive": status.workers_alive,
                "passed": passed,
            }
        )
    else:
        print_table(
            ["reading", "value", "at most", ""],
            [(n, v, m, "passed" if n in passed else "") for n, v, m in readings],
            empty="",
        )
    if passed:
        raise click.exceptions.Exit(1)


def _print_events(rows: Sequence[WebhookEvent], as_json: bool, empty: str) -> None:
    if as_json:
        print_json([_event_json(row) for row in rows])
        return
    print_table(
        ["receipt", "source", "provider event id", "type", "state", "why", "order", "received"],
        [
            (
                row.id,
                row.source,
                row.provider_event_id,
                row.event_type,
                row.state if row.state != "processed" else row.outcome,
                row.reason or row.parked_reason,
                row.order_reference,
                row.received_at,
            )
            for row in rows
        ],
        empty=empty,
    )


def _event_json(event: WebhookEvent) -> dict[str, Any]:
    waits = waits_for(event)
    known = {"waits_for": None if waits is None else waits.text}
    return {key: known.get(key, getattr(event, key, None)) for key in EVENT_KEYS}


def _detail_json(detail: EventDetail) -> dict[str, Any]:
    attempts = ("replay", "attempt", "started_at", "duration_ms", "outcome", "error_code", "error", "worker")
    conflicts = ("kind", "state", "count", "first_seen_at", "last_seen_at", "by", "reason")
    return {
        **_event_json(detail.event),
        "headers": None if detail.payload is None else detail.payload.headers,
        "payload": None if detail.payload is None else detail.payload.payload.decode("utf-8", "replace"),
        "attempts_made": [{key: getattr(row, key) for key in attempts} for row in detail.attempts],
        "conflicts": [{key: getattr(row, key) for key in conflicts} for row in detail.conflicts],
        "read_back": [
            {
                "fetched_at": row.fetched_at,
                "status": row.status,
                "body": None if row.body is None else row.body.decode("utf-8", "replace"),
            }
            for row in detail.fetches
        ],
    }


def _print_detail(detail: EventDetail) -> None:
    event = detail.event
    amount, waits = "", waits_for(event)
    if event.amount_minor is not None and event.currency:
        amount = format_amount(event.amount_minor, event.currency)
    print_facts(
        [
            ("receipt", event.id),
            ("event", f"{event.source}:{event.provider_event_id}"),
            ("type", event.event_type),
            ("order", detail.order_reference),
            ("transaction", event.transaction_id),
            ("amount", amount),
            ("state", event.state),
            ("outcome", event.outcome),
            ("why", event.last_error or event.reason or event.parked_reason),
            ("waits for" if event.state == "pending" else "waited for", waits.text if waits else None),
            ("then", waits.command if waits else None),
            ("tried until", f"{event.give_up_at:%Y-%m-%d %H:%M:%SZ}" if event.finished_at is None else None),
            ("received", f"{event.received_at:%Y-%m-%d %H:%M:%SZ}, {event.receipts} times"),
            *(
                ("read back", f"{row.fetched_at:%Y-%m-%d %H:%M:%SZ}, the API answered {row.status}")
                for row in detail.fetches
            ),
        ]
    )
    click.echo()
    print_table(
        ["attempt", "started", "ms", "outcome", "error"],
        [
            (f"{row.replay}.{row.attempt}", row.started_at, row.duration_ms, row.outcome, row.error)
            for row in detail.attempts
        ],
        empty="no attempt ended yet",
    )
