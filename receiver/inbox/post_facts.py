"""Post what a provider's API says into the inbox: rows without a payload, known by a deterministic id.

They pass the same rules as what came by post. A row that is there already is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.dice import Dice
from receiver.providers.payment_event import PaymentEvent
from receiver.providers.reading import ReadEvent

FACT_COLUMNS = tuple(field.name for field in fields(PaymentEvent) if field.name != "source")

_POST = text(
    "INSERT INTO webhook_events (id, source, provider_event_id, event_type, facts_sha256, payload_sha256,"
    f" {', '.join(FACT_COLUMNS)},"
    " next_attempt_at, give_up_at, created_at, updated_at, received_at, last_received_at)"
    " SELECT :id, :source, :provider_event_id, :event_type, :facts_sha256, :payload_sha256,"
    f" {', '.join(f':{name}' for name in FACT_COLUMNS)}, t.now, t.now + CAST(:give_up AS interval),"
    " t.now, t.now, t.now, t.now"
    " FROM (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now) AS t"
    " ON CONFLICT (source, provider_event_id) DO NOTHING RETURNING id"
)


def fact_values(facts: PaymentEvent) -> dict[str, object]:
    """The facts by the names of their columns."""
    return {name: getattr(facts, name) for name in FACT_COLUMNS} | {"kind": facts.kind.value}


def post_facts(
    session: Session,
    dice: Dice,
    events: Iterable[ReadEvent],
    *,
    give_up: timedelta,
    now: datetime | None = None,
) -> dict[str, UUID]:
    """Insert the events that are not there yet, due at once; returns the new rows' ids by event id.

    In the order of their ids, in which the intake locks its rows too.
    """
    posted: dict[str, UUID] = {}
    for event in sorted(events, key=lambda each: (each.facts.source, each.provider_event_id)):
        values = {
            "id": dice.new_id(),
            "provider_event_id": event.provider_event_id,
            "event_type": event.event_type,
            "facts_sha256": event.facts_sha256,
            "payload_sha256": event.payload_sha256,
            "give_up": give_up,
            "now": now,
            "source": event.facts.source,
            **fact_values(event.facts),
        }
        row_id = session.execute(_POST, values).scalar_one_or_none()
        if row_id is not None:
            posted[event.provider_event_id] = row_id
    return posted
