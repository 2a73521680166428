"""Renew: a claim that goes on longer moves its own end."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.queue.table import QueueTable


def renew(
    session: Session,
    table: QueueTable,
    claim_id: UUID,
    row_ids: list[UUID],
    *,
    lease: timedelta,
    now: datetime | None = None,
) -> set[UUID]:
    """Move ``claimed_until`` of the rows that are still the claim's; returns their ids."""
    statement = text(
        f"UPDATE {table.table} SET claimed_until = coalesce(CAST(:now AS timestamptz), now())"
        " + CAST(:lease AS interval)"
        " WHERE id = ANY(CAST(:ids AS uuid[])) AND state = 'in_flight' AND claim_id = :claim_id RETURNING id"
    )
    parameters = {"ids": row_ids, "claim_id": claim_id, "lease": lease, "now": now}
    return set(session.execute(statement, parameters).scalars())
