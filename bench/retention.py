"""Retention: what archiving and erasing costs the intake. `python -m bench.retention [--rows N]`

The shipped web server stands on a database with ROWS payloads that are old enough. Rounds alternate: in every
second one `receiver retention run` archives to a folder and erases, and is killed at the round's end; the
ratio of the intake's rates is the figure.
"""

from __future__ import annotations

import argparse
import contextlib
import sys

import psycopg

from bench import ground as grounds
from bench import rows
from bench.ground import SECRET, Ground, ratio, spread, table
from bench.load import drive
from bench.replay import CONNECTIONS, OURS

RUN = ["-c", "from receiver.cli.main import main; main()", "retention", "run", "--yes"]


def filled(ground: Ground, count: int) -> str:
    """A database of ended events a hundred days old."""
    url = ground.database("retention", migrated=True)
    with psycopg.connect(url) as connection:
        rows.fill_orders(connection, count)
        rows.fill_ended(connection, count)
        connection.execute("UPDATE webhook_payloads SET received_at = now() - interval '100 days'")
        rows.settle_down(connection)
    return url


def round_of(ground: Ground, url: str, seconds: float, *, during: bool) -> tuple[float, float]:
    """The intake's rate and p99 (ms), with retention beside it or not."""
    ground.checkpoint()
    environment = ground.environment(url, ARCHIVE_URL=str(ground.folder / "archive"))
    with ground.web("web", OURS, environment) as (port, _web), contextlib.ExitStack() as beside:
        if during:
            beside.enter_context(ground.process("retention", RUN, environment))
        load, _ = drive(port, secret=SECRET, connections=CONNECTIONS, seconds=seconds)
    with psycopg.connect(url) as connection:
        # Killed in its turn, it would hold it for its lease.
        connection.execute("DELETE FROM retention_turns")
    if load.broken or load.accepted != sum(load.statuses.values()):
        raise SystemExit(f"not all accepted: {load.statuses}, {load.broken} broken")
    return load.rate, load.percentile_ms(0.99)


def payloads(url: str) -> int:
    """Old payloads that are still in the database."""
    with psycopg.connect(url) as connection:
        query = "SELECT count(*) FROM webhook_payloads WHERE received_at < now() - interval '90 days'"
        return int(connection.execute(query).fetchall()[0][0])


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    args = parser.parse_args()
    with grounds.ground() as ground:
        print(f"\n{grounds.machine()}\n", flush=True)
        url = filled(ground, args.rows)
        rates: dict[bool, list[float]] = {False: [], True: []}
        p99: dict[bool, list[float]] = {False: [], True: []}
        for number in range(args.rounds):
            for during in (False, True):
                left = payloads(url)
                rate, late = round_of(ground, url, args.seconds, during=during)
                rates[during].append(rate)
                p99[during].append(late)
                gone = left - payloads(url)
                said = f"round {number + 1}: {rate:.0f}/s, p99 {late:.0f} ms, {gone:,} payloads erased"
                print(said, file=sys.stderr, flush=True)
                if during and not gone:
                    raise SystemExit("retention did nothing in this round")
        erased = args.rows - payloads(url)
        lines = [
            ["acks/s without retention", spread(rates[False]), "–"],
            [f"acks/s during it ({erased:,} payloads archived and erased)", spread(rates[True]), "–"],
            ["acks/s, during ÷ without", ratio(rates[True], rates[False]), "≥ 0.8"],
            ["p99 time to 2xx, during ÷ without", ratio(p99[True], p99[False]), "–"],
        ]
        print("\n" + table(["what", "measured", "budget"], lines))


if __name__ == "__main__":
    main()
