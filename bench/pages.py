"""Pages: every page and filter of the desk over a long history and over a short one.

`python -m bench.pages [--deep N] [--shallow N] [--times N]`: asks the real application in this process, a
signed-in admin's, without the network; both in turns, medians, ratio (budget ≤ 1.5).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import psycopg
from flask.testing import FlaskClient

from bench import ground as grounds
from bench.depth import deps_of, page, signed_in, taken_by
from bench.ground import Ground, table
from bench.history import fill_history
from bench.rows import settle_down
from receiver.inbox.hours import roll_up_hours
from receiver.logs import configure

BUDGET = 1.5


def paths(connection: psycopg.Connection, now: datetime) -> dict[str, str]:
    """Each page by a name, with the filters on values that have many rows, few, and none."""
    begun: datetime = _one(connection, "SELECT min(received_at) FROM webhook_events")

    def after(share: float) -> str:
        """An instant after so much of the history."""
        return _utc(begun + (now - begun) * share)

    event = _one(connection, "SELECT id FROM webhook_events WHERE provider_event_id = 'evt_100'")
    conflict = _one(connection, "SELECT min(id) FROM webhook_conflicts")
    rejection = _one(connection, "SELECT max(id) FROM webhook_rejections")
    replay = _one(connection, "SELECT min(id::text) FROM bulk_replays")
    queries = {
        "no filter": "",
        "state=pending": "state=pending",
        "state=in_flight": "state=in_flight",
        "state=processed": "state=processed",
        "state=failed": "state=failed",
        "state=expired": "state=expired",
        "state=dead": "state=dead",
        "parked": "parked=1",
        "source, many": "source=demo",
        "source, none": "source=nobody",
        "reason, many": "reason=amount",
        "reason, none": "reason=account",
        "outcome, many": "outcome=applied",
        "outcome, few": "outcome=stale",
        "outcome, none": "outcome=ignored",
        "type": "event_type=payment.failed",
        "type, none": "event_type=nothing.known",
        "order": "order_reference=ord_77",
        "transaction": "transaction_id=tx_77",
        "id, exact": "text=evt_77",
        "id, beginning": "text=evt_7*",
        "from": f"from={after(0.9)}",
        "to": f"to={after(0.5)}",
        "source and reason": "source=demo&reason=currency",
        "dead of a time": f"state=dead&from={after(0.5)}&to={after(0.6)}",
        "place": "state=failed&place=shop.rules:apply",
        "source, type and outcome": "source=lesson&event_type=payment.succeeded&outcome=stale",
    }
    found = {f"/events, {name}": f"/events?{query}" for name, query in queries.items()}
    found["/events, an old page"] = f"/events?before={event}"
    group = "source=demo&reason=amount&event_type=payment.failed&place=-"
    return {
        "/status": "/status",
        "/status, a day": "/status?range=24h",
        "/status, a week": "/status?range=7d",
        **found,
        "/events.csv, an hour": f"/events.csv?from={_utc(now - timedelta(hours=1))}",
        "/events/<id>": f"/events/{event}",
        "/failures": "/failures",
        "/failures/group": f"/failures/group?{group}",
        "/conflicts": "/conflicts",
        "/conflicts, all": "/conflicts?state=all",
        "/conflicts/<id>": f"/conflicts/{conflict}",
        "/rejections": "/rejections",
        "/rejections, source and reason": "/rejections?source=demo&reason=stale",
        "/rejections/<id>": f"/rejections/{rejection}",
        "/orders": "/orders",
        "/orders, state": "/orders?state=failed",
        "/orders, state none": "/orders?state=disputed",
        "/orders/<reference>": "/orders/ord_77",
        "/sources": "/sources",
        "/sources/demo": "/sources/demo",
        "/audit": "/audit",
        "/audit, actor": f"/audit?actor={quote('operator 1')}",
        "/audit, action": "/audit?action=order.correct",
        "/audit, target": "/audit?target=event:77",
        "/replays": "/replays",
        "/replays/<id>": f"/replays/{replay}",
        "/replays/new, a group": f"/replays/new?state=dead&{group}",
        "/users": "/users",
        "/tokens": "/tokens",
    }


def _utc(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _one(connection: psycopg.Connection, statement: str) -> Any:
    row = connection.execute(statement).fetchone()
    assert row is not None
    return row[0]


def desk(ground: Ground, events: int) -> tuple[FlaskClient, dict[str, str]]:
    """An admin's browser before so long a history, and the paths to ask."""
    url = ground.database(f"pages_{events}", migrated=True)
    with psycopg.connect(url) as connection:
        started = time.monotonic()
        fill_history(connection, events)
        settle_down(connection)
        print(f"{events:,} events written in {time.monotonic() - started:.0f} s", flush=True)
        found = paths(connection, datetime.now(UTC))
    deps = deps_of(ground, url)
    while roll_up_hours(deps):
        pass
    with psycopg.connect(url) as connection:
        settle_down(connection)
    return signed_in(deps, role="admin"), found


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deep", type=int, default=5_000_000)
    parser.add_argument("--shallow", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=15)
    args = parser.parse_args()
    with grounds.ground() as ground:
        print(f"\n{grounds.machine()}\n", flush=True)
        log = os.open(ground.folder / "pages.log", os.O_WRONLY | os.O_CREAT)
        os.dup2(log, sys.stderr.fileno())
        configure()
        (few, short), (many, long) = desk(ground, args.shallow), desk(ground, args.deep)
        lines = []
        for name, path in short.items():
            for client, asked in ((few, path), (many, long[name])):
                status = client.get(asked).status_code
                if status != 200:
                    raise SystemExit(print(f"{asked}: {status}") or 1)
            a, b = taken_by([page(few, path), page(many, long[name])], args.times)
            verdict = "" if b / a <= BUDGET else "over"
            lines.append([name, f"{a:.1f}", f"{b:.1f}", f"{b / a:.2f}", verdict])
            print(f"{name}: {a:.1f} {b:.1f} {b / a:.2f} {verdict}", flush=True)
        print("\n" + table(["page", f"{args.shallow:,}, ms", f"{args.deep:,}, ms", "ratio", ""], lines))


if __name__ == "__main__":
    main()
