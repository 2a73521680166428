"""Ask at once: for one order, for what an operator names, before a cancel, or after a source fell silent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.db import at
from receiver.deps import Deps
from receiver.inbox.cancel_order import NotCancellable
from receiver.inbox.correct_order import UnknownOrder
from receiver.orders.find_orders import find_order
from receiver.orders.models import Order
from receiver.reconciliation.ask import Asker, askable
from receiver.reconciliation.catch_up import CatchUpRefused, begin_catch_up
from receiver.reconciliation.check import Checked, check_claimed
from receiver.reconciliation.subjects import claim_order, make_due
from receiver.settings import Settings

SILENCE_OVERLAP = timedelta(minutes=15)


def sources_of(settings: Settings, order: Order, source: str | None = None) -> list[str]:
    """The sources that may pay the order and whose API can be asked."""
    return [
        name
        for name in askable(settings)
        if (order.sources is None or name in order.sources) and source in (None, name)
    ]


def check_order(deps: Deps, asker: Asker, reference: str, *, source: str | None = None) -> list[Checked]:
    """Ask for one order now, at every source that may pay it. Raises UnknownOrder."""
    claim_id = deps.dice.new_id()
    with deps.sessions.begin() as session:
        order = find_order(session, reference)
        if order is None:
            raise UnknownOrder(reference)
        names = sources_of(deps.settings, order, source)
        if not names:
            return []
        subjects = claim_order(session, order.id, names, claim_id=claim_id, now=deps.clock.now())
    return check_claimed(deps, asker, subjects, claim_id)


def ask_soon(
    session: Session,
    settings: Settings,
    *,
    reference: str,
    actor: str,
    now: datetime | None = None,
) -> int:
    """Let a worker ask for one order in its next round, with the audit row; at how many sources."""
    order = find_order(session, reference)
    if order is None:
        raise UnknownOrder(reference)
    names = sources_of(settings, order)
    asked = make_due(session, names, reference=reference, now=now) if names else 0
    record(session, actor=actor, action="order.reconcile", target=f"order:{reference}", count=asked, now=now)
    return asked


def check_before_cancel(
    deps: Deps, asker: Asker, reference: str, *, anyway: bool = False
) -> Sequence[Checked]:
    """Ask before an order is cancelled. Raises UnknownOrder, or NotCancellable where the provider holds
    money for it (``money_at_provider``) or could not say (``provider_unavailable``, unless ``anyway``).
    """
    with deps.sessions.begin() as session:
        order = find_order(session, reference)
        if order is None:
            raise UnknownOrder(reference)
        if order.cancelled_at is not None:
            return []
    checked = check_order(deps, asker, reference)
    if len(checked) < len(sources_of(deps.settings, order)):
        # Another asker took an order over: what it learns is not seen here.
        raise NotCancellable("provider_unavailable", "the provider is being asked at this moment: try again")
    for one in checked:
        if one.holds_money:
            raise NotCancellable("money_at_provider", f"{one.source} holds a payment for it: {one.said}")
    for one in checked:
        if one.result == "unavailable" and not anyway:
            raise NotCancellable(
                "provider_unavailable",
                f"{one.source} does not say whether it was paid ({one.said}): try again,"
                " or cancel it anyway as an admin",
            )
    return checked


def check_source_now(
    session: Session,
    asker: Asker,
    settings: Settings,
    source: str,
    *,
    since: datetime,
    catch_up_id: UUID,
    now: datetime | None = None,
) -> int:
    """After a source fell silent ``since``: its unpaid orders become due, and its events are listed.

    Returns how many orders are asked for.
    """
    if source not in askable(settings):
        return 0
    instant: datetime = session.execute(select(at(now))).scalar_one()
    start = since - SILENCE_OVERLAP
    asked = make_due(session, [source], since=start, until=instant, now=now)
    try:
        begin_catch_up(
            session,
            asker,
            source,
            catch_up_id=catch_up_id,
            start=start,
            end=instant,
            actor="system",
            reason="the source fell silent",
            now=now,
        )
    except CatchUpRefused:
        return asked
    return asked
