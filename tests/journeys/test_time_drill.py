"""The drill of time, with real processes over simulated days: a provider that drops, delays and repeats its
callbacks, a source that goes silent, and ninety days later an archive that still answers.

`DRILL_ORDERS=10000` runs it at full size. Time is what stands in a file that web, worker and test read; no
row is ever back-dated, and nothing is claimed while the clock is moved.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from receiver.db import make_engine
from receiver.deps import Deps
from receiver.inbox.register_order import register_order
from receiver.inbox.replay import replay_event
from receiver.reconciliation.ask import Asker
from receiver.reconciliation.catch_up import begin_catch_up
from receiver.retention.archive import verify_file
from receiver.retention.restore import restore_event
from receiver.retention.turn import archive_of
from receiver.settings import Settings
from tests import posting
from tests.conftest import DEMO_SECRET
from tests.doors import BETA_SECRET
from tests.journeys.drilled import FileClock
from tests.reconciliation.provider import KEY, Provider, body, run_provider
from tests.running import Web, new_database, rows, run_web, run_worker, wait_for

ORDERS = int(os.environ.get("DRILL_ORDERS", "1500"))
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURS = 84
LATEST = 12
"""Hours by which a callback is late at most."""
SILENT = range(54, 70)
"""Hours in which the source beta, which has spoken every hour before, sends nothing."""


def sources_of(providers: dict[str, Provider]) -> str:
    """Two accounts at the demo provider, each with an API of its own."""
    return "".join(
        f'[sources.{name}]\nprovider = "demo"\nsecrets = ["env:{name.upper()}_SECRET"]\n'
        f'api = {{ key = "env:API_KEY" }}\napi_url = "{provider.url}"\n'
        for name, provider in providers.items()
    )


@dataclass
class Story:
    """What happens at the provider: per hour the orders, the record, and what is sent."""

    orders: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    record: dict[int, list[tuple[str, bytes]]] = field(default_factory=lambda: defaultdict(list))
    sent: dict[int, list[tuple[str, bytes]]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[str, str] = field(default_factory=dict)
    dropped: int = 0
    delayed: int = 0
    twice: int = 0


def write_story(seed: int) -> Story:
    """5 % of the callbacks dropped, 5 % delayed by hours, 2 % sent twice, all in random order."""
    chance, story = random.Random(seed), Story()
    for number in range(ORDERS):
        order, hour = f"ord_{number}", number * HOURS // ORDERS
        source = "beta" if number % 5 == 0 else "demo"
        story.orders[hour].append(order)
        kinds, story.ends[order] = chance.choices(
            [
                (["payment.succeeded"], "paid"),
                (["payment.authorized", "payment.captured"], "paid"),
                (["payment.succeeded", "payment.refunded"], "refunded"),
                (["payment.failed"], "failed"),
            ],
            weights=[90, 4, 4, 2],
        )[0]
        for step, kind in enumerate(kinds):
            at = BEGIN + hour * HOUR
            parts = {"capture_id": f"cap_{number}", "refund_id": f"ref_{number}"}
            text = body(f"evt_{number}_{step}", kind, order, f"tx_{number}", at, **parts)
            story.record[hour].append((source, text))
            _send(story, chance, source, text, hour)
    for posts in story.sent.values():
        chance.shuffle(posts)
    return story


def _send(story: Story, chance: random.Random, source: str, text: bytes, hour: int) -> None:
    fate = chance.random()
    if fate < 0.05 or (source == "beta" and hour in SILENT):
        story.dropped += 1
    elif fate < 0.10:
        later = hour + chance.randint(2, LATEST)
        if source != "beta" or later not in SILENT:
            story.delayed += 1
            story.sent[later].append((source, text))
        else:
            story.dropped += 1
    else:
        times = 2 if fate < 0.12 else 1
        story.twice += times - 1
        story.sent[hour] += [(source, text)] * times


class Drill:
    """The running service, its two providers, and the time that all of them read."""

    def __init__(self, web: Web, clock: FileClock, deps: Deps, providers: dict[str, Provider]) -> None:
        self.web, self.clock, self.deps, self.providers = web, clock, deps, providers
        self.pool = ThreadPoolExecutor(4)
        self.http = requests.Session()
        self.http.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=4))
        self.answers: Counter[int] = Counter()

    def hour(self, story: Story, hour: int) -> None:
        """Let an hour come: orders are registered, the provider records, and sends what it sends."""
        at = BEGIN + hour * HOUR
        self.move(at)
        with self.deps.sessions.begin() as session:
            for reference in story.orders.get(hour, ()):
                register_order(
                    session,
                    order_id=self.deps.dice.new_id(),
                    reference=reference,
                    amount_minor=2500,
                    currency="EUR",
                    sources=["beta" if int(reference[4:]) % 5 == 0 else "demo"],
                    now=at,
                )
        for name, provider in self.providers.items():
            told = story.record.get(hour, ())
            provider.book.record_at((text, at) for source, text in told if source == name)
        self.answers.update(self.pool.map(lambda one: self.post(*one), story.sent.get(hour, ())))
        self.quiet()

    def post(self, source: str, text: bytes) -> int:
        """Send one callback, signed at the drill's time."""
        secret = BETA_SECRET if source == "beta" else DEMO_SECRET
        headers = posting.demo(text, secret=secret, at=int(self.clock.unix()))
        url = f"{self.web.url}/webhooks/{source}"
        return self.http.post(url, data=text, headers=headers, timeout=30).status_code

    def move(self, at: datetime) -> None:
        """Set the clock."""
        self.clock.set(at)

    def quiet(self, seconds: float = 60) -> None:
        """Wait until everything that is due now is done."""
        busy = (
            "SELECT (SELECT count(*) FROM webhook_events WHERE state IN ('pending', 'in_flight')"
            " AND parked_reason IS NULL) + (SELECT count(*) FROM order_checks WHERE claim_id IS NOT NULL"
            " OR next_check_at <= %(now)s) + (SELECT count(*) FROM catch_ups WHERE state = 'running') AS n"
        )
        now = self.clock.now()
        wait_for(lambda: self.web.rows(busy, {"now": now})[0]["n"] == 0, seconds, "nothing is due")

    def count(self, statement: str, **parameters: Any) -> int:
        """A number of the database."""
        return int(self.web.rows(statement, parameters)[0]["n"])


@contextlib.contextmanager
def run_drill(url: str, folder: Path) -> Iterator[Drill]:
    """The web and a worker as real processes, two providers with an API each, and one clock."""
    clock = FileClock(folder / "clock")
    clock.set(BEGIN)
    with contextlib.ExitStack() as stack:
        providers = {}
        for name in ("demo", "beta"):
            (folder / name).mkdir()
            providers[name] = stack.enter_context(run_provider(folder / name))
        sources = sources_of(providers)
        environment = {
            "DRILL_CLOCK": str(folder / "clock"),
            "API_KEY": KEY,
            "ARCHIVE_URL": str(folder / "archive"),
            "ALERT_LOOK_SECONDS": "0.3",
            "LOG_LEVEL": "WARNING",
        }
        web = stack.enter_context(
            run_web(
                url,
                sources=sources,
                environment=environment,
                application="tests.journeys.drilled:make()",
            )
        )
        stack.enter_context(
            run_worker(
                url,
                sources=sources,
                environment={**environment, "LOG_LEVEL": "INFO"},
                program=("-m", "tests.journeys.drilled"),
            )
        )
        path = folder / "sources.toml"
        path.write_text(sources)
        settings = Settings.from_env(
            {
                **environment,
                "DATABASE_URL": url,
                "RECEIVER_SOURCES": str(path),
                "DEMO_SECRET": DEMO_SECRET,
                "BETA_SECRET": BETA_SECRET,
            }
        )
        deps = Deps.build(settings, clock=clock, engine=make_engine(url))
        stack.callback(deps.dispose)
        yield Drill(web, clock, deps, providers)


@pytest.mark.slow
def test_days_of_lost_callbacks_and_ninety_days_later(server: Any, tmp_path: Path) -> None:
    """Every order ends as the provider's record says, by reconciliation and catch-up alone; the silence is
    told once and its end once; the archive holds every payload, and a late duplicate is still one.
    """
    story = write_story(20260302)
    with new_database(server) as url, run_drill(url, tmp_path) as drill:
        for hour in range(HOURS):
            drill.hour(story, hour)
            if hour == SILENT[-2]:
                wait_for(lambda: _silences(drill, "closed_at IS NULL"), 20, "the silence is told")
        _recovered(drill)
        for hour in range(HOURS, HOURS + LATEST + 1):
            drill.hour(story, hour)
        assert set(drill.answers) == {200}
        _catch_up(drill)
        _equals_the_record(drill, story)
        _ninety_days_later(drill, story)


def _silences(drill: Drill, condition: str = "true") -> int:
    return drill.count(
        "SELECT count(*) AS n FROM alerts WHERE kind = 'silence' AND key = 'beta'"
        f" AND opened_at IS NOT NULL AND {condition}"
    )


def _recovered(drill: Drill) -> None:
    """The silence of beta was one alert, it is over, and nobody else was held for silent."""
    wait_for(lambda: _silences(drill, "closed_at IS NOT NULL"), 20, "the silence is over")
    assert drill.count("SELECT count(*) AS n FROM alerts WHERE kind = 'silence'") == 1


def _catch_up(drill: Drill) -> None:
    """What was lost of orders that were paid already (a refund) only a list of the events can tell."""
    with drill.deps.sessions.begin() as session:
        for name in drill.providers:
            begin_catch_up(
                session,
                Asker(drill.deps),
                name,
                catch_up_id=drill.deps.dice.new_id(),
                start=BEGIN - HOUR,
                end=drill.clock.now(),
                actor="olga",
                reason="the drill",
                now=drill.clock.now(),
            )
    drill.quiet()
    for _ in range(3):
        drill.move(drill.clock.now() + timedelta(minutes=2))
        drill.quiet()


def _equals_the_record(drill: Drill, story: Story) -> None:
    """Each order stands where the provider's record says; nothing differs, and nothing is dead."""
    states = {row["reference"]: row["state"] for row in drill.web.rows("SELECT reference, state FROM orders")}
    assert {one: states[one] for one in states if states[one] != story.ends[one]} == {}
    assert len(states) == ORDERS
    wait_for(
        lambda: not drill.count("SELECT count(*) AS n FROM drift_findings WHERE closed_at IS NULL"),
        20,
        "the drift report is empty",
    )
    assert drill.count("SELECT count(*) AS n FROM webhook_events WHERE state IN ('failed', 'expired')") == 0
    assert drill.count("SELECT count(*) AS n FROM order_transitions WHERE by = 'reconcile'") > ORDERS // 50
    doubled = (
        "SELECT count(*) AS n FROM (SELECT order_id, kind FROM ledger_entries"
        " GROUP BY order_id, kind HAVING count(*) > 1) d"
    )
    assert drill.count(doubled) == 0
    assert min(story.dropped, story.delayed, story.twice) > 0


def _ninety_days_later(drill: Drill, story: Story) -> None:
    """The payloads are in the archive and checked; a restored one replays as repeat; a duplicate is one."""
    at = drill.clock.now() + timedelta(days=91)

    def erased() -> bool:
        nonlocal at
        drill.move(at)
        at += timedelta(hours=2)
        left = "SELECT count(*) AS n FROM webhook_payloads"
        with contextlib.suppress(AssertionError):
            wait_for(lambda: drill.count(left) == 0, 2)
        return drill.count(left) == 0

    wait_for(erased, 60, "every payload is archived and erased")
    drill.quiet()
    archive = archive_of(drill.deps)
    assert archive is not None
    files = [row["id"] for row in drill.web.rows("SELECT id FROM archive_files ORDER BY id")]
    checked = sum(verify_file(drill.deps, archive, file_id) for file_id in files)
    first = next(text for posts in story.sent.values() for source, text in posts if source == "demo")
    event_id = first.decode().split('"id": "')[1].split('"')[0]
    found = "SELECT id, receipts, row_version, outcome FROM webhook_events WHERE provider_event_id = %(id)s"
    (event,) = drill.web.rows(found, {"id": event_id})
    assert checked == drill.count("SELECT count(*) AS n FROM webhook_events WHERE origin IS NULL")

    restore_event(drill.deps, archive, event["id"], actor="olga", reason="the drill")
    with drill.deps.sessions.begin() as session:
        replay_event(
            session,
            event["id"],
            row_version=event["row_version"],
            actor="olga",
            reason="the drill",
            admin=True,
            now=drill.clock.now(),
        )
    outcome: Callable[[], Any] = lambda: drill.web.rows(found, {"id": event_id})[0]["outcome"] == "repeat"  # noqa: E731
    wait_for(outcome, 20, "the restored event is a repeat")
    before = drill.count("SELECT count(*) AS n FROM webhook_events")
    assert drill.post("demo", first) == 200
    assert drill.web.rows(found, {"id": event_id})[0]["receipts"] == event["receipts"] + 1
    assert drill.count("SELECT count(*) AS n FROM webhook_events") == before
    assert rows(drill.web.database_url, "SELECT 1 FROM ledger_entries LIMIT 1")
