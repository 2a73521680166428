"""What tests of a queue do again and again: claim rows, settle them, read one back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.inbox.models import WebhookEvent, WebhookEventAttempt
from receiver.inbox.table import INBOX
from receiver.queue.claim import claim, claim_lost
from receiver.queue.settle import Settled, Settlement, settle
from tests.factories import NOW

LEASE = timedelta(seconds=60)


@dataclass(frozen=True)
class Taken:
    """One claim and the ids that it took, in the order of the answer."""

    id: UUID
    rows: list[UUID]


def take(session: Session, *, now: datetime = NOW, batch: int = 100, worker: str = "w1") -> Taken:
    """Claim a batch."""
    claim_id = uuid4()
    rows = claim(session, INBOX, ("id",), claim_id=claim_id, worker=worker, batch=batch, lease=LEASE, now=now)
    return Taken(claim_id, [row.id for row in rows])


def take_lost(session: Session, *, now: datetime = NOW) -> Taken:
    """Claim a row that was lost before."""
    claim_id = uuid4()
    rows = claim_lost(session, INBOX, ("id",), claim_id=claim_id, worker="w1", lease=LEASE, now=now)
    return Taken(claim_id, [row.id for row in rows])


def end(session: Session, taken: Taken, *settlements: Settlement, now: datetime = NOW) -> list[Settled]:
    """Settle rows of a claim."""
    return settle(session, INBOX, taken.id, settlements, worker="w1", started_at=now, now=now)


def read(session: Session, row_id: UUID) -> WebhookEvent:
    """The row as it stands in the database."""
    return session.get_one(WebhookEvent, row_id, populate_existing=True)


def attempts_of(session: Session, row_id: UUID) -> Sequence[WebhookEventAttempt]:
    """The row's attempts in their order."""
    query = select(WebhookEventAttempt).where(WebhookEventAttempt.event_id == row_id)
    return session.scalars(query.order_by(WebhookEventAttempt.replay, WebhookEventAttempt.attempt)).all()
