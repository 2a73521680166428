"""`receiver trigger`: plays a payment provider against a running service."""

from __future__ import annotations

import secrets
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from receiver.cli.home import environment, home_of, speaking_settings
from receiver.cli.output import Refused, json_option, print_facts, print_json, refusals
from receiver.cli.trial import DEMO_BOOK
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.providers.registry import UnknownProvider, provider_of
from receiver.settings import Settings, Source
from receiver.simulator import trigger as playing
from receiver.simulator.demo_book import DemoBook
from receiver.simulator.dialect import Dialect
from receiver.simulator.dialects import DIALECTS
from receiver.simulator.order_api import OrderApi, TriggerError
from receiver.simulator.scenarios import ENDS, FAULTS, SEEDED_TIME, Plan, PlannedOrder, Run, plan, run_tag
from receiver.simulator.sender import Sender

DEFAULT_URL = "http://127.0.0.1:8000"


@click.command()
@click.argument("provider_name", metavar="PROVIDER", type=click.Choice(sorted(DIALECTS)))
@click.argument("event")
@click.option("--url", help="The service; without: RECEIVER_URL, as `receiver up` keeps it.")
@click.option("--order", "order_reference", help="Pay this order instead of registering new ones.")
@click.option("--fault", type=click.Choice(FAULTS), help="What goes wrong.")
@click.option("--count", type=click.IntRange(1, 1_000_000), default=1, show_default=True)
@click.option("--rate", type=click.FloatRange(0.1, 100_000), help="At most so many posts a second.")
@click.option("--seed", type=int, help="Repeatable ids: the same run again sends duplicates.")
@click.option("--source", "source_name", help="The source to play; without: the provider's first.")
@click.option("--currency", default="EUR", show_default=True, help="Of the orders that are registered.")
@click.option("--wait", type=click.FloatRange(0, 3600), default=playing.WAIT_SECONDS, show_default=True)
@json_option
def trigger(
    provider_name: str,
    event: str,
    url: str | None,
    order_reference: str | None,
    fault: str | None,
    count: int,
    rate: float | None,
    seed: int | None,
    source_name: str | None,
    currency: str,
    wait: float,
    as_json: bool,
) -> None:
    """Send signed EVENTs of PROVIDER (demo payment.succeeded), and say what became of each.

    Registers the orders that the events need and sends what must come first: payment.refunded sends
    a payment.succeeded before it. A fault strikes the last event of each order.
    """
    dialect = DIALECTS[provider_name]
    kind = dialect.kind_of(event)
    if kind is None:
        raise click.UsageError(f"{provider_name} has no event {event!r}: {', '.join(dialect.types.values())}")
    environ = environment()
    source = _source(speaking_settings(), provider_name, source_name)
    api = OrderApi(url or environ.get("RECEIVER_URL") or DEFAULT_URL, environ.get("RECEIVER_API_TOKEN", ""))
    with refusals(TriggerError, UnknownProvider):
        spoken = provider_of(source)
        if not spoken.is_ready(source):
            raise Refused(f"the source {source.name} has no usable secret here to sign with")
        _check_fault(spoken, fault)
        given = None if order_reference is None else _given(api, order_reference, source.name)
        made = plan(_run(source, spoken, dialect, kind, fault, count, currency.upper(), seed, given))
        sender = Sender(spoken, source)
        try:
            sender.signed(made.posts[0])
        except ValueError as error:
            raise Refused(f"{error}: see docs/providers for what {provider_name} signs with") from error
        lost = _record(environ, source, made)
        with _progress(as_json) as progress:
            report = playing.trigger(
                api,
                sender,
                made,
                rate=rate,
                wait_seconds=wait,
                progress=progress,
            )
    report.notes += lost
    references = list(dict.fromkeys(post.order_reference for post in made.posts))
    if as_json:
        print_json({**report.as_json(), "orders_used": references[:1000]})
    else:
        end = ENDS[kind] if fault is None and not spoken.confirm_by_fetch else None
        _print_report(report, end, references, seed)
        if spoken.confirm_by_fetch:
            click.echo(f"  Events of {provider_name} count only once they are read back from its API.")
    if report.unexpected_count:
        raise click.exceptions.Exit(1)


def _record(environ: Mapping[str, str], source: Source, made: Plan) -> tuple[str, ...]:
    """Let the demo provider record what it sends, and what it does not; notes on the latter."""
    lost = [post for post in made.posts if post.lost]
    book = home_of(environ) / DEMO_BOOK
    if source.provider == "demo" and source.api_url and book.exists():
        bodies = [post.body for post in made.posts if not post.tampered]
        DemoBook(book).record(bodies, datetime.now(UTC))
    elif lost:
        raise Refused("only the demo provider of `receiver up` keeps what it did not send: start that first")
    if not lost:
        return ()
    count = f"{len(lost)} event{'' if len(lost) == 1 else 's'}"
    example = shlex.quote(lost[0].order_reference)
    return (f"{count} not sent, but known at the provider: receiver reconcile --order {example}",)


def _check_fault(spoken: Provider, fault: str | None) -> None:
    """Refuse a fault that this protocol cannot show: nothing would be refused."""
    schemes = getattr(spoken.authentication, "schemes", ())
    stamp = schemes[0].timestamp if schemes else None
    if fault == "tamper" and not {"body", "bt_payload", "Message"} & set(spoken.signed):
        raise Refused(f"{spoken.name} does not sign the body, so a changed byte need not be noticed")
    if (fault == "stale" and (stamp is None or stamp.past is None)) or (
        fault == "future" and (stamp is None or stamp.future is None)
    ):
        raise Refused(f"{spoken.name} keeps no window on that side, so nothing would be refused")


def _run(
    source: Source,
    spoken: Provider,
    dialect: Dialect,
    kind: Kind,
    fault: str | None,
    count: int,
    currency: str,
    seed: int | None,
    given: PlannedOrder | None,
) -> Run:
    if seed is None:
        tag, made_at = secrets.token_hex(4), datetime.now(UTC).replace(microsecond=0)
    else:
        tag = run_tag(seed, source.name, kind, fault, currency, given.reference if given else None)
        made_at = SEEDED_TIME
    return Run(
        source=source.name,
        kind=kind,
        dialect=dialect,
        tag=tag,
        made_at=made_at,
        fault=fault,
        count=count,
        currency=currency,
        account=source.account,
        live=source.live,
        window_seconds=int(source.tolerance.total_seconds()) if source.tolerance else 300,
        accepted=spoken.answers.accepted,
        unverified=spoken.answers.unverified,
        given=given,
    )


def _source(settings: Settings, provider_name: str, source_name: str | None) -> Source:
    of_provider = [s for s in settings.sources.values() if s.provider == provider_name]
    if source_name is not None:
        source = settings.sources.get(source_name)
        if source is None or source.provider != provider_name:
            raise Refused(f"there is no source {source_name!r} of the provider {provider_name}")
        return source
    if not of_provider:
        raise Refused(
            f"no source of the provider {provider_name} is known here: "
            "set RECEIVER_HOME to the home of `receiver up`, or RECEIVER_SOURCES"
        )
    return next((s for s in of_provider if s.name == provider_name), of_provider[0])


def _given(api: OrderApi, reference: str, source_name: str) -> PlannedOrder:
    order = api.order(reference)
    paying = (t for t in order.get("transactions", []) if t.get("paying") and t.get("source") == source_name)
    return PlannedOrder(
        reference,
        int(order["amount_minor"]),
        str(order["currency"]),
        given=True,
        paid_by=next((str(t["transaction_id"]) for t in paying), None),
    )


@contextmanager
def _progress(quiet: bool) -> Iterator[playing.Progress]:
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _what, _done, _all: None
        return
    tasks: dict[str, TaskID] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bars:

        def show(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done)

        yield show


def _print_report(report: playing.Report, end: str | None, references: list[str], seed: int | None) -> None:
    rate = report.posts / report.seconds if report.seconds else 0.0
    named = references[0] if len(references) == 1 else f"{references[0]} … {references[-1]}"
    expected = f" (expected: {end})" if end else ""
    print_facts(
        [
            ("posts", f"{report.posts} in {report.seconds:.1f} s ({rate:.0f} a second)"),
            ("answers", _counts(report.answers)),
            ("events", _counts(report.events) or "none stored"),
            ("orders", f"{_counts(report.orders)}{expected}"),
            ("named", named),
        ]
    )
    for line in (*report.details, *report.notes):
        click.echo(f"  {line}")
    if seed is not None:
        click.echo(f"  The seed {seed} gives the same ids again: a repeat sends duplicates.")
    for line in report.unexpected:
        click.echo(f"not as expected: {line}", err=True)
    more = report.unexpected_count - len(report.unexpected)
    if more > 0:
        click.echo(f"not as expected: {more} more", err=True)


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())
