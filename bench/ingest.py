"""Ingest, side by side: ours, a naive receiver, an empty Flask view, and PostgreSQL alone as the limit.

`python -m bench.ingest [--rounds N] [--seconds N]` from the checkout, with the extras `embedded` and
`bench`. Rounds are interleaved; after each one the rows are counted and must equal the 2xx.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from bench import ground as grounds
from bench.ground import SECRET, Ground, ratio, spread, table
from bench.load import Load, drive
from receiver.embedded import binaries

CONNECTIONS = 32
GTHREAD = ["-k", "gthread", "-w", "2", "--threads", "16", "--keep-alive", "15"]
OURS = ["-c", "python:receiver.web.gunicorn"]

INSERT = """\
\\set id random(1, 9000000000000000)
INSERT INTO limits (provider_event_id, payload) VALUES ('evt_' || :id, decode(repeat('6e', 1024), 'hex'))
ON CONFLICT (provider_event_id) DO NOTHING;
"""

LIMITS = """\
CREATE TABLE limits (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  provider_event_id text NOT NULL UNIQUE,
  payload bytea NOT NULL,
  state smallint NOT NULL DEFAULT 0,
  available_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX limits_pending ON limits (available_at, id) WHERE state = 0;
"""


@dataclass
class Target:
    """One thing that is measured, round by round."""

    name: str
    run: Callable[[], None] = lambda: None
    rates: list[float] = field(default_factory=list)
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    pss: list[float] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)
    pg_cores: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    generator: list[float] = field(default_factory=list)

    def note(self, load: Load, pss: float, cores: float, pg_cores: float) -> None:
        """Keep one round's figures."""
        self.rates.append(load.rate)
        self.p50.append(load.percentile_ms(0.5))
        self.p99.append(load.percentile_ms(0.99))
        self.pss.append(pss)
        self.cores.append(cores)
        self.pg_cores.append(pg_cores)
        self.generator.append(load.generator_cores)

    def row(self) -> list[str]:
        """One line of the table."""
        return [
            self.name,
            spread(self.rates),
            spread(self.p50, ".1f"),
            spread(self.p99, ".1f"),
            spread(self.cores, ".2f"),
            spread(self.pg_cores, ".2f"),
            spread(self.cpu),
            spread(self.generator, ".2f"),
            spread(self.pss),
        ]


def web_round(
    ground: Ground, target: Target, arguments: list[str], url: str, count: str | None, seconds: float
) -> None:
    """Start the server, warm it up, load it, count the rows."""
    ground.checkpoint()
    before = rows(url, count)
    with ground.web(re.sub(r"\W+", "-", target.name), arguments, ground.environment(url)) as (port, master):
        cpu, pg_cpu = grounds.cpu_seconds(master), ground.postgres_cpu_seconds()
        load, accepted = drive(port, secret=SECRET, connections=CONNECTIONS, seconds=seconds)
        cores = (grounds.cpu_seconds(master) - cpu) / (seconds + 1.0)
        pg_cores = (ground.postgres_cpu_seconds() - pg_cpu) / (seconds + 1.0)
        pss = grounds.pss_mib(master)
    stored = rows(url, count) - before
    if load.broken or load.accepted != sum(load.statuses.values()):
        raise SystemExit(f"{target.name}: not all accepted: {load.statuses}, {load.broken} broken")
    if count is not None and stored != accepted:
        raise SystemExit(f"{target.name}: {accepted} answers with 2xx, and {stored} rows")
    target.note(load, pss, cores, pg_cores)
    target.cpu.append((cores + pg_cores) * (seconds + 1.0) / accepted * 1e6)


def rows(url: str, count: str | None) -> int:
    """The rows that there are, by the target's own query."""
    if count is None:
        return 0
    with psycopg.connect(url) as connection:
        found = connection.execute(count).fetchone()
    assert found is not None
    return int(found[0])


def pgbench_round(ground: Ground, target: Target, url: str, seconds: float) -> None:
    """PostgreSQL alone, one durable single-row insert a transaction."""
    ground.checkpoint()
    script = ground.folder / "insert.sql"
    script.write_text(INSERT)
    line = [str(binaries() / "pgbench"), "-n", "-M", "prepared", "-c", str(CONNECTIONS), "-j", "2"]
    line += ["-T", str(max(1, int(seconds))), "-f", str(script), url]
    output = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    target.rates.append(float(re.search(r"tps = ([\d.]+)", output)[1]))  # type: ignore[index]
    target.p50.append(float(re.search(r"latency average = ([\d.]+)", output)[1]))  # type: ignore[index]


def targets(ground: Ground, seconds: float) -> dict[str, Target]:
    """All targets, each with its own database."""
    ours_url = ground.database("ours", migrated=True)
    naive_url = ground.database("naive")
    limit_url = ground.database("limits")
    subprocess.run(
        [sys.executable, "-m", "bench.naive"], check=True, cwd=grounds.ROOT, env=ground.environment(naive_url)
    )
    with psycopg.connect(limit_url) as connection:
        connection.execute(LIMITS)
    made = {
        "pgbench": Target("limit: pgbench, single-row insert (p50 = mean)"),
        "empty": Target("limit: empty Flask view, our gunicorn settings"),
        "empty_gthread": Target("limit: empty Flask view, gthread 2 × 16"),
        "naive": Target("naive Flask-SQLAlchemy, gthread 2 × 16"),
        "ours": Target("ours, as shipped"),
    }
    count_ours = "SELECT count(*) FROM webhook_events JOIN webhook_payloads p ON p.id = payload_id"
    made["pgbench"].run = lambda: pgbench_round(ground, made["pgbench"], limit_url, seconds)
    for key, arguments, url, count in (
        ("empty", [*OURS, "bench.naive:empty()"], naive_url, None),
        ("empty_gthread", [*GTHREAD, "bench.naive:empty()"], naive_url, None),
        ("naive", [*GTHREAD, "bench.naive:create_app()"], naive_url, "SELECT count(*) FROM webhook_events"),
        ("ours", [*OURS, "receiver.app:create_app()"], ours_url, count_ours),
    ):
        made[key].run = lambda key=key, arguments=arguments, url=url, count=count: web_round(
            ground, made[key], arguments, url, count, seconds
        )
    return made


def report(made: dict[str, Target], args: argparse.Namespace) -> None:
    """Print the table and the ratios."""
    head = [
        "target",
        "acks/s",
        "p50 ms",
        "p99 ms",
        "server cores",
        "pg cores",
        "CPU us an ack",
        "generator cores",
        "PSS MiB",
    ]
    shown = [target for target in made.values() if target.rates]
    how = f"{CONNECTIONS} connections, 1 KiB bodies, {args.rounds} rounds × {args.seconds:g} s"
    print(f"\n{how}; {grounds.machine()}\n")
    print(table(head, [target.row() for target in shown]))
    if not {"ours", "naive"} <= {key for key, target in made.items() if target.rates}:
        return
    ours, naive = made["ours"], made["naive"]
    lines = [["acks/s, ours ÷ naive", ratio(ours.rates, naive.rates), "≥ 4"]]
    lines.append(["p99 time to 2xx, ours ÷ naive", ratio(ours.p99, naive.p99), "≤ 0.3"])
    lines.append(["PSS of master and two workers, MiB", spread(ours.pss), "≤ 160"])
    lines.append(["CPU an ack (server and database), naive ÷ ours", ratio(naive.cpu, ours.cpu), "–"])
    if made["pgbench"].rates:
        lines.insert(1, ["acks/s, ours ÷ pgbench", ratio(ours.rates, made["pgbench"].rates, ".3f"), "≥ 0.15"])
    if made["empty"].rates:
        lines.append(["acks/s, ours ÷ empty view, same server", ratio(ours.rates, made["empty"].rates), "–"])
    if made["empty_gthread"].rates:
        honest = ratio(naive.rates, made["empty_gthread"].rates, ".3f")
        lines.append(["naive ÷ empty view, gthread (honest in 0.15–0.22)", honest, "–"])
    print("\n" + table(["ratio", "measured", "budget"], lines))


def main() -> None:
    """Run the rounds and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument(
        "--only", default="", help="comma-separated: pgbench, empty, empty_gthread, naive, ours"
    )
    args = parser.parse_args()
    with grounds.ground() as ground:
        made = targets(ground, args.seconds)
        only = set(args.only.split(",")) if args.only else set(made)
        for number in range(args.rounds):
            for key, target in made.items():
                if key in only:
                    target.run()
                    rate = statistics.median(target.rates[-1:])
                    print(f"round {number + 1}: {target.name}: {rate:.0f}/s", file=sys.stderr, flush=True)
        report(made, args)


if __name__ == "__main__":
    main()
