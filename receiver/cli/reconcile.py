"""`receiver reconcile`: ask the providers now, list what they sent, and say where both sides differ."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.cli.desk import desk
from receiver.cli.output import (
    Refused,
    actor,
    json_option,
    print_facts,
    print_json,
    print_table,
    refusals,
)
from receiver.db import at
from receiver.deps import Deps
from receiver.inbox.correct_order import UnknownOrder
from receiver.logs import quieten
from receiver.reconciliation.ask import Asker, askable
from receiver.reconciliation.catch_up import CatchUpRefused, advance_catch_ups, begin_catch_up
from receiver.reconciliation.check import Checked, check_due
from receiver.reconciliation.demand import check_order
from receiver.reconciliation.models import CatchUp
from receiver.reconciliation.report import Report, drift_report, report_document
from receiver.reconciliation.subjects import make_due

CATCH_UP_KEYS = ("id", "source", "from_at", "to_at", "reached_at", "state", "listed", "missing", "last_error")


class Time(click.ParamType[datetime]):
    """An ISO 8601 time; one without an offset is UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The aware time."""
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail("give a time such as 2026-03-01 or 2026-03-01T12:00:00Z", param, ctx)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@click.command()
@click.option("--order", "reference", help="Ask for this order now.")
@click.option("--source", help="Of this source alone.")
@click.option("--since", type=Time(), help="Ask for the unpaid orders registered from then on.")
@click.option("--until", type=Time(), help="And before then; without: until now.")
@click.option(
    "--catch-up", "catch_up", metavar="SOURCE", help="List what this source sent, and fill the gaps."
)
@click.option("--from", "start", type=Time(), help="Where the list begins.")
@click.option("--to", "end", type=Time(), help="Where it ends; without: now.")
@click.option("--reason", default="", help="Why the events are listed; kept in the audit row.")
@json_option
def reconcile(
    reference: str | None,
    source: str | None,
    since: datetime | None,
    until: datetime | None,
    catch_up: str | None,
    start: datetime | None,
    end: datetime | None,
    reason: str,
    as_json: bool,
) -> None:
    """Compare with the providers' records. Without options: the drift report as it stands.

    Ends with code 1 while anything differs, or where a provider gave no answer.
    """
    if catch_up is not None and start is None:
        raise click.UsageError("--catch-up needs --from")
    quieten()
    with desk() as deps, refusals(UnknownOrder, CatchUpRefused):
        asker = Asker(deps)
        if source is not None and source not in deps.settings.sources:
            raise Refused(f"there is no source {source}")
        if catch_up is not None and start is not None:
            _catch_up(deps, asker, catch_up, start, end, reason, as_json)
        elif reference is not None:
            _one_order(deps, asker, reference, source, as_json)
        else:
            if since is not None:
                _window(deps, asker, source, since, until)
            _report(deps, source, as_json)


def _one_order(deps: Deps, asker: Asker, reference: str, source: str | None, as_json: bool) -> None:
    if "\0" in reference or not reference.isprintable():
        raise Refused(f"there is no order {reference!r}")
    checked = check_order(deps, asker, reference, source=source)
    if as_json:
        print_json([_checked_json(one) for one in checked])
    elif not checked:
        click.echo("no source that may pay this order has an API that can be asked")
    for one in checked if not as_json else ():
        print_facts(
            [
                ("order", one.reference),
                ("source", one.source),
                ("result", one.result.replace("_", " ")),
                ("the API says", one.said),
                ("posted", one.posted),
                ("asked again", one.next_check_at),
            ]
        )
        for difference in one.differences:
            click.echo(f"  {difference.kind}: here {difference.ours}; there {difference.theirs}")
    # What was posted is missing no more: the worker applies it by the rules.
    open_ones = [d for one in checked for d in one.differences if d.kind != "missing" or not one.posted]
    if open_ones or not checked or any(one.result in ("unavailable", "not_offered") for one in checked):
        raise click.exceptions.Exit(1)


def _window(deps: Deps, asker: Asker, source: str | None, since: datetime, until: datetime | None) -> None:
    names = [name for name in askable(deps.settings) if source in (None, name)]
    with deps.sessions.begin() as session:
        end = until or _now(session, deps) + timedelta(seconds=1)
        asked = make_due(session, names, since=since, until=end, now=deps.clock.now())
    done = check_due(deps, asker, seconds=3600.0, limit=asked) if asked else 0
    click.echo(f"asked for {done} of {asked} orders", err=True)


def _now(session: Session, deps: Deps) -> datetime:
    found: datetime = session.execute(select(at(deps.clock.now()))).scalar_one()
    return found


def _report(deps: Deps, source: str | None, as_json: bool) -> None:
    with deps.sessions.begin() as session:
        report = drift_report(session, source=source)
    if as_json:
        print_json(report_document(report))
    else:
        _print_report(report)
    if report.finding_count:
        raise click.exceptions.Exit(1)


def _print_report(report: Report) -> None:
    print_table(
        ["differs", "source", "order", "transaction", "here", "at the provider", "since"],
        [
            (
                one.kind.replace("_", " "),
                one.source,
                one.order_reference,
                one.transaction_id,
                one.ours,
                one.theirs,
                one.opened_at,
            )
            for one in report.findings
        ],
        empty="nothing differs",
    )
    if report.finding_count > len(report.findings):
        click.echo(f"and {report.finding_count - len(report.findings)} more")
    if report.person_count:
        click.echo()
        print_table(
            ["for a person", "source", "state", "registered", "why", "said"],
            [
                (
                    one.reference,
                    one.source,
                    one.state,
                    one.created_at,
                    (one.check.last_result or "").replace("_", " "),
                    one.check.last_said,
                )
                for one in report.for_a_person
            ],
            empty="",
        )


def _catch_up(
    deps: Deps,
    asker: Asker,
    source: str,
    start: datetime,
    end: datetime | None,
    reason: str,
    as_json: bool,
) -> None:
    catch_up_id = deps.dice.new_id()
    with deps.sessions.begin() as session:
        row = begin_catch_up(
            session,
            asker,
            source,
            catch_up_id=catch_up_id,
            start=start,
            end=end or _now(session, deps),
            actor=actor(),
            reason=reason or "by command",
            now=deps.clock.now(),
        )
    row = _followed(deps, asker, row)
    if as_json:
        print_json({key: getattr(row, key) for key in CATCH_UP_KEYS})
    else:
        known = max(row.listed - row.missing, 0)
        click.echo(
            f"{row.listed} events listed: {known} known, {row.missing} were missing and are in the inbox now"
        )
        if row.state != "done":
            click.echo(f"{row.state}: {row.last_error or 'a worker goes on with it'}", err=True)
    if row.state != "done":
        raise click.exceptions.Exit(1)


def _followed(deps: Deps, asker: Asker, row: CatchUp) -> CatchUp:
    """Go on with it here until it is done, or until the provider gives no answer; a worker then goes on."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("listing", total=(row.to_at - row.from_at).total_seconds())
        while row.state == "running" and row.last_error is None:
            advanced = advance_catch_ups(deps, asker, only=row.id, seconds=1.0)
            if advanced is None:
                # A worker is at it: look on.
                time.sleep(0.2)
                with deps.sessions.begin() as session:
                    advanced = session.get_one(CatchUp, row.id)
            row = advanced
            bars.update(task, completed=(row.reached_at - row.from_at).total_seconds())
    return row


def _checked_json(one: Checked) -> dict[str, Any]:
    return {
        "order_reference": one.reference,
        "source": one.source,
        "result": one.result,
        "said": one.said,
        "posted": one.posted,
        "next_check_at": one.next_check_at,
        "differences": [
            {"kind": d.kind, "transaction_id": d.transaction_id, "ours": d.ours, "theirs": d.theirs}
            for d in one.differences
        ],
    }
