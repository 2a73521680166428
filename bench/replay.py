"""Bulk replay: what it costs the intake, and the worker's memory. `python -m bench.replay [--rows N]`

The shipped web server and a worker stand on two databases with ROWS dead letters each. On one a bulk
replay of them all runs, spread over SPREAD seconds; on the other none. Rounds alternate; the ratio of the
intake's rates is the figure. Then the rest is replayed without a spread, and the worker's memory is read.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import timedelta

import psutil
import psycopg

from bench import ground as grounds
from bench import rows
from bench.ground import SECRET, Ground, cpu_seconds, ratio, spread, table
from bench.load import drive
from receiver.deps import Deps
from receiver.inbox.bulk_replay import cancel_bulk_replay, find_bulk_replay, start_bulk_replay
from receiver.inbox.filter import Filter
from receiver.queue.models import BulkReplay
from receiver.settings import Settings

OURS = ["-c", "python:receiver.web.gunicorn", "receiver.app:create_app()"]

CONNECTIONS = 32

DEAD = """\
UPDATE webhook_events SET state = 'failed', outcome = 'currency', reason = 'currency',
  last_error_code = 'currency', last_error = 'order 18.60 USD, event 18.60 EUR', attempts = 1,
  finished_at = now()
WHERE state = 'pending'
"""


def filled(ground: Ground, name: str, count: int) -> str:
    """A database of dead letters whose orders have been repaired since."""
    url = ground.database(name, migrated=True)
    with psycopg.connect(url) as connection:
        rows.fill_orders(connection, count)
        rows.fill_pending(connection, count)
        connection.execute(DEAD)
        rows.settle_down(connection)
    return url


def start(deps: Deps, seconds: int) -> BulkReplay:
    """Begin to replay every dead letter."""
    with deps.sessions.begin() as session:
        return start_bulk_replay(
            session,
            replay_id=deps.dice.new_id(),
            filter=Filter(),
            actor="bench",
            reason="bench",
            admin=True,
            spread=timedelta(seconds=seconds),
            announcement="nobody but the bench",
        )


def rate_of(ground: Ground, url: str, seconds: float) -> tuple[float, float, dict[str, float]]:
    """The intake's rate and p99 (ms) with a worker beside it, and the cores that each used."""
    ground.checkpoint()
    environment = ground.environment(url)
    with (
        ground.process("worker", ["worker.py"], environment) as worker,
        ground.web("web", OURS, environment) as (port, web),
    ):

        def used() -> dict[str, float]:
            all_of_it = psutil.cpu_times()
            own = psutil.Process().cpu_times()
            return {
                "worker": cpu_seconds(worker),
                "web": cpu_seconds(web),
                "database": ground.postgres_cpu_seconds(),
                "load": own.user + own.system + own.children_user + own.children_system,
                "all": sum(all_of_it) - all_of_it.idle - all_of_it.iowait - all_of_it.guest,
            }

        before = used()
        load, _ = drive(port, secret=SECRET, connections=CONNECTIONS, seconds=seconds)
        cores = {name: (value - before[name]) / seconds for name, value in used().items()}
    if load.broken or load.accepted != sum(load.statuses.values()):
        raise SystemExit(f"not all accepted: {load.statuses}, {load.broken} broken")
    return load.rate, load.percentile_ms(0.99), cores


def drain(ground: Ground, deps: Deps, url: str) -> list[str]:
    """Replay everything that is still dead at once; the worker's memory before and at its greatest."""
    replay = start(deps, 0)
    with ground.process("worker", ["worker.py"], ground.environment(url)) as worker:
        time.sleep(2)
        first = greatest = rss_mib(worker)
        started = time.monotonic()
        while True:
            with deps.sessions() as session:
                found = find_bulk_replay(session, replay.id)
            greatest = max(greatest, rss_mib(worker))
            if found.state != "running":
                break
            time.sleep(0.5)
        taken = time.monotonic() - started
    name = f"worker's RSS while {found.done:,} rows go round, MiB: after 2 s → greatest"
    return [name, f"{first:.0f} → {greatest:.0f} in {taken:.0f} s", "no growth with rows"]


def rss_mib(process: psutil.Process) -> float:
    """Resident memory of a process."""
    return float(process.memory_info().rss) / 2**20


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--spread", type=int, default=300, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    args = parser.parse_args()
    with grounds.ground() as ground:
        print(f"\n{grounds.machine()}\n", flush=True)
        urls = {name: filled(ground, name, args.rows) for name in ("without", "during")}
        rates: dict[str, list[float]] = {name: [] for name in urls}
        p99: dict[str, list[float]] = {name: [] for name in urls}
        deps = Deps.build(Settings.from_env(ground.environment(urls["during"])))
        sent = 0
        for number in range(args.rounds):
            for name, url in urls.items():
                replay = start(deps, args.spread) if name == "during" else None
                rate, late, cores = rate_of(ground, url, args.seconds)
                rates[name].append(rate)
                p99[name].append(late)
                if replay is not None:
                    with deps.sessions.begin() as session:
                        stopped = cancel_bulk_replay(session, replay.id, actor="bench", reason="bench")
                    sent += stopped.done
                said = ", ".join(f"{part} {share:.2f}" for part, share in cores.items())
                print(f"round {number + 1}: {name}: {rate:.0f}/s; cores: {said}", file=sys.stderr, flush=True)
        lines = [
            ["acks/s without a bulk replay", spread(rates["without"]), "–"],
            [f"acks/s during one ({sent:,} rows sent in all rounds)", spread(rates["during"]), "–"],
            ["acks/s, during ÷ without", ratio(rates["during"], rates["without"]), "≥ 0.8"],
            ["p99 time to 2xx, during ÷ without", ratio(p99["during"], p99["without"]), "–"],
            drain(ground, deps, urls["during"]),
        ]
        deps.dispose()
        print("\n" + table(["what", "measured", "budget"], lines))


if __name__ == "__main__":
    main()
