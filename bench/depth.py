"""Depth: what a long history and a deep queue cost. `python -m bench.depth [--deep N] [--shallow N]`

Three questions, each a ratio within one run: claim, `/status`, `/events` under each filter and
`/events/<id>` beside DEEP ended rows and beside SHALLOW; the claim with DEEP held rows ahead and
without; the worker's throughput with DEEP rows pending ahead and without. Pages are asked of the real
application in this process, a signed-in viewer's, without the network.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from bench import ground as grounds
from bench import rows
from bench.ground import Ground, table
from receiver.accounts.users import create_user
from receiver.app import create_app
from receiver.deps import Deps
from receiver.inbox.claimed import COLUMNS
from receiver.inbox.process import Processor
from receiver.inbox.table import INBOX
from receiver.logs import configure
from receiver.queue.claim import claim
from receiver.queue.pauses import pause
from receiver.settings import Settings

PASSWORD = "a bench has no secrets 1"

DUE = 5_000
"""Due rows beside the ended or held ones: enough for all claims that are timed."""


def filters(now: datetime) -> dict[str, str]:
    """Each filter of `/events`, as a query string, on values that have many rows and few."""
    yesterday = (now - timedelta(days=1, hours=1)).isoformat().replace("+00:00", "Z")
    return {
        "no filter": "",
        "state=pending": "state=pending",
        "state=processed": "state=processed",
        "state=failed": "state=failed",
        "state=expired": "state=expired",
        "state=dead": "state=dead",
        "source": "source=demo",
        "reason": "reason=amount",
        "outcome": "outcome=applied",
        "outcome without rows": "outcome=stale",
        "event_type": "event_type=payment.failed",
        "order_reference": "order_reference=old_77",
        "transaction_id": "transaction_id=old_tx_77",
        "text, exact": "text=end_77",
        "text, beginning": "text=end_7*",
        "parked": "parked=1",
        "from": f"from={yesterday}",
        "to": f"to={yesterday}",
    }


Act = Callable[[], object]


def taken_by(acts: Sequence[Act], times: int) -> list[float]:
    """Median milliseconds of each act, taken in turns, so that a bad moment of the machine hits all."""
    taken: list[list[float]] = [[] for _ in acts]
    for number in range(times + 2):  # two for warmth
        for act, own in zip(acts, taken, strict=True):
            started = time.perf_counter()
            act()
            if number >= 2:
                own.append((time.perf_counter() - started) * 1000)
    return [statistics.median(own) for own in taken]


def timed_claim(deps: Deps) -> Callable[[], object]:
    """One claim of a batch, rolled back, so that every one finds the same rows."""

    def act() -> None:
        with deps.sessions() as session:
            found = claimed(deps, session)
            session.rollback()
        if len(found) != deps.settings.batch_size:
            raise SystemExit(f"the claim found {len(found)} rows")

    return act


def claimed(deps: Deps, session: Session) -> list[Any]:
    """Claim one batch in the caller's transaction."""
    return claim(
        session,
        INBOX,
        COLUMNS,
        claim_id=deps.dice.new_id(),
        worker="bench",
        batch=deps.settings.batch_size,
        lease=deps.settings.lease,
    )


def signed_in(deps: Deps, role: str = "viewer") -> FlaskClient:
    """A user's browser, without its network."""
    app = create_app(deps)
    with deps.sessions.begin() as session:
        create_user(session, user_id=deps.dice.new_id(), name="user", role=role, password=PASSWORD)
    client = app.test_client()
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', client.get("/login").text)
    assert token is not None
    form = {"name": "user", "password": PASSWORD, "csrf_token": token[1]}
    answer = client.post("/login", data=form)
    if answer.status_code != 303:
        raise SystemExit(f"not signed in: {answer.status_code} {answer.text[:2000]}")
    return client


def page(client: FlaskClient, path: str) -> Callable[[], object]:
    """One look at a page, read to its end."""

    def act() -> None:
        answer = client.get(path)
        if answer.status_code != 200:
            raise SystemExit(f"{path}: {answer.status_code}")

    return act


def beside_ended(ground: Ground, ended: int) -> dict[str, Act]:
    """All acts that must not feel history, on a database with so many ended rows."""
    url = ground.database(f"ended_{ended}", migrated=True)
    with psycopg.connect(url) as connection:
        rows.fill_ended(connection, ended)
        rows.fill_pending(connection, DUE)
        rows.settle_down(connection)
        found = connection.execute(
            "SELECT id FROM webhook_events WHERE provider_event_id = 'end_77'"
        ).fetchone()
    assert found is not None
    deps = deps_of(ground, url)
    client = signed_in(deps)
    acts = {"claim": timed_claim(deps), "/status": page(client, "/status")}
    for name, query in filters(datetime.now(UTC)).items():
        acts[f"/events, {name}"] = page(client, f"/events?{query}")
    acts["/events/<id>"] = page(client, f"/events/{found[0]}")
    return acts


def beside_held(ground: Ground, held: int) -> Act:
    """The claim with so many due rows of a paused source ahead."""
    url = ground.database(f"held_{held}", migrated=True)
    with psycopg.connect(url) as connection:
        if held:
            rows.fill_pending(connection, held, DUE + 1, source="another", due="-1 hour", payload_bytes=10)
        rows.fill_pending(connection, DUE)
        rows.settle_down(connection)
    deps = deps_of(ground, url)
    with deps.sessions.begin() as session:
        pause(session, INBOX, "another", by="bench", reason="bench")
    return timed_claim(deps)


def behind_pending(ground: Ground, ahead: int, seconds: float) -> float:
    """Events a second with so many due rows ahead: the worker works off the front of the queue."""
    url = ground.database("ahead", migrated=True)
    with psycopg.connect(url) as connection:
        count = max(ahead, int(seconds * 4_000))
        rows.fill_orders(connection, count)
        rows.fill_pending(connection, count, payload_bytes=10)
        rows.settle_down(connection)
    ground.checkpoint()
    deps = deps_of(ground, url)
    processor = Processor(deps, "bench")
    started = time.perf_counter()
    worked = processor.tick(limit_seconds=seconds)
    taken = time.perf_counter() - started
    deps.dispose()
    return worked / taken


def deps_of(ground: Ground, url: str) -> Deps:
    """Deps of this process on a database."""
    environment = ground.environment(url)
    return Deps.build(Settings.from_env(environment))


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deep", type=int, default=1_000_000)
    parser.add_argument("--shallow", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each throughput measurement")
    parser.add_argument("--only", default="ended,held,pending")
    args = parser.parse_args()
    only = args.only.split(",")
    head = ["act", f"beside {args.shallow:,}, ms", f"beside {args.deep:,}, ms", "ratio", "budget"]
    with grounds.ground() as ground:
        print(f"\n{grounds.machine()}\n", flush=True)
        # The worker's log goes where a service's goes, not between the tables.
        log = os.open(ground.folder / "depth.log", os.O_WRONLY | os.O_CREAT)
        shown = os.dup(sys.stderr.fileno())
        os.dup2(log, sys.stderr.fileno())
        configure()
        try:
            if "ended" in only:
                few, many = beside_ended(ground, args.shallow), beside_ended(ground, args.deep)
                lines = []
                for name in few:
                    short, long = taken_by([few[name], many[name]], args.times)
                    lines.append([name, f"{short:.1f}", f"{long:.1f}", f"{long / short:.2f}", "≤ 1.2"])
                print(table(head, lines), flush=True)
            lines = []
            if "held" in only:
                short, long = taken_by([beside_held(ground, 0), beside_held(ground, args.deep)], args.times)
                name = f"claim with {args.deep:,} held rows ahead, ms"
                lines.append([name, f"{short:.1f}", f"{long:.1f}", f"{long / short:.2f}", "≤ 1.5"])
            if "pending" in only:
                without = behind_pending(ground, 0, args.seconds)
                ahead = behind_pending(ground, args.deep, args.seconds)
                name = f"events/s with {args.deep:,} rows pending ahead"
                lines.append([name, f"{without:.0f}", f"{ahead:.0f}", f"{ahead / without:.2f}", "≥ 0.8"])
            if lines:
                print("\n" + table(["what", "without", "with", "ratio", "budget"], lines), flush=True)
        finally:
            os.dup2(shown, sys.stderr.fileno())


if __name__ == "__main__":
    main()
