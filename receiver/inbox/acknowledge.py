"""Forget, flush and prune: take failed events out of the list, and erase payloads. Never a key."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.inbox.models import WebhookEvent
from receiver.inbox.replay import NotReplayable, UnknownEvent
from receiver.queue.table import DEAD_LETTERS

_NOW = "coalesce(CAST(:now AS timestamptz), now())"


def forget_event(
    session: Session,
    event_id: UUID,
    *,
    actor: str,
    reason: str,
    erase: bool = False,
    now: datetime | None = None,
) -> None:
    """Acknowledge one dead letter, with the audit row; its key stays, so a late duplicate is still one.

    ``erase`` takes its payload too. Raises UnknownEvent, or NotReplayable for an event that did not fail.
    """
    event = session.get(WebhookEvent, event_id, populate_existing=True)
    if event is None:
        raise UnknownEvent(event_id)
    if event.state not in DEAD_LETTERS:
        raise NotReplayable(
            "not_failed", f"the event is {event.state}: only failed and expired ones are forgotten"
        )
    if not acknowledge(session, [event_id], erase=erase, now=now):
        raise NotReplayable("not_failed", "the event has been sent round again: look at it anew")
    record(
        session,
        actor=actor,
        action="event.forget",
        target=f"event:{event_id}",
        criteria={"erase": erase},
        reason=reason,
        now=now,
    )


def flush_failed(
    session: Session,
    *,
    older_than: timedelta,
    actor: str,
    reason: str,
    erase: bool = False,
    limit: int = 1000,
    now: datetime | None = None,
) -> int:
    """Acknowledge up to ``limit`` dead letters that ended before ``older_than`` ago; returns how many."""
    ids = list(
        session.execute(
            text(
                "SELECT id FROM webhook_events"
                " WHERE state IN ('failed', 'expired') AND acknowledged_at IS NULL"
                f" AND updated_at <= {_NOW} - CAST(:age AS interval)"
                " ORDER BY updated_at, id LIMIT :limit FOR UPDATE SKIP LOCKED"
            ),
            {"age": older_than, "limit": limit, "now": now},
        ).scalars()
    )
    if ids:
        acknowledge(session, ids, erase=erase, now=now)
        record(
            session,
            actor=actor,
            action="event.flush",
            target="inbox",
            criteria={"older_than_seconds": int(older_than.total_seconds()), "erase": erase},
            count=len(ids),
            reason=reason,
            now=now,
        )
    return len(ids)


def prune_payloads(
    session: Session,
    *,
    older_than: timedelta,
    limit: int = 1000,
    open_too: bool = True,
    now: datetime | None = None,
) -> int:
    """Erase up to ``limit`` payloads whose events have all ended and that are older than ``older_than``.

    ``open_too`` False keeps those of dead letters that nobody acknowledged. What was read back goes too.
    Keys, hashes and outcomes stay: a late duplicate is still a duplicate, a conflict still a conflict.
    """
    erased = session.execute(
        text(
            "WITH gone AS (DELETE FROM webhook_payloads WHERE id IN ("
            " SELECT p.id FROM webhook_payloads p"
            f" WHERE p.received_at <= {_NOW} - CAST(:age AS interval)"
            " AND NOT EXISTS (SELECT 1 FROM webhook_events e WHERE e.payload_id = p.id"
            "   AND (e.state IN ('pending', 'in_flight')"
            "     OR (NOT CAST(:open_too AS boolean) AND e.state IN ('failed', 'expired')"
            "         AND e.acknowledged_at IS NULL)))"
            " ORDER BY p.id LIMIT :limit FOR UPDATE SKIP LOCKED) RETURNING id"
            "), fetched AS (UPDATE webhook_fetches SET body = NULL WHERE event_id IN ("
            " SELECT e.id FROM webhook_events e JOIN gone ON e.payload_id = gone.id))"
            " SELECT count(*) FROM gone"
        ),
        {"age": older_than, "limit": limit, "open_too": open_too, "now": now},
    )
    return int(erased.scalar_one())


def acknowledge(session: Session, ids: list[UUID], *, erase: bool, now: datetime | None = None) -> list[UUID]:
    """Take dead letters out of the list; returns those that still were dead. The record is the caller's."""
    # Compared with the state again: an acknowledged row that goes round would fail unseen.
    statement = text(
        f"UPDATE webhook_events SET acknowledged_at = {_NOW}, row_version = row_version + 1"
        " WHERE id = ANY(CAST(:ids AS uuid[])) AND state IN ('failed', 'expired') RETURNING id"
    )
    done = list(session.execute(statement, {"ids": ids, "now": now}).scalars())
    if erase and done:
        # A request's other events keep the payload that they share until each is forgotten.
        session.execute(
            text(
                "DELETE FROM webhook_payloads WHERE id IN"
                " (SELECT payload_id FROM webhook_events WHERE id = ANY(CAST(:ids AS uuid[])))"
                " AND NOT EXISTS (SELECT 1 FROM webhook_events e"
                "   WHERE e.payload_id = webhook_payloads.id AND e.acknowledged_at IS NULL)"
            ),
            {"ids": done},
        )
        session.execute(
            text("UPDATE webhook_fetches SET body = NULL WHERE event_id = ANY(CAST(:ids AS uuid[]))"),
            {"ids": done},
        )
    return done
