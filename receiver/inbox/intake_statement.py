"""The one statement of the intake: upsert events, keep payloads, note variants and conflicts.

`ON CONFLICT … DO UPDATE` tells new (`receipts = 1`) from repeated under any race; payload and conflict
rows hang on its answer in the same statement, so that nothing is ever half stored. An event names
its payload before that is written: the foreign key is checked at the statement's end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from receiver.arrays import Array, Bigints, Blobs, Booleans, Integers, Texts, Times, Uuids
from receiver.providers.payment_event import PaymentEvent

MAX_BODIES = 10
"""Bodies kept of one event's variants and conflicts: a provider that never repeats itself to the
letter must not fill the disk."""

MAX_VARIANT_BODIES = 5
"""Of them those of variants, so that a conflict, which a person must see, still finds room."""

MAX_VARIANTS = 100
MAX_CONFLICTS = 1000
"""Rows of one event's variants and conflicts; what is new beyond them is counted on the event alone."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """One event as it goes into the statement; its id becomes the receipt if the event is new.

    ``flaw`` says which fact could not be read and shows its value; kept as the row's ``last_error``.
    """

    id: UUID
    provider_event_id: str
    event_type: str | None
    facts: PaymentEvent
    facts_sha256: bytes
    payload_sha256: bytes
    payload_id: UUID
    item: int
    key_id: str | None
    flaw: str | None = None


class Payload(NamedTuple):
    """One request's bytes and headers (JSON text of ``[[name, value], …]``)."""

    id: UUID
    payload: bytes
    headers: str


class Receipt(NamedTuple):
    """What the provider is told (``id``) and what it was: new, duplicate, variant or conflict."""

    id: UUID
    source: str
    provider_event_id: str
    result: str


_COLUMNS: tuple[tuple[str, type[Array]], ...] = (
    ("id", Uuids),
    ("source", Texts),
    ("provider_event_id", Texts),
    ("event_type", Texts),
    ("kind", Texts),
    ("order_reference", Texts),
    ("transaction_id", Texts),
    ("effect_id", Texts),
    ("amount_minor", Bigints),
    ("currency", Texts),
    ("refund_total_minor", Bigints),
    ("sequence", Bigints),
    ("account", Texts),
    ("live", Booleans),
    ("occurred_at", Times),
    ("facts_error", Texts),
    ("facts_sha256", Blobs),
    ("payload_sha256", Blobs),
    ("payload_id", Uuids),
    ("item", Integers),
    ("key_id", Texts),
    ("last_error", Texts),
)

_NAMES = ", ".join(name for name, _ in _COLUMNS)

STATEMENT = f"""\
WITH t AS (SELECT coalesce(%(now)s::timestamptz, now()) AS now),
p AS (
  SELECT * FROM unnest(%(payload_ids)s, %(payloads)s, %(headers)s)
    AS p(id, payload, headers)
), e AS (
  SELECT * FROM unnest({", ".join(f"%({name})s" for name, _ in _COLUMNS)})
    WITH ORDINALITY AS e({_NAMES}, position)
), up AS (
  INSERT INTO webhook_events AS w
    ({_NAMES}, next_attempt_at, give_up_at, created_at, updated_at, received_at, last_received_at)
  SELECT {_NAMES}, t.now, t.now + %(give_up)s::interval, t.now, t.now, t.now, t.now
  FROM e, t ORDER BY position
  ON CONFLICT (source, provider_event_id) DO UPDATE SET
    receipts = w.receipts + 1,
    variants = w.variants + CASE WHEN w.payload_sha256 <> excluded.payload_sha256
      AND w.facts_sha256 = excluded.facts_sha256 THEN 1 ELSE 0 END,
    last_received_at = excluded.last_received_at
  RETURNING w.id, w.source, w.provider_event_id, w.payload_id, w.receipts, w.payload_sha256, w.facts_sha256
), pay AS (
  INSERT INTO webhook_payloads (id, payload, headers, received_at)
  SELECT p.id, p.payload, p.headers::jsonb, t.now FROM p, t
  WHERE EXISTS (SELECT 1 FROM up WHERE up.payload_id = p.id AND up.receipts = 1)
  ON CONFLICT (id) DO NOTHING
), other AS (
  SELECT up.id, e.payload_sha256, e.payload_id, l.kind, l.rows, l.bodies
  FROM up JOIN e USING (source, provider_event_id)
    JOIN (VALUES (true, 'variant', {MAX_VARIANTS}, {MAX_VARIANT_BODIES}),
                 (false, 'conflict', {MAX_CONFLICTS}, {MAX_BODIES})) AS l(same, kind, rows, bodies)
      ON l.same = (up.facts_sha256 = e.facts_sha256)
  WHERE up.receipts > 1 AND up.payload_sha256 <> e.payload_sha256
), con AS (
  INSERT INTO webhook_conflicts AS c
    (event_id, payload_sha256, payload, headers, kind, first_seen_at, last_seen_at)
  SELECT o.id, o.payload_sha256,
         CASE WHEN seen.bodies < o.bodies THEN p.payload END,
         CASE WHEN seen.bodies < o.bodies THEN p.headers::jsonb END, o.kind, t.now, t.now
  FROM t, other o JOIN p ON p.id = o.payload_id,
    LATERAL (
      SELECT count(*) AS rows, count(k.payload) AS bodies,
             coalesce(bool_or(k.payload_sha256 = o.payload_sha256), false) AS known
      FROM webhook_conflicts k WHERE k.event_id = o.id
    ) AS seen
  WHERE seen.known OR seen.rows < o.rows
  ON CONFLICT (event_id, payload_sha256) DO UPDATE SET
    count = c.count + 1, last_seen_at = excluded.last_seen_at
)
SELECT up.id, up.source, up.provider_event_id,
  CASE WHEN up.receipts = 1 THEN 'new'
       WHEN up.payload_sha256 = e.payload_sha256 THEN 'duplicate'
       WHEN up.facts_sha256 = e.facts_sha256 THEN 'variant'
       ELSE 'conflict' END AS result
FROM up JOIN e USING (source, provider_event_id) ORDER BY e.position
"""


def write_events(
    connection: psycopg.Connection[Any],
    payloads: Sequence[Payload],
    events: Sequence[NewEvent],
    *,
    give_up: timedelta,
    now: datetime | None = None,
) -> list[Receipt]:
    """Run the statement on a connection in autocommit: when it returns, the events are committed.

    Keys must be unique; the events are sorted by key here, since two statements that lock the same
    rows in different orders deadlock.
    """
    ordered = sorted(events, key=lambda event: (event.facts.source, event.provider_event_id))
    parameters: dict[str, Any] = {"now": now, "give_up": give_up}
    parameters["payload_ids"] = Uuids(payload.id for payload in payloads)
    parameters["payloads"] = Blobs(payload.payload for payload in payloads)
    parameters["headers"] = Texts(payload.headers for payload in payloads)
    rows = zip(*[_row(event) for event in ordered], strict=True)
    for (name, array), values in zip(_COLUMNS, rows, strict=True):
        parameters[name] = array(values)
    return [Receipt(*row) for row in connection.execute(STATEMENT, parameters).fetchall()]


def _row(event: NewEvent) -> tuple[object, ...]:
    facts = event.facts
    return (
        event.id,
        facts.source,
        event.provider_event_id,
        event.event_type,
        str(facts.kind),
        facts.order_reference,
        facts.transaction_id,
        facts.effect_id,
        facts.amount_minor,
        facts.currency,
        facts.refund_total_minor,
        facts.sequence,
        facts.account,
        facts.live,
        facts.occurred_at,
        facts.facts_error,
        event.facts_sha256,
        event.payload_sha256,
        event.payload_id,
        event.item,
        event.key_id,
        event.flaw,
    )
