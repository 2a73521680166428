"""Release or reject a refused event: an admin's word against one check of the rules, or for it.

A release sends the event round again with that check waived; the rules decide the rest as ever.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.inbox.acknowledge import acknowledge
from receiver.inbox.event_detail import order_of_event
from receiver.inbox.models import WebhookEvent
from receiver.inbox.replay import RowChanged, UnknownEvent
from receiver.inbox.table import INBOX
from receiver.orders.decide import WAIVABLE
from receiver.providers.payment_event import Kind
from receiver.queue.backoff import GIVE_UP
from receiver.queue.replay import replay
from receiver.queue.table import FAILED


class NotReleasable(Exception):
    """``code``: needs_admin, no_reason, not_refused (it did not fail), never_released (the check is none
    that may be skipped), amount_not_below, body_not_kept, not_open, not_a_conflict, unreadable, known.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def check_release(session: Session, event: WebhookEvent) -> str:
    """The check that a release of this event would waive. Raises NotReleasable with a sentence why not."""
    if event.state != FAILED:
        raise NotReleasable("not_refused", f"the event is {event.state}: only a refused one is released")
    reason = event.reason or ""
    if reason not in WAIVABLE:
        raise NotReleasable("never_released", f"an event refused for {reason} is never released")
    if reason == "amount":
        order = order_of_event(session, event)
        amount = event.amount_minor
        if event.kind != Kind.SUCCEEDED or amount is None or order is None or amount >= order.amount_minor:
            raise NotReleasable(
                "amount_not_below", "only a whole payment below the order's amount is released, as a part"
            )
    return reason


def release_event(
    session: Session,
    event_id: UUID,
    *,
    actor: str,
    reason: str,
    admin: bool,
    row_version: int | None = None,
    give_up: timedelta = GIVE_UP,
    now: datetime | None = None,
) -> WebhookEvent:
    """Let the rules skip exactly the check that refused this event, and send it round again, with the
    audit row. What else the rules find still refuses it.

    ``row_version`` is compared with what the operator saw. Raises UnknownEvent, RowChanged, NotReleasable.
    """
    _check_person(admin, reason)
    event = _seen(session, event_id, row_version)
    check = check_release(session, event)
    refused = {"reason": event.reason, "detail": event.last_error}
    again = replay(
        session,
        INBOX,
        event_id,
        row_version=event.row_version,
        from_states=(FAILED,),
        give_up=give_up,
        now=now,
    )
    if not again:
        raise RowChanged
    session.execute(
        text(
            "UPDATE webhook_events SET waived = ARRAY("
            " SELECT DISTINCT check_ FROM unnest(waived || CAST(:check AS text)) AS check_ ORDER BY 1)"
            " WHERE id = :id"
        ),
        {"id": event_id, "check": check},
    )
    record(
        session,
        actor=actor,
        action="event.release",
        target=f"event:{event_id}",
        criteria={"waived": check, "before": refused},
        reason=reason.strip(),
        now=now,
    )
    session.refresh(event)
    return event


def reject_event(
    session: Session,
    event_id: UUID,
    *,
    actor: str,
    reason: str,
    admin: bool,
    row_version: int | None = None,
    now: datetime | None = None,
) -> WebhookEvent:
    """Say that the refusal stands: the event leaves the list of dead letters, with the audit row.

    Raises UnknownEvent, RowChanged, NotReleasable.
    """
    _check_person(admin, reason)
    event = _seen(session, event_id, row_version)
    if event.state != FAILED:
        raise NotReleasable("not_refused", f"the event is {event.state}: only a refused one is rejected")
    if not acknowledge(session, [event_id], erase=False, now=now):
        raise RowChanged
    # A waiver that did not help must not help later: somebody decided against the event.
    session.execute(text("UPDATE webhook_events SET waived = NULL WHERE id = :id"), {"id": event_id})
    record(
        session,
        actor=actor,
        action="event.reject",
        target=f"event:{event_id}",
        criteria={"reason": event.reason, "detail": event.last_error},
        reason=reason.strip(),
        now=now,
    )
    session.refresh(event)
    return event


def _check_person(admin: bool, reason: str) -> None:
    if not admin:
        raise NotReleasable("needs_admin", "only an admin releases or rejects")
    if not reason.strip():
        raise NotReleasable("no_reason", "say why: the audit row keeps it")


def _seen(session: Session, event_id: UUID, row_version: int | None) -> WebhookEvent:
    event = session.get(WebhookEvent, event_id, populate_existing=True)
    if event is None:
        raise UnknownEvent(event_id)
    if row_version is not None and event.row_version != row_version:
        raise RowChanged
    return event
