"""Post what a provider's API said into the inbox: rows like a callback's, marked with where they came from.

They have no payload and a deterministic id, go the way of every event and are judged by the same rules.
What is in the inbox already stays as it is: an event that came as a callback too is one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.arrays import Array, Bigints, Blobs, Booleans, Integers, Texts, Times, Uuids
from receiver.dice import Dice
from receiver.providers.payment_api import KEPT_BODY
from receiver.providers.payment_event import PaymentEvent
from receiver.providers.reading import ReadEvent


@dataclass(frozen=True, slots=True)
class Learnt:
    """One event as an API told it, with the answer that told it; ``body`` None: not to be kept with it."""

    event: ReadEvent
    status: int = 200
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Posted:
    """The row of a learnt event. ``new``: nothing had brought it before. ``state`` is the row's."""

    id: UUID
    source: str
    provider_event_id: str
    new: bool
    state: str
    row_version: int


_FACTS: dict[str, type[Array]] = {
    "kind": Texts,
    "account": Texts,
    "live": Booleans,
    "order_reference": Texts,
    "transaction_id": Texts,
    "effect_id": Texts,
    "amount_minor": Bigints,
    "currency": Texts,
    "refund_total_minor": Bigints,
    "sequence": Bigints,
    "occurred_at": Times,
    "facts_error": Texts,
}
_ROW: dict[str, type[Array]] = {
    "id": Uuids,
    "source": Texts,
    "provider_event_id": Texts,
    "event_type": Texts,
    "facts_sha256": Blobs,
    "payload_sha256": Blobs,
    "last_error": Texts,
    **_FACTS,
}
_NAMES = ", ".join(_ROW)

FACT_COLUMNS = tuple(_FACTS)

_POST = text(
    f"""\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now),
e AS (
  SELECT * FROM unnest({", ".join(f":{name}" for name in (*_ROW, "status", "body"))})
    AS e({_NAMES}, status, body)
), new AS (
  INSERT INTO webhook_events
    ({_NAMES}, origin, next_attempt_at, give_up_at, created_at, updated_at, received_at, last_received_at)
  SELECT {_NAMES}, CAST(:origin AS text), t.now, t.now + CAST(:give_up AS interval),
         t.now, t.now, t.now, t.now
  FROM e, t ORDER BY source, provider_event_id
  ON CONFLICT (source, provider_event_id) DO NOTHING
  RETURNING id, source, provider_event_id
), kept AS (
  INSERT INTO webhook_fetches (event_id, fetched_at, status, body)
  SELECT new.id, t.now, e.status, e.body FROM new JOIN e USING (id), t WHERE e.body IS NOT NULL
)
SELECT id, source, provider_event_id, true, 'pending', 1 FROM new
UNION ALL
SELECT w.id, w.source, w.provider_event_id, false, w.state, w.row_version
FROM e JOIN webhook_events w USING (source, provider_event_id)"""
)


def fact_values(facts: PaymentEvent) -> dict[str, object]:
    """The facts by the names of their columns."""
    return {name: getattr(facts, name) for name in FACT_COLUMNS} | {"kind": facts.kind.value}


def post_facts(
    session: Session,
    learnt: Sequence[Learnt],
    *,
    origin: str | None,
    dice: Dice,
    give_up: timedelta,
    now: datetime | None = None,
) -> list[Posted]:
    """Post the events that are not in the inbox yet; the rows of all of them, new or known.

    ``origin`` is reconcile or catch_up; None: a callback made us ask. Rows are inserted in the order of
    their ids, in which the intake locks its rows too. One that a callback stores in this very moment may
    be missing.
    """
    unique = {(one.event.facts.source, one.event.provider_event_id): one for one in learnt}
    if not unique:
        return []
    parameters: dict[str, Any] = {"now": now, "origin": origin, "give_up": give_up}
    rows = [_values(one, dice) for one in unique.values()]
    for name, array in {**_ROW, "status": Integers, "body": Blobs}.items():
        parameters[name] = array(row[name] for row in rows)
    return [Posted(*row) for row in session.execute(_POST, parameters)]


def _values(one: Learnt, dice: Dice) -> dict[str, object]:
    event = one.event
    return {
        **fact_values(event.facts),
        "id": dice.new_id(),
        "source": event.facts.source,
        "provider_event_id": event.provider_event_id,
        "event_type": event.event_type,
        "facts_sha256": event.facts_sha256,
        "payload_sha256": event.payload_sha256,
        "last_error": event.flaw,
        "status": one.status,
        "body": None if one.body is None else one.body[:KEPT_BODY],
    }
