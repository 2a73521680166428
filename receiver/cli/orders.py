"""`receiver orders`: list, show, register, correct and cancel orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from receiver.cli.desk import desk
from receiver.cli.output import (
    Refused,
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
from receiver.inbox.cancel_order import NotCancellable, cancel_order
from receiver.inbox.correct_order import NotCorrectable, UnknownOrder, correct_order
from receiver.inbox.find_events import events_of_order
from receiver.inbox.models import WebhookEvent
from receiver.inbox.register_order import OrderFactsDiffer, OrderRefused, register_order
from receiver.logs import quieten
from receiver.money import AmountError, UnknownCurrency, format_amount, parse_money
from receiver.orders.find_orders import OrderDetail, list_orders, order_detail
from receiver.orders.models import STATES, Order
from receiver.reconciliation.ask import Asker
from receiver.reconciliation.demand import check_before_cancel


@click.group()
def orders() -> None:
    """List, show, register, correct and cancel orders."""


class Money(click.ParamType[tuple[int, str]]):
    """``18.60 EUR``: in the currency's own decimals, never more of them."""

    name = "money"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, str]:
        try:
            return parse_money(str(value))
        except (AmountError, UnknownCurrency) as error:
            self.fail(str(error), param, ctx)


@orders.command("list")
@click.option("--state", type=click.Choice(STATES))
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True)
@json_option
def list_(state: str | None, limit: int, as_json: bool) -> None:
    """Orders, newest first."""
    rows: list[Order] = []
    before = None
    with desk() as deps:
        while len(rows) < limit:
            with deps.sessions() as session:
                page = list_orders(session, state=state, before=before, limit=min(1000, limit - len(rows)))
            rows += page.rows
            before = page.next_before
            if before is None:
                break
    if as_json:
        print_json([order_json(order) for order in rows])
        return
    print_table(
        ["reference", "state", "amount", "captured", "refunded", "registered"],
        [
            (
                order.reference,
                order.state,
                format_amount(order.amount_minor, order.currency),
                format_amount(order.captured_minor, order.currency),
                format_amount(order.refunded_minor, order.currency),
                order.created_at,
            )
            for order in rows
        ],
        empty="no such orders" if state else "there are no orders yet",
    )


@orders.command("show")
@click.argument("reference")
@json_option
def show(reference: str, as_json: bool) -> None:
    """One order: state, ledger, changes of state, and every event with its outcome."""
    with desk() as deps, deps.sessions() as session:
        detail = order_detail(session, _reference(reference))
        if detail is None:
            raise Refused(f"there is no order {reference}")
        events = events_of_order(session, detail.order)
    if as_json:
        print_json(_detail_json(detail, events))
    else:
        _print_detail(detail, events)


@orders.command("register")
@click.argument("reference")
@click.option("--amount", type=Money(), required=True, help="Such as '18.60 EUR'.")
@click.option("--source", "sources", multiple=True, help="Which source may pay it; without: any.")
@json_option
def register(reference: str, amount: tuple[int, str], sources: tuple[str, ...], as_json: bool) -> None:
    """Register an order; the same facts again change nothing, other facts are refused."""
    with desk() as deps, refusals(OrderRefused, OrderFactsDiffer):
        _check_sources(deps.settings.sources, sources)
        with deps.sessions.begin() as session:
            registered = register_order(
                session,
                order_id=deps.dice.new_id(),
                reference=reference,
                amount_minor=amount[0],
                currency=amount[1],
                sources=sources or None,
            )
            order, created = registered.order, registered.created
    if as_json:
        print_json({**order_json(order), "created": created})
    else:
        text = "registered" if created else "was registered already, with the same facts"
        click.echo(f"{order.reference} {text}: {format_amount(order.amount_minor, order.currency)}")


@orders.command("correct")
@click.argument("reference")
@click.option("--amount", type=Money(), help="The right amount and currency, such as '18.60 EUR'.")
@click.option("--source", "sources", multiple=True, help="Which source may pay it.")
@click.option("--any-source", is_flag=True, help="Let any source pay it.")
@reason_option
@yes_option
@json_option
def correct(
    reference: str,
    amount: tuple[int, str] | None,
    sources: tuple[str, ...],
    any_source: bool,
    reason: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Correct an order that was registered wrongly, while no money has moved for it."""
    if amount is None and not sources and not any_source:
        raise click.UsageError("say what to correct: --amount, --source or --any-source")
    if sources and any_source:
        raise click.UsageError("--source and --any-source exclude one another")
    changes: dict[str, Any] = {}
    if amount is not None:
        changes["amount_minor"], changes["currency"] = amount
    if sources or any_source:
        changes["sources"] = sources or None
    confirm(f"Correct the order {reference}?", yes)
    with desk() as deps, refusals(UnknownOrder, NotCorrectable, OrderRefused):
        _check_sources(deps.settings.sources, sources)
        with deps.sessions.begin() as session:
            corrected = correct_order(session, _reference(reference), **changes, actor=actor(), reason=reason)
            order = corrected.order
    if as_json:
        replayable = [str(event_id) for event_id in corrected.replayable]
        print_json({**order_json(order), "woken": corrected.woken, "replayable": replayable})
        return
    click.echo(f"{order.reference} is corrected: {format_amount(order.amount_minor, order.currency)}")
    if corrected.woken:
        click.echo(f"{corrected.woken} parked events go on by themselves")
    for event_id in corrected.replayable:
        click.echo(f"refused before; replay it with: receiver inbox retry {event_id} --reason …")


@orders.command("cancel")
@click.argument("reference")
@click.option("--anyway", is_flag=True, help="Even if a provider cannot be asked whether it was paid.")
@reason_option
@yes_option
@json_option
def cancel(reference: str, anyway: bool, reason: str, yes: bool, as_json: bool) -> None:
    """Cancel an order for which no money came; money that comes later is refused."""
    confirm(f"Cancel the order {reference}?", yes)
    quieten()
    said = f"{reason} (whatever the provider says)" if anyway else reason
    with desk() as deps, refusals(UnknownOrder, NotCancellable):
        check_before_cancel(deps, Asker(deps), _reference(reference), anyway=anyway)
        with deps.sessions.begin() as session:
            order = cancel_order(session, reference, actor=actor(), reason=said)
    if as_json:
        print_json(order_json(order))
    else:
        click.echo(f"{order.reference} is {order.state}")


def order_json(order: Order) -> dict[str, Any]:
    """An order's own facts as plain values."""
    return {
        "reference": order.reference,
        "state": order.state,
        "amount_minor": order.amount_minor,
        "currency": order.currency,
        "sources": order.sources,
        "authorized_minor": order.authorized_minor,
        "captured_minor": order.captured_minor,
        "refunded_minor": order.refunded_minor,
        "cancelled_at": order.cancelled_at,
        "created_at": order.created_at,
        "updated_at": order.updated_at,
    }


def _reference(text: str) -> str:
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise Refused(f"there is no order {text!r}")
    return text


def _check_sources(configured: Any, sources: Sequence[str]) -> None:
    unknown = [name for name in sources if configured and name not in configured]
    if unknown:
        raise Refused(f"no such source: {', '.join(unknown)}; there are {', '.join(configured)}")


def _detail_json(detail: OrderDetail, events: Sequence[WebhookEvent]) -> dict[str, Any]:
    ledger = (
        "kind",
        "effect_id",
        "source",
        "transaction_id",
        "amount_minor",
        "currency",
        "event_id",
        "created_at",
    )
    moves = ("from_state", "to_state", "at", "by", "event_id", "reason")
    seen = ("id", "source", "provider_event_id", "event_type", "state", "outcome", "reason", "parked_reason")
    return {
        **order_json(detail.order),
        "ledger": [{key: getattr(line, key) for key in ledger} for line in detail.ledger],
        "transitions": [{key: getattr(move, key) for key in moves} for move in detail.transitions],
        "events": [{key: getattr(event, key) for key in (*seen, "last_error")} for event in events],
    }


def _print_detail(detail: OrderDetail, events: Sequence[WebhookEvent]) -> None:
    order = detail.order
    print_facts(
        [
            ("order", order.reference),
            ("state", order.state),
            ("amount", format_amount(order.amount_minor, order.currency)),
            ("captured", format_amount(order.captured_minor, order.currency)),
            ("refunded", format_amount(order.refunded_minor, order.currency)),
            ("sources", order.sources or "any"),
        ]
    )
    click.echo()
    print_table(
        ["ledger", "amount", "effect", "transaction", "at"],
        [
            (
                line.kind,
                ""
                if line.amount_minor is None
                else format_amount(line.amount_minor, line.currency or order.currency),
                line.effect_id,
                f"{line.source}:{line.transaction_id}",
                line.created_at,
            )
            for line in detail.ledger
        ],
        empty="no money moved yet",
    )
    click.echo()
    print_table(
        ["event", "type", "state", "outcome", "why"],
        [
            (
                event.provider_event_id,
                event.event_type,
                event.state,
                event.outcome or (event.parked_reason and "parked"),
                event.last_error or event.reason or event.parked_reason,
            )
            for event in events
        ],
        empty="no event names this order yet",
    )
