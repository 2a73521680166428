"""A restored backup: what happened since is listed at the provider and filled in; every order is right."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.embedded import EmbeddedPostgres, binaries
from receiver.inbox.register_order import register_order
from receiver.reconciliation.ask import Asker
from receiver.reconciliation.catch_up import advance_catch_ups, begin_catch_up
from receiver.reconciliation.duty import Reconciler
from receiver.settings import Secret
from tests.doors import Door
from tests.reconciliation.gestures import demo_source, findings
from tests.reconciliation.provider import KEY, Provider, body, run_provider

BEFORE, AFTER = 8, 12
RESTORED = "restored_backup"


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    """The demo provider over real HTTP."""
    with run_provider(tmp_path) as running:
        yield running


@pytest.fixture
def restored_url(server: EmbeddedPostgres) -> Iterator[str]:
    """An empty database, to restore into."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {RESTORED} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {RESTORED}")
        yield server.url(RESTORED)
        connection.execute(f"DROP DATABASE IF EXISTS {RESTORED} WITH (FORCE)")


def sent(provider: Provider, door: Door, first: int, last: int) -> list[bytes]:
    """Payments that the provider makes and calls back for, one a minute."""
    bodies = []
    for number in range(first, last):
        door.later(minutes=1)
        at = door.deps.clock.wall()
        bodies.append(body(f"evt_{number}", "payment.succeeded", f"o_{number}", f"tx_{number}", at))
        provider.book.record_at([(bodies[-1], at)])
        assert door.demo(bodies[-1]).status_code == 200
    door.work()
    return bodies


def states(door: Door) -> dict[str, str]:
    """Each order's state."""
    return {row["reference"]: row["state"] for row in door.rows("SELECT reference, state FROM orders")}


def test_the_gap_of_a_restored_backup_is_filled(
    open_door: object, provider: Provider, restored_url: str, database_url: str, tmp_path: Path
) -> None:
    """Restore, register again what was registered since, catch up from the backup's time: the orders stand as
    before the loss, the drift report is empty, and what a provider sends again is a duplicate.
    """
    source = demo_source(api={"key": Secret("env:KEY", KEY)}, api_url=provider.url)
    door: Door = open_door(sources={"demo": source})  # type: ignore[operator]
    for number in range(BEFORE + 4):
        door.order(f"o_{number}")
    sent(provider, door, 0, BEFORE)
    backed_up_at, dump = door.deps.clock.wall(), tmp_path / "backup"
    _run("pg_dump", "-Fc", "-f", str(dump), database_url)
    for number in range(BEFORE + 4, AFTER + BEFORE):
        door.order(f"o_{number}")
    lost = sent(provider, door, BEFORE, BEFORE + AFTER)
    refund = body("evt_r", "payment.refunded", "o_1", "tx_1", door.deps.clock.wall(), refund_id="re_1")
    provider.book.record_at([(refund, door.deps.clock.wall())])
    door.demo(refund)
    door.work()
    right = states(door)
    assert right == {f"o_{n}": "paid" for n in range(BEFORE + AFTER)} | {"o_1": "refunded"}

    _run("pg_restore", "-d", restored_url, str(dump))
    settings = replace(door.deps.settings, database_url=restored_url)
    deps = Deps.build(settings, clock=FixedClock(door.deps.clock.wall()), dice=door.deps.dice)
    again = Door(deps)
    try:
        assert sum(state == "paid" for state in states(again).values()) == BEFORE
        with deps.sessions.begin() as session:
            for number in range(BEFORE + AFTER):
                register_order(
                    session, order_id=deps.dice.new_id(), reference=f"o_{number}", amount_minor=2500,
                    currency="EUR", now=deps.clock.now(),
                )  # fmt: skip
        again.later(minutes=1)
        with deps.sessions.begin() as session:
            begin_catch_up(
                session, Asker(deps), "demo", catch_up_id=deps.dice.new_id(),
                start=backed_up_at - timedelta(hours=1), end=deps.clock.wall(),
                actor="olga", reason="restored the backup", now=deps.clock.now(),
            )  # fmt: skip
        done = advance_catch_ups(deps, Asker(deps))
        assert done is not None
        assert (done.state, done.missing) == ("done", AFTER + 1)
        again.work()

        assert states(again) == right
        again.later(hours=2)
        Reconciler(deps).tick()
        again.work()
        Reconciler(deps).tick()
        assert findings(deps) == []
        assert again.demo(lost[0]).status_code == 200
        assert again.event("evt_8")["receipts"] == 2
        assert states(again) == right
    finally:
        again.close()
        deps.dispose()


def _run(program: str, *arguments: str) -> None:
    subprocess.run([binaries() / program, *arguments], check=True, capture_output=True)
