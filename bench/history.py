"""A busy service's history, written by the database itself: everything that a page of the desk reads.

The traffic is the same whatever the length: 5,000,000 events are sixty days, 50,000 fourteen hours. What
waits for an operator is the same too: the dead letters of the last 50,000 events; older ones were
acknowledged.
"""

from __future__ import annotations

import psycopg

EVENTS_A_DAY = 5_000_000 / 60

OPEN = 50_000
"""So many of the newest events have their dead letters still open."""

PIECE = 250_000

_SINCE = "(now() - interval '1 day' * %(days)s * (1 - %(share)s * n))"

EVENTS = """\
INSERT INTO webhook_events
  (id, source, provider_event_id, event_type, kind, order_reference, transaction_id, effect_id, amount_minor,
   currency, facts_sha256, payload_sha256, state, outcome, reason, failed_in, acknowledged_at, attempts,
   next_attempt_at, give_up_at, received_at, last_received_at, created_at, updated_at, finished_at)
SELECT uuidv7(at - now()), source, 'evt_' || n,
       CASE WHEN n %% 10 = 0 THEN 'payment.failed' ELSE 'payment.succeeded' END,
       CASE WHEN n %% 10 = 0 THEN 'failed' ELSE 'succeeded' END, 'ord_' || (n + 4) / 5, 'tx_' || (n + 4) / 5,
       'tx_' || (n + 4) / 5, 1860, 'EUR', sha256(n::text::bytea), sha256(n::text::bytea), state, outcome,
       CASE WHEN state <> 'processed' THEN outcome END,
       CASE WHEN outcome = 'internal_error' THEN 'shop.rules:apply' END,
       CASE WHEN state <> 'processed' AND n <= %(settled)s THEN at END, 1, at, at + interval '72 hours', at,
       at, at, at, at
FROM (
  SELECT n, {at} AS at,
         CASE WHEN n %% 10 < 7 THEN 'demo' WHEN n %% 10 < 9 THEN 'lesson' ELSE 'standard' END AS source,
         CASE n %% 200 WHEN 0 THEN 'failed' WHEN 50 THEN 'failed' WHEN 100 THEN 'failed'
           WHEN 150 THEN 'expired' ELSE 'processed' END AS state,
         CASE n %% 200 WHEN 0 THEN 'amount' WHEN 50 THEN 'currency' WHEN 100 THEN 'internal_error'
           WHEN 150 THEN 'order_unknown' WHEN 51 THEN 'stale' ELSE 'applied' END AS outcome
  FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
) AS made
"""

PENDING = """\
INSERT INTO webhook_events
  (id, source, provider_event_id, event_type, kind, order_reference, transaction_id, effect_id, amount_minor,
   currency, facts_sha256, payload_sha256, state, parked_reason, parked_at, attempts, next_attempt_at,
   give_up_at, received_at, last_received_at, created_at, updated_at)
SELECT uuidv7(), 'demo', 'late_' || n, 'payment.succeeded', 'succeeded', 'late_' || n, 'late_tx_' || n,
       'late_tx_' || n, 1860, 'EUR', sha256(n::text::bytea), sha256(n::text::bytea), 'pending',
       'order_unknown', now(), 1, now() + interval '1 hour', now() + interval '72 hours', now(), now(), now(),
       now()
FROM generate_series(1, 2000) AS n
"""

REST = [
    """\
INSERT INTO orders (id, reference, amount_minor, currency, state, authorized_minor, captured_minor,
  created_at, updated_at)
SELECT uuidv7(at - now()), 'ord_' || n, 1860, 'EUR', CASE WHEN n %% 20 = 0 THEN 'failed' ELSE 'paid' END, 0,
       CASE WHEN n %% 20 = 0 THEN 0 ELSE 1860 END, at, at
FROM (SELECT n, {at} AS at FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n) AS made
""",
    """\
INSERT INTO order_transactions (order_id, source, transaction_id, paying, created_at, updated_at)
SELECT id, 'demo', 'tx_' || substr(reference, 5), captured_minor > 0, created_at, created_at FROM orders
""",
    """\
INSERT INTO ledger_entries (order_id, source, transaction_id, kind, effect_id, amount_minor, currency,
  provider_event_id, by, created_at)
SELECT id, 'demo', 'tx_' || substr(reference, 5), 'capture', 'tx_' || substr(reference, 5), 1860, 'EUR',
       'evt_' || substr(reference, 5), 'event', created_at
FROM orders WHERE captured_minor > 0
""",
    """\
INSERT INTO order_transitions (order_id, from_state, to_state, at, by)
SELECT id, 'pending', state, created_at, 'event' FROM orders
""",
    """\
INSERT INTO webhook_event_attempts (event_id, replay, attempt, started_at, duration_ms, outcome)
SELECT id, 0, 1, received_at, 3, 'failed' FROM webhook_events WHERE state IN ('failed', 'expired')
""",
    """\
INSERT INTO webhook_conflicts (event_id, payload_sha256, payload, headers, kind, first_seen_at, last_seen_at,
  state, by, reason)
SELECT id, sha256('other'), '\\x7b7d', '[]', CASE WHEN number %% 2 = 0 THEN 'variant' ELSE 'conflict' END,
       received_at, received_at, CASE WHEN number %% 20 = 1 THEN 'open' WHEN number %% 2 = 0 THEN 'open'
       ELSE 'rejected' END, CASE WHEN number %% 20 NOT IN (1) AND number %% 2 = 1 THEN 'op' END,
       CASE WHEN number %% 20 NOT IN (1) AND number %% 2 = 1 THEN 'why' END
FROM (SELECT id, received_at, row_number() OVER (ORDER BY id) AS number FROM webhook_events
      WHERE event_type = 'payment.failed' AND state IN ('failed', 'expired')) AS numbered
""",
    """\
INSERT INTO webhook_rejections (source, reason, minute, remote_address, length, sha256, skew_seconds, count)
SELECT 'demo', (ARRAY['bad_signature', 'stale', 'missing_signature'])[n %% 3 + 1], date_trunc('minute', at),
       '127.0.' || n %% 256 || '.' || n / 256 %% 256, 100, md5(n::text), 400, 1
FROM (SELECT n, {at} AS at FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n) AS made
ON CONFLICT DO NOTHING
""",
    """\
INSERT INTO operator_actions (at, actor, action, target, reason)
SELECT {at}, 'operator ' || n %% 5, (ARRAY['event.replay', 'event.acknowledge', 'order.correct'])[n %% 3 + 1],
       'event:' || n, 'a reason' FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
""",
    """\
INSERT INTO inbox_minutes (source, minute, result, count, total_ms, buckets)
SELECT source, date_trunc('minute', received_at), CASE WHEN outcome IN ('applied', 'stale') THEN outcome ELSE
       state END, count(*), count(*) * 300, array_fill(count(*), ARRAY[13])
FROM webhook_events WHERE finished_at IS NOT NULL GROUP BY 1, 2, 3
""",
    """\
INSERT INTO inbox_levels (source, minute, waiting, parked, held, dead, oldest_seconds)
SELECT '', date_trunc('minute', now()) - interval '1 minute' * n, 5, 5, 0, 100, 60
FROM generate_series(0, (SELECT extract(epoch FROM max(received_at) - min(received_at))::int / 60
                         FROM webhook_events)) AS n
""",
    """\
INSERT INTO bulk_replays (id, queue, filter, state, counted, done, spread_seconds, by, reason, created_at,
  updated_at, finished_at)
SELECT uuidv7(-interval '1 day'), 'inbox', '{{"state": "dead"}}', 'done', 10, 10, 300, 'operator 1', 'why',
       now(), now(), now() FROM generate_series(1, 500)
""",
]

SHARES = {1: 5, 7: 100, 8: 100}
"""Rows of these statements: one for so many events."""


def fill_history(connection: psycopg.Connection, events: int) -> None:
    """Write the history of so many ended events, and 2,000 parked ones."""
    with psycopg.ClientCursor(connection) as cursor:

        def run(statement: str, count: int) -> None:
            for first in range(1, count + 1, PIECE):
                last = min(first + PIECE - 1, count)
                values = {
                    "first": first,
                    "last": last,
                    "share": 1 / (count + 1),
                    "days": events / EVENTS_A_DAY,
                    "settled": events - OPEN,
                }
                cursor.execute(statement.format(at=_SINCE), values)
                connection.commit()

        run(EVENTS, events)
        cursor.execute(PENDING)
        for number, statement in enumerate(REST, 1):
            if number in SHARES:
                run(statement, events // SHARES[number])
            else:
                cursor.execute(statement.format(at="").replace("%%", "%"))
                connection.commit()
