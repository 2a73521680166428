"""Orders: the list, one order with its ledger and every event, its correction and cancelling."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, flash, redirect, render_template, request

from receiver.inbox.cancel_order import NotCancellable, cancel_order
from receiver.inbox.correct_order import NotCorrectable, UnknownOrder, correct_order
from receiver.inbox.filter import FilterError, check_text
from receiver.inbox.find_events import events_of_order
from receiver.inbox.register_order import OrderRefused
from receiver.money import parse_amount
from receiver.orders.find_orders import OrderDetail, list_orders, order_detail
from receiver.orders.models import STATES
from receiver.reconciliation.ask import Asker
from receiver.reconciliation.demand import check_before_cancel, sources_of
from receiver.reconciliation.report import checks_of, findings_of
from receiver.web.access import needs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.forms import page_before, query_text, reason_field, text_field
from receiver.web.wording import order_url

blueprint = Blueprint("orders", __name__)


@blueprint.get("/orders")
def index() -> Any:
    """Orders by state or exact reference, newest first."""
    state, reference = query_text("state"), query_text("reference")
    if state is not None and state not in STATES:
        raise FilterError("state", f"state is one of {', '.join(STATES)}")
    with transaction() as session:
        page = list_orders(session, state=state, text=reference, before=page_before())
    query = {name: value for name, value in (("state", state), ("reference", reference)) if value}
    return render_template("orders.html", page=page, query=query, states=STATES)


@blueprint.get("/orders/<path:reference>")
def show(reference: str) -> Any:
    """One order."""
    return _shown(reference)


@blueprint.get("/order")
def by_query() -> Any:
    """One order whose reference cannot stand in a path (`..`, a leading slash)."""
    return _shown(request.args.get("reference", ""))


def _shown(reference: str) -> Any:
    _check_reference(reference)
    with transaction() as session:
        detail = order_detail(session, reference)
        if detail is None:
            abort(404, "No order of this reference is registered.")
        events = events_of_order(session, detail.order)
        checks = checks_of(session, detail.order.id)
        findings = findings_of(session, reference)
    return render_template(
        "order.html",
        detail=detail,
        order=detail.order,
        events=events,
        checks=checks,
        findings=findings,
        askable=sources_of(current_deps().settings, detail.order),
        cancellable=_cancellable(detail),
        sources=sorted(current_deps().settings.sources),
    )


@blueprint.post("/order/correct")
@needs("admin")
def correct() -> Any:
    """Correct the facts of an order whose ledger is empty."""
    reference, reason = request.form.get("reference", ""), reason_field()
    _check_reference(reference)
    currency = text_field("currency").upper()
    try:
        amount_minor = parse_amount(text_field("amount"), currency)
        sources = tuple(request.form.getlist("sources")) or None
        for source in sources or ():
            check_text("sources", source)
        with transaction() as session:
            corrected = correct_order(
                session,
                reference,
                amount_minor=amount_minor,
                currency=currency,
                sources=sources,
                actor=actor(),
                reason=reason,
                now=statement_time(),
            )
    except UnknownOrder:
        abort(404, "No order of this reference is registered.")
    except (NotCorrectable, OrderRefused) as refusal:
        flash(f"Not corrected: {refusal.detail}.", "bad")
    except FilterError:
        raise
    except ValueError as error:
        flash(f"Not corrected: {error}.", "bad")
    else:
        flash(_corrected(corrected.woken, len(corrected.replayable)), "good")
    return redirect(order_url(reference), 303)


def _corrected(woken: int, replayable: int) -> str:
    said = "Corrected."
    if woken:
        said += f" {woken} parked event{'' if woken == 1 else 's'} woken."
    if replayable:
        said += f" {replayable} refused event{'' if replayable == 1 else 's'} may be replayed: see below."
    return said


@blueprint.post("/order/cancel")
@needs("admin")
def cancel() -> Any:
    """Cancel an order that holds no money and expects none."""
    reference, reason = request.form.get("reference", ""), reason_field()
    _check_reference(reference)
    deps, anyway = current_deps(), request.form.get("anyway") == "1"
    try:
        check_before_cancel(deps, Asker(deps), reference, anyway=anyway)
        with transaction() as session:
            cancel_order(
                session,
                reference,
                actor=actor(),
                reason=f"{reason} (whatever the provider says)" if anyway else reason,
                now=statement_time(),
            )
    except UnknownOrder:
        abort(404, "No order of this reference is registered.")
    except NotCancellable as refusal:
        flash(f"Not cancelled: {refusal.detail}.", "bad")
    else:
        flash("Cancelled. Money that still comes for it is refused and shown.", "good")
    return redirect(order_url(reference), 303)


def _check_reference(reference: str) -> None:
    try:
        check_text("reference", reference)
    except FilterError:
        abort(404, "No order of this reference is registered.")
    if not reference:
        abort(404, "No order of this reference is registered.")


def _cancellable(detail: OrderDetail) -> bool:
    return detail.order.cancelled_at is None and detail.order.captured_minor == 0
