"""`/metrics` for Prometheus, right under several processes: every number is read from the database.

A scrape builds its own registry from the roll-up and the queue's indexes, so that it does not
matter which process answers.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from flask import Blueprint, Response, current_app
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.alerts.list_alerts import open_alerts
from receiver.alerts.models import Alert
from receiver.alerts.read import read_channels
from receiver.inbox.hours import BUCKET_SUMS, MARK
from receiver.inbox.minutes import BOUNDS_MS
from receiver.inbox.rates import DEAD, RECEIVED, add_buckets
from receiver.inbox.readings import Status, read_status
from receiver.web.current import current_deps, statement_time, transaction
from receiver.web.order_api import ApiError, check_bearer, refuse

blueprint = Blueprint("metrics", __name__)
blueprint.register_error_handler(ApiError, refuse)

SETTLED = timedelta(hours=2)
"""Minutes older than this change no more: each process keeps their sums and reads only newer ones."""

FRESH = timedelta(days=1)
"""A process that was not scraped for longer begins anew by the hours: its next minutes may be pruned."""


ENDED = frozenset({"applied", "repeat", "stale", "ignored", *DEAD})
"""Results that are ends; a parked or retried event is none yet."""


class Times(NamedTuple):
    """A histogram over BOUNDS_MS: the sum of all times, and how many fell into each bucket."""

    total_ms: int
    buckets: tuple[int, ...]


@dataclass
class Totals:
    """Sums over `inbox_hours` and `inbox_minutes` up to a minute.

    ``times`` by source and what was timed: `answer`, from a post's body to its commit, or `applied`.
    """

    until: datetime | None = None
    counts: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    times: dict[tuple[str, str], Times] = field(default_factory=dict)

    def copy(self) -> Totals:
        """Sums to go on from."""
        return Totals(
            self.until,
            defaultdict(int, self.counts),
            dict(self.times),
        )

    def add(self, session: Session, until: datetime) -> None:
        """Add what was counted from where the sums end to ``until`` (exclusive); at first all the hours."""
        if self.until is None:
            self._add_rows(session.execute(_HOURS, {"until": until}))
        self._add_rows(session.execute(_MINUTES, {"since": self.until, "until": until}))
        self.until = until

    def _add_rows(self, rows: Iterable[Any]) -> None:
        for source, result, number, total_ms, sums in rows:
            self.counts[source, result] += int(number)
            what = "answer" if result in RECEIVED else result
            if what in ("answer", "applied"):
                known = self.times.get((source, what), Times(0, ()))
                buckets = add_buckets((known.buckets, [int(each or 0) for each in sums]))
                self.times[source, what] = Times(known.total_ms + int(total_ms), tuple(buckets))


# Hours are summed up in whole, so those up to the one of `until` count, and the minutes from there on.
_FIRST_MINUTE = f"least(date_trunc('hour', CAST(:until AS timestamptz), 'UTC'), {MARK})"
_SUMS = f"source, result, sum(count), sum(total_ms), ARRAY[{BUCKET_SUMS}]::bigint[]"
_HOURS = text(f"SELECT {_SUMS} FROM inbox_hours WHERE hour < {_FIRST_MINUTE} GROUP BY 1, 2")
_MINUTES = text(
    f"SELECT {_SUMS} FROM inbox_minutes WHERE minute < :until"
    f" AND minute >= coalesce(CAST(:since AS timestamptz), {_FIRST_MINUTE}) GROUP BY 1, 2"
)


class SettledTotals:
    """The settled sums of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals = Totals()

    def read(self, session: Session, now: datetime) -> Totals:
        """All sums up to now; what is settled is read once."""
        settled_until = (now - SETTLED).replace(second=0, microsecond=0)
        with self._lock:
            if self._totals.until is not None and settled_until - self._totals.until > FRESH:
                self._totals = Totals()
            if self._totals.until is None or self._totals.until < settled_until:
                self._totals.add(session, settled_until)
            totals = self._totals.copy()
        totals.add(session, now + timedelta(hours=1))
        return totals


@blueprint.get("/metrics")
def scrape() -> Response:
    """One scrape; needs a token with the scope `metrics`."""
    check_bearer("metrics")
    settings = current_deps().settings
    settled: SettledTotals = current_app.extensions["settled_totals"]
    with transaction() as session:
        status = read_status(
            session,
            stale=settings.worker_stale,
            sources=settings.sources,
            soon=settings.soon,
            now=statement_time(),
        )
        alerts = open_alerts(session)
        waiting = {channel.name: channel.waiting for channel in read_channels(session)}
        totals = settled.read(session, status.now)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Reading(status, totals))
    # A channel that has nothing to tell is there at zero, so that a rule sees it fall and recover.
    told = {channel.name: waiting.get(channel.name, 0) for channel in settings.alerts.channels}
    registry.register(_Alerts(alerts, {**waiting, **told}))
    return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Reading(Collector):
    """One reading as metric families."""

    def __init__(self, status: Status, totals: Totals) -> None:
        self._status = status
        self._totals = totals

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield from self._counters()
        yield from self._queue()
        yield self._times(
            "answer", "webhook_time_to_answer_seconds", "From a post's last byte to its commit, if stored."
        )
        yield self._times("applied", "webhook_time_to_applied_seconds", "From receipt to applied.")

    def _counters(self) -> Iterator[Metric]:
        received = CounterMetricFamily(
            "webhook_events_received", "Stored posts by what they were.", labels=["source", "result"]
        )
        ended = CounterMetricFamily(
            "webhook_events_ended", "Events that ended, by outcome.", labels=["source", "outcome"]
        )
        rejected = CounterMetricFamily("webhook_rejections", "Refused posts.", labels=["source"])
        failed = dict.fromkeys(DEAD, 0)
        for (source, result), number in sorted(self._totals.counts.items()):
            if result in RECEIVED:
                received.add_metric([source, result], number)
            elif result == "rejected":
                rejected.add_metric([source], number)
            elif result in ENDED:
                ended.add_metric([source, result], number)
                if result in DEAD:
                    failed[result] += number
        dead = CounterMetricFamily(
            "webhook_events_failed", "Events that became dead letters.", labels=["state"]
        )
        deliveries = CounterMetricFamily(
            "webhook_deliveries_failed", "Deliveries that became dead letters.", labels=["state"]
        )
        for state, number in failed.items():
            dead.add_metric([state], number)
            deliveries.add_metric([state], 0)
        yield from (received, ended, rejected, dead, deliveries)

    def _queue(self) -> Iterator[Metric]:
        status = self._status
        pending = GaugeMetricFamily(
            "webhook_events_pending",
            "Pending events, counted up to 10,000 a source.",
            labels=["source", "why"],
        )
        for row in status.pending:
            parts = {"fresh": row.fresh, "retrying": row.retrying, "held": row.held}
            parts["parked"] = sum(row.parked.values())
            for why, number in parts.items():
                pending.add_metric([row.source, why], number)
        dead = GaugeMetricFamily(
            "webhook_events_dead",
            "Dead letters that nobody acknowledged, counted up to 10,000.",
            labels=["source", "state", "reason"],
        )
        for group in status.dead:
            dead.add_metric([group.source, group.state, group.reason], group.count)
        yield pending
        yield dead
        expiring = GaugeMetricFamily(
            "webhook_events_expiring", "Pending events that expire soon.", labels=["source"]
        )
        for soon in status.expiring:
            expiring.add_metric([soon.source], soon.count)
        yield expiring
        gauges = {
            "webhook_events_in_flight": ("Events that a worker holds.", status.in_flight.number),
            "webhook_oldest_pending_seconds": (
                "Age of the oldest pending event that is not held.",
                _age(status, status.oldest_pending_at),
            ),
            "webhook_overdue_seconds": (
                "For how long an event is due that nobody takes, beyond a minute.",
                _age(status, status.overdue_since),
            ),
            "webhook_workers_alive": ("Workers seen lately.", status.workers_alive),
            "webhook_conflicts_open": ("Conflicts that nobody settled.", status.open_conflicts.number),
            "webhook_sources_paused": ("Paused sources.", len(status.pauses)),
        }
        for name, (words, value) in gauges.items():
            yield GaugeMetricFamily(name, words, value=value)

    def _times(self, what: str, name: str, words: str) -> Metric:
        family = HistogramMetricFamily(name, words, labels=["source"])
        for (source, timed), times in sorted(self._totals.times.items()):
            if timed != what:
                continue
            passed, bounded = 0, []
            for bound, number in zip((*BOUNDS_MS, None), times.buckets, strict=True):
                passed += number
                bounded.append(("+Inf" if bound is None else str(bound / 1000), passed))
            family.add_metric([source], bounded, sum_value=times.total_ms / 1000)
        return family


class _Alerts(Collector):
    """Alerts that stand open, and what waits to be told."""

    def __init__(self, alerts: Iterable[Alert], waiting: Mapping[str, int]) -> None:
        self._alerts = alerts
        self._waiting = waiting

    def collect(self) -> Iterator[Metric]:
        """Both families; as many series as there are kinds of alerts, sources and channels."""
        standing = GaugeMetricFamily(
            "webhook_alerts_open", "Alerts that stand open.", labels=["kind", "key", "level"]
        )
        for alert in self._alerts:
            standing.add_metric([alert.kind, alert.key, alert.level], 1)
        yield standing
        notices = GaugeMetricFamily(
            "webhook_alert_notices_waiting",
            "Notices of alerts that their channel did not take yet.",
            labels=["channel"],
        )
        for channel, number in sorted(self._waiting.items()):
            notices.add_metric([channel], number)
        yield notices


def _age(status: Status, since: datetime | None) -> float:
    return 0.0 if since is None else max(0.0, (status.now - since).total_seconds())
