"""Replay one event by hand, and say beforehand what that would do."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.inbox.claimed import terms_of
from receiver.inbox.judge import judge
from receiver.inbox.models import WebhookEvent
from receiver.inbox.table import INBOX
from receiver.orders.decisions import Apply, Decision, Ignore, Park, Refuse, Repeat, Stale
from receiver.orders.ledger import apply
from receiver.orders.load import load
from receiver.providers.apis import can_be_asked
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.providers.reading import UNCONFIRMED
from receiver.queue.allowance import A_MINUTE, take_allowance
from receiver.queue.backoff import GIVE_UP
from receiver.queue.replay import replay
from receiver.queue.table import DEAD_LETTERS
from receiver.settings import Settings


class UnknownEvent(Exception):
    """No event of that id."""

    def __init__(self, event_id: UUID) -> None:
        super().__init__(f"no event {event_id}")
        self.code = "event_unknown"
        self.detail = str(self)


class RowChanged(Exception):
    """The row is no longer what the operator saw; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the event changed since you looked at it: look again before you replay it")
        self.code = "row_changed"
        self.detail = str(self)


class TooManyReplays(Exception):
    """Programs replayed this source's events too often in the last minute."""

    def __init__(self, source: str) -> None:
        super().__init__(f"{A_MINUTE} events of {source} were replayed in the last minute: try again later")
        self.code = "too_many_replays"
        self.detail = str(self)


class NotReplayable(Exception):
    """``code``: not_ended (it goes round by itself), processed_needs_admin."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def replay_event(
    session: Session,
    event_id: UUID,
    *,
    row_version: int,
    actor: str,
    reason: str,
    admin: bool = False,
    give_up: timedelta = GIVE_UP,
    now: datetime | None = None,
) -> WebhookEvent:
    """Send one ended event round again, with the audit row; its attempts and deadline start anew.

    Compares ``row_version`` with what the operator saw. Raises UnknownEvent, RowChanged, NotReplayable.
    """
    event = session.get(WebhookEvent, event_id, populate_existing=True)
    if event is None:
        raise UnknownEvent(event_id)
    if event.row_version != row_version:
        raise RowChanged
    if event.state not in INBOX.ends:
        raise NotReplayable("not_ended", f"the event is {event.state}: it goes round by itself")
    if event.state == INBOX.success and not admin:
        raise NotReplayable("processed_needs_admin", "only an admin replays a processed event")
    before = {"state": event.state, "outcome": event.outcome, "reason": event.reason}
    states = INBOX.ends if admin else DEAD_LETTERS
    if not replay(
        session, INBOX, event_id, row_version=row_version, from_states=states, give_up=give_up, now=now
    ):
        raise RowChanged
    record(
        session,
        actor=actor,
        action="event.replay",
        target=f"event:{event_id}",
        criteria={"before": before},
        reason=reason,
        now=now,
    )
    session.refresh(event)
    return event


def replay_by_token(
    session: Session,
    event_id: UUID,
    *,
    token: str,
    reason: str,
    give_up: timedelta = GIVE_UP,
    now: datetime | None = None,
) -> WebhookEvent:
    """Send one dead letter round again for a program: never a processed one, and at most A_MINUTE of a
    source in a minute. Raises UnknownEvent, RowChanged, NotReplayable, TooManyReplays.
    """
    event = session.get(WebhookEvent, event_id, populate_existing=True)
    if event is None:
        raise UnknownEvent(event_id)
    if event.state not in DEAD_LETTERS:
        raise NotReplayable(
            "not_failed", f"the event is {event.state}: only failed and expired ones are replayed"
        )
    if not take_allowance(session, INBOX, event.source, now=now):
        raise TooManyReplays(event.source)
    return replay_event(
        session,
        event_id,
        row_version=event.row_version,
        actor=f"token:{token}",
        reason=reason,
        give_up=give_up,
        now=now,
    )


def facts_of(event: WebhookEvent) -> PaymentEvent:
    """The meaning of a stored event."""
    return PaymentEvent(
        source=event.source,
        kind=Kind(event.kind),
        account=event.account,
        live=event.live,
        order_reference=event.order_reference,
        transaction_id=event.transaction_id,
        effect_id=event.effect_id,
        amount_minor=event.amount_minor,
        currency=event.currency,
        refund_total_minor=event.refund_total_minor,
        sequence=event.sequence,
        occurred_at=event.occurred_at,
        facts_error=event.facts_error,
    )


ASKED_FIRST = "It would be read back from the provider's API, and decided by what that says."


def is_asked_first(settings: Settings, facts: PaymentEvent) -> bool:
    """Whether the provider's API is asked before the event is decided, so that nobody can say now."""
    source = settings.sources.get(facts.source)
    return facts.facts_error == UNCONFIRMED and source is not None and can_be_asked(source)


def preview_replay(session: Session, settings: Settings, event_id: UUID) -> str:
    """One sentence: what working this event now would do. Writes nothing; locks the order briefly,
    so roll the transaction back afterwards. Raises UnknownEvent.
    """
    event = session.scalars(select(WebhookEvent).where(WebhookEvent.id == event_id)).one_or_none()
    if event is None:
        raise UnknownEvent(event_id)
    facts = facts_of(event)
    if is_asked_first(settings, facts):
        return ASKED_FIRST
    book = load(session, [facts])
    order, decision = judge(book, facts, terms_of(settings, event.source), frozenset(event.waived or ()))
    if order is not None and isinstance(decision, Apply):
        applied = apply(order, decision)
        return say(decision, order.reference, applied.from_state, applied.to_state)
    return say(decision)


def say(decision: Decision, reference: str = "", before: str = "", after: str = "") -> str:
    """A decision as a sentence; of an applied one also its order and that order's states."""
    match decision:
        case Apply() if reference and before != after:
            return f"It would be applied: order {reference} {before} → {after}."
        case Apply() if reference:
            return f"It would be applied: order {reference} stays {after}."
        case Repeat():
            return "It would be a repeat: its effect is recorded already, nothing would change."
        case Stale(detail):
            return f"It would be stale: {detail}."
        case Ignore(reason):
            return f"It would be ignored ({reason})."
        case Park(reason, detail):
            return f"It would wait ({reason}): {detail}."
        case Refuse(reason, detail):
            return f"It would be refused again ({reason}): {detail}."
        case Apply():
            return "It would be applied."
