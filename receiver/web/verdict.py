"""The traffic light: is money stuck? A pure judgement over what was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from receiver.alerts.models import Alert
from receiver.alerts.words import headline
from receiver.inbox.filter import Filter
from receiver.inbox.readings import Status
from receiver.web.wording import span, words

GREEN, AMBER, RED = "green", "amber", "red"

LONG_PARKED = timedelta(minutes=10)
"""An order is usually registered well before this; longer waits want a look."""

MANY_REJECTIONS = 5
"""Refused posts of one source and reason in an hour that are no longer a stray."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of what is wrong, and the page that shows it."""

    level: str
    text: str
    href: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The worst level, its headline, and all findings, the worst first."""

    level: str
    headline: str
    findings: tuple[Finding, ...]


SHOWN_HERE = frozenset({"no_worker", "backlog", "dead_letters", "expiring", "conflict", "rejections"})
"""Alerts whose readings the status shows by itself, also while nobody keeps alerts."""

HEADLINES = {
    GREEN: "Money is moving",
    AMBER: "Money is moving; something wants a look",
    RED: "Money may be stuck",
}


def judge(status: Status, source_faults: Mapping[str, list[str]], alerts: Sequence[Alert] = ()) -> Verdict:
    """Judge a status. ``source_faults`` are the sentences about each source's settings.

    Of ``alerts``, those that stand open, what the status does not show itself is added.
    """
    told = [_alert(alert) for alert in alerts if alert.kind not in SHOWN_HERE]
    findings = [
        *_red(status),
        *(finding for finding in told if finding.level == RED),
        *_amber(status, source_faults),
        *(finding for finding in told if finding.level == AMBER),
    ]
    level = findings[0].level if findings else GREEN
    return Verdict(level, HEADLINES[level], tuple(findings))


def _alert(alert: Alert) -> Finding:
    level = RED if alert.level == "page" else AMBER
    says = headline(alert.kind, alert.key, alert.facts)
    return Finding(level, f"{says[:1].upper()}{says[1:]}.", "/alerts")


def _red(status: Status) -> list[Finding]:
    found = []
    if not status.workers_alive:
        found.append(
            Finding(RED, "No worker is alive: events are stored, and nothing is applied.", "#workers")
        )
    if status.overdue_since is not None and status.workers_alive:
        age = span((status.now - status.overdue_since).total_seconds())
        found.append(
            Finding(RED, f"An event is due for {age} and no worker takes it.", "/events?state=pending")
        )
    if status.dead_total:
        one = status.dead_total.number == 1 and not status.dead_total.more
        text = (
            "1 event was refused or ran out of time: it needs a person."
            if one
            else f"{status.dead_total} events were refused or ran out of time: they need a person."
        )
        found.append(Finding(RED, text, "/failures"))
    exceeding = [group for group in status.parked_groups if group.reason == "refund_exceeds_captured"]
    for group in exceeding:
        text = f"More was refunded than captured on {group.order_reference or group.transaction_id}."
        found.append(Finding(RED, text, f"/events/{group.event_id}"))
    if status.open_conflicts:
        number = status.open_conflicts
        text = f"{number} open conflict{_s(number.number)}: an event id came again with other facts."
        found.append(Finding(RED, text, "#conflicts"))
    if status.lease_over:
        found.append(
            Finding(RED, f"{status.lease_over} in flight beyond their lease.", "/events?state=in_flight")
        )
    return found


def _amber(status: Status, source_faults: Mapping[str, list[str]]) -> list[Finding]:
    found = []
    for name, faults in source_faults.items():
        found += [Finding(AMBER, f"Source {name}: {fault}.", f"/sources/{name}") for fault in faults]
    retrying = sum(pending.retrying for pending in status.pending)
    if retrying:
        text = f"{retrying} event{_s(retrying)} failed for a passing reason and will be tried again."
        found.append(Finding(AMBER, text, "/events?state=pending"))
    paused = {pause.key for pause in status.pauses}
    long_parked = [
        group
        for group in status.parked_groups
        if group.reason != "refund_exceeds_captured"
        and group.source not in paused
        and status.now - group.since > LONG_PARKED
    ]
    if long_parked:
        number = sum(group.count for group in long_parked)
        found.append(
            Finding(AMBER, f"{number} event{_s(number)} parked for more than 10 minutes.", "/events?parked=1")
        )
    if status.expiring:
        number = sum(soon.count for soon in status.expiring)
        first = span((status.expiring[0].first - status.now).total_seconds())
        text = f"{number} event{_s(number)} will expire within {span(status.soon.total_seconds())}"
        text += f", the first in {first}."
        until = Filter(expires_before=status.now + status.soon)
        found.append(Finding(AMBER, text, "/events?" + urlencode(until.as_query())))
    for pause in status.pauses:
        held = status.held.get(pause.key)
        text = f"Source {pause.key} is paused by {pause.by}: {held or 'nothing'} held so far."
        found.append(Finding(AMBER, text, f"/sources/{pause.key}"))
    for rejected in status.rejections:
        if rejected.count >= MANY_REJECTIONS and not rejected.source.startswith("("):
            text = f"Source {rejected.source}: {rejected.count} rejected in the last hour, "
            text += f"{words(rejected.reason)}."
            found.append(Finding(AMBER, text, f"/sources/{rejected.source}"))
    return found


def _s(number: int) -> str:
    return "" if number == 1 else "s"
