"""Cancel an order, unless money is held for it or an event of it is still to be worked."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.db import at
from receiver.inbox.correct_order import lock_order, of_order
from receiver.inbox.models import WebhookEvent
from receiver.orders.models import LedgerEntry, Order, OrderTransition


class NotCancellable(Exception):
    """``code``: money_held (an unvoided authorization or a capture), events_waiting."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def cancel_order(
    session: Session, reference: str, *, actor: str, reason: str, now: datetime | None = None
) -> Order:
    """Cancel under the order's lock, with transition and audit row; cancelled already is no fault.

    Raises UnknownOrder or NotCancellable. Money that comes afterwards is refused `order_cancelled`.
    """
    order = lock_order(session, reference)
    if order.cancelled_at is not None:
        return order
    _refuse_if_money_is_held(session, order)
    _refuse_if_events_wait(session, order)
    before = order.state
    order.cancelled_at = at(now)
    order.state = "cancelled"
    order.row_version += 1
    order.updated_at = at(now)
    session.add(
        OrderTransition(
            order_id=order.id,
            from_state=before,
            to_state="cancelled",
            at=at(now),
            by="operator",
            reason=reason,
        )
    )
    record(session, actor=actor, action="order.cancel", target=f"order:{reference}", reason=reason, now=now)
    session.flush()
    session.refresh(order)
    return order


def _refuse_if_money_is_held(session: Session, order: Order) -> None:
    lines = session.execute(
        select(LedgerEntry.kind, LedgerEntry.source, LedgerEntry.transaction_id).where(
            LedgerEntry.order_id == order.id
        )
    ).all()
    voided = {(source, transaction) for kind, source, transaction in lines if kind == "void"}
    for kind, source, transaction in lines:
        if kind == "capture":
            raise NotCancellable("money_held", f"transaction {transaction} captured money: refund it instead")
        if kind == "authorization" and (source, transaction) not in voided:
            raise NotCancellable("money_held", f"transaction {transaction} is authorized: void it first")


def _refuse_if_events_wait(session: Session, order: Order) -> None:
    waits = WebhookEvent.state.in_(("pending", "in_flight"))
    if session.scalar(select(exists().where(of_order(session, order), waits))):
        raise NotCancellable("events_waiting", "an event of this order is still to be worked: try again soon")
