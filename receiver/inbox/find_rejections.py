"""Finding rejections: what was refused at the door, newest first, and one with the body that was kept."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased, defer

from receiver.inbox.models import WebhookRejection

LOOK_AT = 5_000
"""Rows that one page may read before it stops."""

MAX_PAGE = 200


class UnknownRejection(Exception):
    """No rejection of that number; rejections are kept for a while only."""

    def __init__(self, rejection_id: int) -> None:
        super().__init__(f"no rejection {rejection_id}")
        self.code = "rejection_unknown"
        self.detail = str(self)


def list_rejections(
    session: Session,
    *,
    source: str | None = None,
    reason: str | None = None,
    with_body: bool = False,
    before: int | None = None,
    limit: int = 50,
) -> Sequence[WebhookRejection]:
    """Refused requests by kind and minute, without their bodies; ``with_body`` gives only those that kept
    one. Looks back over LOOK_AT rows; ``before`` goes on after a page.
    """
    looked_at = select(WebhookRejection).order_by(WebhookRejection.id.desc()).limit(LOOK_AT)
    if before is not None:
        looked_at = looked_at.where(WebhookRejection.id < before)
    row = aliased(WebhookRejection, looked_at.subquery())
    query = select(row).options(defer(row.payload), defer(row.headers)).order_by(row.id.desc())
    if source is not None:
        query = query.where(row.source == source)
    if reason is not None:
        query = query.where(row.reason == reason)
    if with_body:
        query = query.where(row.payload.is_not(None))
    return session.scalars(query.limit(max(1, min(limit, MAX_PAGE)))).all()


def find_rejection(session: Session, rejection_id: int) -> WebhookRejection:
    """One rejection with its body and headers, where they were kept. Raises UnknownRejection."""
    rejection = session.get(WebhookRejection, rejection_id, populate_existing=True)
    if rejection is None:
        raise UnknownRejection(rejection_id)
    return rejection
