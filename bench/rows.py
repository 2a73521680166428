"""Rows by the thousand: what the intake and the worker would have left, written by the database itself."""

from __future__ import annotations

import psycopg

ORDERS = """\
INSERT INTO orders (id, reference, amount_minor, currency, state, created_at, updated_at)
SELECT uuidv7(), 'ord_' || n, 1860, 'EUR', 'pending', now(), now()
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
"""

PENDING = """\
WITH p AS (
  INSERT INTO webhook_payloads (id, payload, headers, received_at)
  SELECT uuidv7(), decode(repeat('6e', %(bytes)s), 'hex'), '[["X-Signature", "v1=0"]]'::jsonb, now()
  FROM generate_series(%(first)s::bigint, %(last)s::bigint)
  RETURNING id
), numbered AS (
  SELECT id AS payload_id, row_number() OVER () - 1 + %(first)s AS n FROM p
)
INSERT INTO webhook_events
  (id, source, provider_event_id, event_type, kind, order_reference, transaction_id, effect_id, amount_minor,
   currency, facts_sha256, payload_sha256, payload_id, state, next_attempt_at, give_up_at, received_at,
   last_received_at, created_at, updated_at)
SELECT uuidv7(), %(source)s, 'evt_' || n, 'payment.succeeded', 'succeeded', 'ord_' || n, 'tx_' || n,
       'tx_' || n, 1860, 'EUR', sha256(n::text::bytea), sha256(n::text::bytea), payload_id, 'pending',
       now() + %(due)s,
       now() + interval '72 hours', now(), now(), now(), now()
FROM numbered
"""

ENDED = """\
INSERT INTO webhook_payloads (id, payload, headers, received_at)
SELECT uuidv7(-interval '1 day'), decode(repeat('6e', 100), 'hex'), '[["X-Signature", "v1=0"]]'::jsonb,
       now() - interval '1 day'
FROM generate_series(%(first)s::bigint, %(last)s::bigint);
INSERT INTO webhook_events
  (id, source, provider_event_id, event_type, kind, order_reference, transaction_id, effect_id, amount_minor,
   currency, facts_sha256, payload_sha256, payload_id, state, outcome, reason, attempts, next_attempt_at,
   give_up_at, received_at, last_received_at, created_at, updated_at, finished_at)
SELECT uuidv7(-interval '1 day'), 'demo', 'end_' || n,
       CASE WHEN n %% 10 = 0 THEN 'payment.failed' ELSE 'payment.succeeded' END,
       CASE WHEN n %% 10 = 0 THEN 'failed' ELSE 'succeeded' END, 'old_' || n, 'old_tx_' || n, 'old_tx_' || n,
       1860, 'EUR', sha256(n::text::bytea), sha256(n::text::bytea), payload_id,
       CASE WHEN n %% 100 = 0 THEN 'failed' WHEN n %% 100 = 1 THEN 'expired' ELSE 'processed' END,
       CASE WHEN n %% 100 = 0 THEN 'amount' WHEN n %% 100 = 1 THEN 'order_unknown' ELSE 'applied' END,
       CASE WHEN n %% 100 = 0 THEN 'amount' WHEN n %% 100 = 1 THEN 'order_unknown' END, 1,
       now() - interval '1 day', now() + interval '2 days', now() - interval '1 day',
       now() - interval '1 day',
       now() - interval '1 day', now() - interval '1 day', now() - interval '1 day'
FROM (SELECT id AS payload_id, row_number() OVER (ORDER BY id) - 1 + %(first)s AS n
      FROM webhook_payloads p WHERE received_at < now() - interval '1 hour'
        AND NOT EXISTS (SELECT 1 FROM webhook_events e WHERE e.payload_id = p.id)) AS numbered;
INSERT INTO webhook_event_attempts (event_id, replay, attempt, started_at, duration_ms, outcome)
SELECT id, 0, 1, received_at, 3, 'applied' FROM webhook_events
WHERE finished_at IS NOT NULL ON CONFLICT DO NOTHING
"""

PIECE = 100_000
"""Rows of one statement, so that progress can be seen and memory stays small."""


def fill_orders(connection: psycopg.Connection, count: int, first: int = 1) -> None:
    """Registered orders, numbered from ``first``."""
    connection.execute(ORDERS, {"first": first, "last": first + count - 1})


def fill_pending(
    connection: psycopg.Connection,
    count: int,
    first: int = 1,
    *,
    source: str = "demo",
    due: str = "0 seconds",
    payload_bytes: int = 1024,
) -> None:
    """Due events, one for each order of the same number; ``due`` is the interval until then."""
    for start in range(first, first + count, PIECE):
        last = min(start + PIECE, first + count) - 1
        values = {"first": start, "last": last, "source": source, "bytes": payload_bytes, "due": due}
        connection.execute(PENDING.replace("%(due)s", "%(due)s::interval"), values)


def fill_ended(connection: psycopg.Connection, count: int, first: int = 1) -> None:
    """Ended events with payload and attempt: 98 of 100 applied, one failed, one expired."""
    for start in range(first, first + count, PIECE):
        last = min(start + PIECE, first + count) - 1
        with psycopg.ClientCursor(connection) as cursor:
            cursor.execute(ENDED, {"first": start, "last": last})


def settle_down(connection: psycopg.Connection) -> None:
    """What autovacuum would have done by now."""
    connection.commit()
    connection.autocommit = True
    connection.execute("VACUUM (ANALYZE)")
    connection.autocommit = False
