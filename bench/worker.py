"""Workers, side by side: ours with everything that it does, procrastinate and pgqueuer with one UPDATE.

`python -m bench.worker [--rounds N] [--events N]` from the checkout, with the extras `embedded` and
`bench`. Ours validates, locks the order, writes ledger, transaction, transition and attempt, and moves
the order; the peers run one `UPDATE orders` for each event. Each runs in one process of its own and is
timed from its first claim to its last event. `--latency` measures receipt to applied, with the shipped
web and worker processes and little to do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

import psycopg

from bench import ground as grounds
from bench import rows
from bench.ground import SECRET, Ground, ratio, spread, table
from bench.load import post

APPLIED = "SELECT count(*) FROM orders WHERE state = 'paid'"

EFFECT = "UPDATE orders SET state = 'paid', updated_at = now() WHERE reference = %s"

PEER_ORDERS = """\
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, reference text NOT NULL UNIQUE,
  state text NOT NULL DEFAULT 'pending', updated_at timestamptz NOT NULL DEFAULT now());
"""

CONCURRENCY = 10
"""Jobs at once of the peers: more gains them nothing here."""

BATCH = 100

last_effect = [0.0]
"""When a peer's last UPDATE was committed: what it does afterwards until it ends is not counted."""


def run_ours() -> float:
    """Drain the inbox; returns the seconds."""
    from receiver.deps import Deps
    from receiver.inbox.process import Processor
    from receiver.logs import configure
    from receiver.settings import Settings

    settings = Settings.from_env(os.environ)
    configure(settings.log_level)
    processor = Processor(Deps.build(settings), "bench")
    started = time.perf_counter()
    processor.tick(limit_seconds=600)
    return time.perf_counter() - started


def procrastinate_app() -> Any:
    """procrastinate's application on our database."""
    import procrastinate
    import psycopg_pool

    url = os.environ["DATABASE_URL"]
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, max_size=CONCURRENCY + 2))
    pool = psycopg_pool.AsyncConnectionPool(
        url, min_size=CONCURRENCY, max_size=CONCURRENCY, open=False, kwargs={"autocommit": True}
    )

    @app.task(name="apply", pass_context=False)
    async def apply(reference: str) -> None:
        async with pool.connection() as connection:
            await connection.execute(EFFECT, (reference,))
        last_effect[0] = time.perf_counter()

    return app, pool, apply


async def fill_procrastinate(count: int) -> None:
    """Install procrastinate's schema and defer the jobs."""
    app, _, apply = procrastinate_app()
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(1, count + 1, 1000):
            batch = [{"reference": f"ord_{n}"} for n in range(start, min(start + 1000, count + 1))]
            await apply.batch_defer_async(*batch)


async def run_procrastinate() -> float:
    """Work until nothing is left."""
    app, pool, _ = procrastinate_app()
    async with app.open_async(), pool:
        started = time.perf_counter()
        await app.run_worker_async(wait=False, concurrency=CONCURRENCY, install_signal_handlers=False)
        return last_effect[0] - started


async def fill_pgqueuer(count: int) -> None:
    """Install pgqueuer's schema and enqueue the jobs."""
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    for start in range(1, count + 1, 1000):
        payloads: list[bytes | None] = [
            f"ord_{n}".encode() for n in range(start, min(start + 1000, count + 1))
        ]
        await queries.enqueue(["apply"] * len(payloads), payloads, [0] * len(payloads))
    await connection.close()


async def run_pgqueuer() -> float:
    """Work until nothing is left: on asyncpg, its own first choice (on psycopg it waits for notices)."""
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.qm import QueueManager
    from pgqueuer.queries import Queries
    from pgqueuer.types import QueueExecutionMode

    url = os.environ["DATABASE_URL"]
    connection = await asyncpg.connect(url)
    async with asyncpg.create_pool(url, min_size=CONCURRENCY, max_size=CONCURRENCY) as pool:
        manager = QueueManager(Queries(AsyncpgDriver(connection)))

        @manager.entrypoint("apply")
        async def apply(job: Any) -> None:
            await pool.execute(EFFECT.replace("%s", "$1"), job.payload.decode())
            last_effect[0] = time.perf_counter()

        started = time.perf_counter()
        await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
    await connection.close()
    return last_effect[0] - started


def child(what: str, count: int) -> None:
    """What runs in the process of its own; prints its seconds."""
    if what == "ours":
        seconds = run_ours()
    elif what == "procrastinate":
        seconds = asyncio.run(run_procrastinate())
    elif what == "pgqueuer":
        seconds = asyncio.run(run_pgqueuer())
    else:
        asyncio.run({"fill-procrastinate": fill_procrastinate, "fill-pgqueuer": fill_pgqueuer}[what](count))
        seconds = 0.0
    print(json.dumps({"seconds": seconds, "cpu": time.process_time()}))


def in_child(ground: Ground, url: str, what: str, count: int) -> dict[str, float]:
    """Run a part in a process of its own; its log goes to a file. Returns seconds and CPU seconds."""
    with (ground.folder / f"{what}.log").open("ab") as log:
        done = subprocess.run(
            [sys.executable, "-m", "bench.worker", "--child", what, "--events", str(count)],
            cwd=grounds.ROOT, env=ground.environment(url), stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{what} failed:\n{(ground.folder / f'{what}.log').read_text()[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def one_round(ground: Ground, name: str, count: int) -> tuple[float, float, float]:
    """Fresh database, fill, drain, count; returns events a second, and the CPU of worker and database
    in microseconds an event (the worker's with its start).
    """
    url = ground.database(name, migrated=name == "ours")
    with psycopg.connect(url) as connection:
        if name == "ours":
            rows.fill_orders(connection, count)
            rows.fill_pending(connection, count)
        else:
            connection.execute(PEER_ORDERS)
            connection.execute(
                "INSERT INTO orders (reference) SELECT 'ord_' || n FROM generate_series(1, %s) AS n", [count]
            )
    if name != "ours":
        in_child(ground, url, f"fill-{name}", count)
    with psycopg.connect(url) as connection:
        rows.settle_down(connection)
    ground.checkpoint()
    database = ground.postgres_cpu_seconds()
    spent = in_child(ground, url, name, count)
    database = ground.postgres_cpu_seconds() - database
    with psycopg.connect(url) as connection:
        found = connection.execute(APPLIED).fetchone()
    if found is None or found[0] != count:
        raise SystemExit(f"{name}: {found} of {count} orders are paid")
    return count / spent["seconds"], spent["cpu"] / count * 1e6, database / count * 1e6


def latency(ground: Ground, seconds: float, pause: float = 0.1) -> list[float]:
    """Milliseconds from receipt to the end of each event, posted one by one to a real web and worker."""
    url = ground.database("latency", migrated=True)
    count = int(seconds / pause)
    with psycopg.connect(url) as connection:
        rows.fill_orders(connection, count)
    environment = ground.environment(url)
    arguments = ["-c", "python:receiver.web.gunicorn", "receiver.app:create_app()"]
    with (
        ground.web("latency-web", arguments, environment) as (port, _),
        ground.process("latency-worker", ["worker.py"], environment),
    ):
        time.sleep(3)
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            for number in range(1, count + 1):
                connection.sendall(post(SECRET, number, order=f"ord_{number}"))
                answer = connection.recv(65536)
                while not answer.endswith(b"}"):
                    answer += connection.recv(65536)
                if not answer.startswith(b"HTTP/1.1 200"):
                    raise SystemExit(f"a post was not accepted: {answer!r}")
                time.sleep(pause)
        time.sleep(3)
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT extract(epoch FROM finished_at - received_at) * 1000 FROM webhook_events"
            " WHERE outcome = 'applied' ORDER BY 1"
        ).fetchall()
    if len(found) != count:
        raise SystemExit(f"{len(found)} of {count} events were applied")
    return [float(row[0]) for row in found]


def main() -> None:
    """Run the rounds and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--only", default="procrastinate,pgqueuer,ours")
    parser.add_argument("--latency", type=float, default=30.0, metavar="SECONDS", help="0 leaves it out")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.events)
        return
    names = args.only.split(",")
    rates: dict[str, list[float]] = {name: [] for name in names}
    own: dict[str, list[float]] = {name: [] for name in names}
    database: dict[str, list[float]] = {name: [] for name in names}
    with grounds.ground() as ground:
        print(f"\n{args.events} events, {args.rounds} rounds; {grounds.machine()}\n")
        for number in range(args.rounds):
            for name in names:
                measured = one_round(ground, name, args.events)
                for kept, value in zip((rates, own, database), measured, strict=True):
                    kept[name].append(value)
                print(f"round {number + 1}: {name}: {rates[name][-1]:.0f}/s", file=sys.stderr, flush=True)
        head = ["worker, one process", "events/s", "worker CPU us an event", "database CPU us an event"]
        lines = [[name, spread(rates[name]), spread(own[name]), spread(database[name])] for name in names]
        print(table(head, lines))
        budgets = {"pgqueuer": "≥ 1.5", "procrastinate": "≥ 8"}
        lines = [
            [f"events/s, ours ÷ {name}", ratio(rates["ours"], rates[name]), budgets[name]]
            for name in budgets
            if name in names and "ours" in names
        ]
        if args.latency:
            times = latency(ground, args.latency)
            lines.append(["receipt → applied, idle, p50 ms", f"{times[len(times) // 2]:.0f}", "–"])
            lines.append(
                ["receipt → applied, idle, p99 ms", f"{times[int(len(times) * 0.99)]:.0f}", "≤ 2000"]
            )
        print("\n" + table(["ratio", "measured", "budget"], lines))


if __name__ == "__main__":
    main()
