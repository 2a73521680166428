"""Bloat: how large tables and indexes become over rounds of fill and prune, beside their live data.

`python -m bench.bloat [--rounds N] [--events N]`: each round is forty days of a service, pruned as the worker
does with its default ages, with PostgreSQL's own autovacuum (looking every second, since forty days pass in
one). At the end the size ÷ that of the same rows written afresh; budget ≤ 1.5.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import UTC, datetime, timedelta

import psycopg

from bench import ground as grounds
from bench.depth import deps_of
from bench.ground import table
from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox.hours import roll_up_hours
from receiver.logs import configure
from receiver.retention.turn import run
from receiver.retention_settings import RetentionSettings

BUDGET = 1.5
ROUND = timedelta(days=40)
TABLES = (
    "webhook_events",
    "webhook_payloads",
    "webhook_event_attempts",
    "webhook_rejections",
    "inbox_minutes",
)

FILL = """\
WITH at AS (SELECT CAST(%(at)s AS timestamptz) AS t), p AS (
  INSERT INTO webhook_payloads (id, payload, headers, received_at)
  SELECT uuidv7(t - now() + n * interval '1 second'), convert_to(repeat(md5(n::text), 32), 'UTF8'),
         '[["X-Signature", "v1=0"]]', t + n * interval '1 second'
  FROM at, generate_series(1, %(events)s) AS n RETURNING id, received_at
), e AS (
  INSERT INTO webhook_events
    (id, source, provider_event_id, event_type, kind, order_reference, transaction_id, effect_id,
     amount_minor, currency, facts_sha256, payload_sha256, payload_id, state, next_attempt_at, give_up_at,
     received_at, last_received_at, created_at, updated_at)
  SELECT uuidv7(received_at - now()), 'demo', 'evt_' || id, 'payment.succeeded', 'succeeded', 'o_' || id,
         'tx_' || id, 'tx_' || id, 1860, 'EUR', sha256(id::text::bytea), sha256(id::text::bytea), id,
         'pending',
         received_at, received_at + interval '72 hours', received_at, received_at, received_at, received_at
  FROM p RETURNING id, received_at
)
INSERT INTO webhook_event_attempts (event_id, replay, attempt, started_at, duration_ms, outcome)
SELECT id, 0, 1, received_at, 3, 'applied' FROM e
"""

CLAIM = """\
UPDATE webhook_events SET state = 'in_flight', attempts = 1, claim_id = id, claimed_at = received_at,
  claimed_until = received_at, claimed_by = 'w' WHERE state = 'pending'
"""
FINISH = """\
UPDATE webhook_events SET state = 'processed', outcome = 'applied', finished_at = received_at,
  claim_id = NULL, claimed_at = NULL, claimed_until = NULL WHERE state = 'in_flight'
"""

REJECTIONS = """\
INSERT INTO webhook_rejections (source, reason, minute, remote_address, body_key, length, count)
SELECT 'demo', 'signature', date_trunc('minute', CAST(%(at)s AS timestamptz)), '127.0.0.1', n::text, 9, 1
FROM generate_series(1, %(events)s / 10) AS n
"""
MINUTES = """\
INSERT INTO inbox_minutes (source, minute, result, count, total_ms, buckets)
SELECT 'demo', date_trunc('minute', CAST(%(at)s AS timestamptz)) + n * interval '1 minute', 'applied', 1, 1,
       array_fill(1::bigint, ARRAY[13])
FROM generate_series(1, %(events)s / 4) AS n
"""

BATCH = 100
"""Events that come, are claimed and are finished together, as the worker does it."""

SIZES = """\
SELECT c.relname, c.relkind, pg_relation_size(c.oid) FROM pg_class c
LEFT JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relname = ANY(%(tables)s)
  OR i.indrelid IN (SELECT oid FROM pg_class WHERE relname = ANY(%(tables)s))
"""


def sizes(connection: psycopg.Connection) -> dict[str, int]:
    """Bytes of each table and index."""
    rows = connection.execute(SIZES, {"tables": list(TABLES)}).fetchall()
    return {name: size for name, _kind, size in rows}


def play(deps: Deps, url: str, clock: FixedClock, rounds: int, events: int) -> None:
    """Fill, work and prune, round by round."""
    for number in range(1, rounds + 1):
        with psycopg.connect(url, autocommit=True) as connection:
            for batch in range(0, events, BATCH):
                at = clock.at + timedelta(minutes=batch)
                connection.execute(FILL, {"at": at, "events": min(BATCH, events - batch)})
                connection.execute(CLAIM)
                connection.execute(FINISH)
            connection.execute(REJECTIONS, {"at": clock.at, "events": events})
            connection.execute(MINUTES, {"at": clock.at, "events": events})
        clock.move(ROUND)
        while roll_up_hours(deps):
            pass
        ran = run(deps, None)
        time.sleep(3)  # autovacuum's turn: the bench's time is not the service's
        print(f"round {number}: {ran}", flush=True)


def main() -> None:
    """Play, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--events", type=int, default=10_000)
    args = parser.parse_args()
    with grounds.ground() as ground:
        print(f"\n{grounds.machine()}\n", flush=True)
        url = ground.database("bloat", migrated=True)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
            connection.execute("SELECT pg_reload_conf()")
        os.dup2(os.open(ground.folder / "bloat.log", os.O_WRONLY | os.O_CREAT), sys.stderr.fileno())
        configure()
        clock = FixedClock(datetime.now(UTC) - args.rounds * ROUND)
        made = deps_of(ground, url)
        settings = made.settings
        deps = Deps.build(
            type(settings)(database_url=url, retention=RetentionSettings(archive_url="none")), clock=clock
        )
        play(deps, url, clock, args.rounds, args.events)
        with psycopg.connect(url, autocommit=True) as connection:
            grown = sizes(connection)
            for name in TABLES:
                connection.execute(f"VACUUM FULL {name}")
            fresh = sizes(connection)
        lines = [line(name, grown[name], fresh[name]) for name in sorted(grown) if fresh[name] >= 64 * 1024]
        lines.append(line("together", sum(grown.values()), sum(fresh.values())))
        print("\n" + table(["table or index", "KiB", "written afresh, KiB", "ratio", ""], lines))


def line(name: str, grown: int, fresh: int) -> list[str]:
    """One line of the table."""
    share = grown / fresh
    over = "" if share <= BUDGET else "over"
    return [name, f"{grown / 1024:,.0f}", f"{fresh / 1024:,.0f}", f"{share:.2f}", over]


if __name__ == "__main__":
    main()
