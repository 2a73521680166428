"""A light for each source and each worker, and what changed in the last hour: judgements over readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from flask import url_for

from receiver.accounts.models import OperatorAction
from receiver.alerts.models import Alert
from receiver.alerts.words import headline
from receiver.inbox.counts import Count
from receiver.inbox.history import Hour
from receiver.inbox.models import WebhookConflict, WebhookEvent
from receiver.inbox.rates import SourceRate
from receiver.inbox.readings import OVERDUE, Pending, Status
from receiver.queue.models import Worker
from receiver.web.verdict import AMBER, GREEN, LONG_PARKED, MANY_REJECTIONS, RED, SHOWN_HERE
from receiver.web.wording import share, span, words

WORDS = {GREEN: "well", AMBER: "look", RED: "stuck"}
"""What a lamp says to those who do not see its colour."""

HOUR = timedelta(hours=1)

SIGNING = "user.sign_"
"""Coming and going changes nothing."""

MOST_ACTS = 8
"""Acts of people that stand among the changes; the audit has all of them."""

LONGEST = 60
"""Characters of what an act was done on."""


@dataclass(frozen=True, slots=True)
class Light:
    """The lamp of one source or worker, why, and its page."""

    name: str
    level: str
    says: tuple[str, ...]
    href: str | None = None

    @property
    def word(self) -> str:
        """The level as a word."""
        return WORDS[self.level]


def source_lights(
    status: Status, faults: Mapping[str, Sequence[str]], alerts: Sequence[Alert] = ()
) -> list[Light]:
    """A light for every source that is configured or spoke, the worst first.

    ``alerts`` that stand open colour the lamp of the source that they name.
    """
    pending = {found.source: found for found in status.pending}
    rates = {rate.source: rate for rate in status.rates}
    dead = {group.source for group in status.dead}
    lights = [
        _source(
            name,
            status,
            pending.get(name),
            rates.get(name),
            faults.get(name, ()),
            [alert for alert in alerts if alert.key == name and alert.kind not in SHOWN_HERE],
        )
        for name in sorted({*rates, *pending, *dead})
    ]
    return sorted(lights, key=lambda light: (RED, AMBER, GREEN).index(light.level))


def _source(
    name: str,
    status: Status,
    pending: Pending | None,
    rate: SourceRate | None,
    faults: Sequence[str],
    alerts: Sequence[Alert],
) -> Light:
    told = {RED: [_told(alert) for alert in alerts if alert.level == "page"]}
    told[AMBER] = [_told(alert) for alert in alerts if alert.level != "page"]
    red = [*_red(name, status, pending), *told[RED]]
    amber = [*faults, *_amber(name, status, pending), *told[AMBER]]
    level = RED if red else AMBER if amber else GREEN
    return Light(name, level, (*red, *amber, _rate(rate)), url_for("sources.show", name=name))


def _told(alert: Alert) -> str:
    return headline(alert.kind, alert.key, alert.facts).removeprefix(f"{alert.key}: ")


def _red(name: str, status: Status, pending: Pending | None) -> list[str]:
    said = []
    dead = sum(group.count for group in status.dead if group.source == name)
    if dead:
        said.append(f"{Count(dead, status.dead_more)} dead letter{_s(dead)}")
    if pending is not None and pending.due_since and status.now - pending.due_since > OVERDUE:
        said.append(f"due for {span((status.now - pending.due_since).total_seconds())} and not taken")
    if pending is not None and "refund_exceeds_captured" in pending.parked:
        said.append("more refunded than captured")
    return said


def _amber(name: str, status: Status, pending: Pending | None) -> list[str]:
    said = []
    pause = next((found for found in status.pauses if found.key == name), None)
    if pause is not None:
        since = span((status.now - pause.paused_at).total_seconds())
        said.append(f"paused for {since}, {status.held.get(name) or 'nothing'} held")
    if pending is not None and pending.retrying:
        said.append(f"{pending.retrying} retrying")
    parked = sum(
        group.count
        for group in status.parked_groups
        if group.source == name and pause is None and status.now - group.since > LONG_PARKED
    )
    if parked:
        said.append(f"{parked} parked for long")
    for rejected in status.rejections:
        if rejected.source == name and rejected.count >= MANY_REJECTIONS:
            said.append(f"{rejected.count} rejected: {words(rejected.reason)}")
    return said


def _rate(rate: SourceRate | None) -> str:
    if rate is None or not (rate.received or rate.processed or rate.dead):
        return "nothing in the last hour"
    ended = "" if rate.success is None else f", {share(rate.success)} of the ended ones processed"
    return f"{rate.received:,} received in the last hour{ended}"


def worker_lights(workers: Iterable[Worker], *, now: datetime, stale: timedelta) -> list[Light]:
    """A light for every worker that was seen in the last day: green while it is heard."""
    lights = []
    for worker in workers:
        silent = now - worker.last_seen_at
        seen = f"seen {span(max(0.0, silent.total_seconds()))} ago"
        age = span(max(0.0, (now - worker.started_at).total_seconds()))
        where = f"{worker.host}, process {worker.pid}, started {age} ago"
        if silent > stale:
            lights.append(Light(worker.name, RED, (f"silent: {seen}", where)))
        else:
            lights.append(Light(worker.name, GREEN, (seen, where)))
    return lights


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changed: when (None: over the hour), in words, and the page of it."""

    at: datetime | None
    text: str
    href: str
    level: str = GREEN


def changes(
    status: Status,
    hours: tuple[Hour, Hour],
    conflicts: Sequence[tuple[WebhookConflict, WebhookEvent]],
    acts: Sequence[OperatorAction],
) -> list[Change]:
    """What changed in the hour before: what was counted, then what happened, newest first."""
    since = status.now - HOUR
    happened = [
        *(
            Change(act.at, _act(act), url_for("audit.page", target=act.target))
            for act in _done_since(acts, since)[:MOST_ACTS]
        ),
        *(
            Change(worker.started_at, f"Worker {worker.name} started.", "#workers")
            for worker in status.workers
            if worker.started_at >= since
        ),
        *(
            Change(
                conflict.first_seen_at,
                f"{event.provider_event_id} came again with other facts.",
                f"/conflicts/{conflict.id}",
                RED,
            )
            for conflict, event in conflicts
            if conflict.first_seen_at >= since
        ),
    ]
    return [*_counted(*hours), *sorted(happened, key=lambda change: change.at or since, reverse=True)]


def _done_since(acts: Sequence[OperatorAction], since: datetime) -> list[OperatorAction]:
    return [act for act in acts if act.at >= since and not act.action.startswith(SIGNING)]


def _counted(last: Hour, before: Hour) -> list[Change]:
    said = []
    for group, text, href, level in (
        ("received", "received", "/events", GREEN),
        ("applied", "applied", "/events?outcome=applied", GREEN),
        ("dead", "ended dead", "/failures", RED),
        ("rejected", "rejected at the door", "/rejections", AMBER),
    ):
        now, then = last.of(group), before.of(group)
        if now or then:
            said.append(
                Change(None, f"{now:,} {text}; {_against(now, then)}.", href, level if now else GREEN)
            )
    return said


def _against(now: int, then: int) -> str:
    if now == then:
        return "as in the hour before"
    if not then:
        return "none in the hour before"
    return f"{abs(now - then):,} {'more' if now > then else 'fewer'} than in the hour before ({then:,})"


def _act(act: OperatorAction) -> str:
    many = f" of {act.count:,}" if act.count != 1 else ""
    target = act.target if len(act.target) <= LONGEST else f"{act.target[:LONGEST]}…"
    return f"{act.actor}: {words(act.action).replace('.', ' ')}{many}, {target}"


def _s(number: int) -> str:
    return "" if number == 1 else "s"
