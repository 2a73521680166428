"""The text of an alert: what, since when, why, until when we go on trying, what to do, and where to look.

It says what is ours to say: names from the settings, reason codes, counts, times and links. Nothing that a
stranger or a provider wrote, so that no payload, secret or foreign markup reaches a mail or a chat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from receiver.alerts.examples import Example, Examples
from receiver.alerts.turns import Turn

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class About:
    """What an alert is about. ``turn`` is why it is told now, ``ends`` what became of events meanwhile."""

    kind: str
    key: str
    level: str
    step: int
    turn: Turn
    since: datetime
    now: datetime
    facts: Facts
    give_up: timedelta
    examples: Examples = field(default_factory=Examples)
    ends: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class _Words:
    """Of a kind: the headline, until when we go on trying, what to do, and the page to open."""

    says: Callable[[str, Facts], str]
    trying: str
    do: str
    page: str


def headline(kind: str, key: str, facts: Facts) -> str:
    """What is wrong, in one line."""
    return _of(kind).says(key, facts)


def advice(kind: str) -> str:
    """What to do about a kind."""
    return _of(kind).do


def page_of(kind: str, key: str) -> str:
    """The path of the page that shows it."""
    return _of(kind).page.format(key=quote(key, safe=""))


def compose(about: About, public_url: str = "") -> tuple[str, str]:
    """Subject and body of a notice. Without ``public_url`` links are paths."""
    words = _of(about.kind)
    says = words.says(about.key, about.facts)
    if about.turn is Turn.RECOVERED:
        return f"[Receiver] over: {says}", "\n".join(_recovered(about, says, public_url))
    urgent = "URGENT " if about.level == "page" else ""
    marked = {Turn.WORSE: "worse: ", Turn.REMINDER: "still: "}.get(about.turn, "")
    return f"[Receiver] {urgent}{marked}{says}", "\n".join(_open(about, says, words, public_url))


def _open(about: About, says: str, words: _Words, public_url: str) -> list[str]:
    lines = [f"{says}.", ""]
    lines.append(f"Since: {_time(about.since)} ({length(about.now - about.since)})")
    if about.key:
        lines.append(f"About: {about.key}")
    if about.examples.reasons:
        lines.append(f"Last reasons: {', '.join(about.examples.reasons)}")
    lines.append(f"How long we go on: {words.trying.format(give_up=length(about.give_up))}")
    lines += [f"What to do: {words.do}", f"Page: {_link(public_url, page_of(about.kind, about.key))}"]
    if about.examples.events:
        lines += ["", "Last events:"]
        lines += [_event(event, public_url) for event in about.examples.events]
    return lines


def _recovered(about: About, says: str, public_url: str) -> list[str]:
    lines = [
        f"Over: {says}.",
        "",
        f"From {_time(about.since)} to {_time(about.now)} ({length(about.now - about.since)}).",
    ]
    if about.ends is not None:
        counted = ", ".join(f"{number:,} {result}" for result, number in sorted(about.ends.items()))
        lines.append(f"Events of {about.key} that ended in this time: {counted or 'none'}.")
        if about.ends.get("failed") or about.ends.get("expired"):
            page = _link(public_url, f"/failures?source={quote(about.key, safe='')}")
            lines.append(f"Failed and expired ones wait for a person, who may replay them: {page}")
    lines.append(f"Page: {_link(public_url, page_of(about.kind, about.key))}")
    return lines


def _event(event: Example, public_url: str) -> str:
    why = f", {event.why}" if event.why else ""
    until = f", tried until {_time(event.give_up_at)}" if event.state in ("pending", "in_flight") else ""
    link = _link(public_url, f"/events/{event.id}")
    return f"- {event.source}: {event.state}{why}, received {_time(event.received_at)}{until}: {link}"


def _link(public_url: str, path: str) -> str:
    return f"{public_url}{path}"


def _time(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def length(span: timedelta) -> str:
    """A length of time in its largest unit, or its two largest."""
    seconds = max(0, int(span.total_seconds()))
    days, hours, minutes = seconds // 86400, seconds // 3600, seconds // 60
    if days >= 3:
        return f"{days} days"
    if hours:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"


def _counts(reasons: Mapping[str, int]) -> str:
    ordered = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(f"{number:,} {reason}" for reason, number in ordered[:4])
    return f"{shown} and other reasons" if len(ordered) > 4 else shown


def _dead_letters(key: str, facts: Facts) -> str:
    reasons: Mapping[str, int] = facts.get("reasons", {})
    total = sum(reasons.values())
    expired = f", {facts['expired']:,} of them expired" if facts.get("expired") else ""
    need = "needs" if total == 1 else "need"
    return f"{key}: {total:,} dead letter{_s(total)} {need} a person ({_counts(reasons)}{expired})"


def _source_failing(key: str, facts: Facts) -> str:
    parts = [f"{facts.get('dead', 0):,} failed", f"{facts.get('retrying', 0):,} tried again"]
    return f"{key}: nothing succeeds ({', '.join(parts)})"


def _silence(key: str, facts: Facts) -> str:
    last = f" since {facts['last']}" if facts.get("last") else ""
    return f"{key}: nothing received{last}, and it usually speaks at this time"


def _rejections(key: str, facts: Facts) -> str:
    reasons: Mapping[str, int] = facts.get("reasons", {})
    return f"{key}: {sum(reasons.values()):,} rejected in 10 minutes, reason {_counts(reasons)}"


def _clock_skew(key: str, facts: Facts) -> str:
    seconds = facts.get("seconds") or 0
    side = "ahead" if seconds > 0 else "behind"
    if not key:
        return f"this host's clock is {abs(seconds):,} s {side} of the database's"
    return f"{key}: timestamps are {abs(seconds):,} s {side} of our clock, and are refused for it"


def _no_worker(_key: str, facts: Facts) -> str:
    if facts.get("alive"):
        return "the workers live, and their scheduler stands still: events are stored and not applied"
    return "no worker is alive: events are stored, and nothing is applied"


def _dead_rate(_key: str, facts: Facts) -> str:
    sources: Mapping[str, int] = facts.get("sources", {})
    total, many = sum(sources.values()), len(sources)
    return f"{total:,} events died in 15 minutes over {many} sources: {_counts(sources)}"


def _channel_down(key: str, facts: Facts) -> str:
    waiting = facts.get("waiting", 0)
    return f"alerts cannot be told over {key}: {waiting:,} waiting"


def _expiring(key: str, facts: Facts) -> str:
    number = facts.get("count", 0)
    return f"{key}: {number:,} event{_s(number)} will soon expire, the first at {facts.get('first')}"


def _drift(key: str, facts: Facts) -> str:
    number = facts.get("count", 0)
    return f"{key}: {number:,} payment{_s(number)} differ from the provider's record"


def _s(number: int) -> str:
    return "" if number == 1 else "s"


_STORED = "events are stored and wait; each is tried for {give_up} from its receipt"

_KINDS: dict[str, _Words] = {
    "no_worker": _Words(_no_worker, _STORED, "start a worker, or restart the one that hangs.", "/status"),
    "backlog": _Words(
        lambda _key, _facts: "due events are not taken: the backlog grows old",
        _STORED,
        "look at the workers' logs and the database; start another worker.",
        "/events?state=pending",
    ),
    "dead_rate": _Words(
        _dead_rate,
        "a dead letter is not tried again until a person replays it",
        "many sources at once point at this service or its database: look for one cause, repair it, "
        "then replay by group.",
        "/failures",
    ),
    "dead_letters": _Words(
        _dead_letters,
        "a dead letter is not tried again until a person replays it",
        "find the reason on its page, repair it, replay; acknowledge what needs no repair. second_payment "
        "and order_cancelled mean that money must be given back.",
        "/failures?source={key}",
    ),
    "source_failing": _Words(
        _source_failing,
        "each event is tried for {give_up} from its receipt, then it expires",
        "compare the reasons: settings of the source, its orders, or the provider's API.",
        "/sources/{key}",
    ),
    "expiring": _Words(
        _expiring,
        "to the times below; then they expire, and only a replay sends them round again",
        "give them what they wait for (register the order, repair the cause), or pause the source: nothing "
        "held expires.",
        "/events?state=pending&source={key}",
    ),
    "silence": _Words(
        _silence,
        "we listen on, and ask the provider's API, where it can be asked, for what did not come",
        "look at the provider's status and at its webhook settings: was the endpoint switched off?",
        "/sources/{key}",
    ),
    "rejections": _Words(
        _rejections,
        "the provider sends refused events again by its own schedule, then gives up",
        "signature after a rotation is a wrong secret; a skew is a wrong clock; (unknown) is a wrong URL.",
        "/rejections?source={key}",
    ),
    "clock_skew": _Words(
        _clock_skew,
        "the provider sends refused events again by its own schedule, then gives up",
        "set the clock (NTP) of this host; if ours is right, tell the provider.",
        "/rejections?source={key}",
    ),
    "conflict": _Words(
        lambda key, facts: (
            f"{key}: {facts.get('count', 0):,} open conflict{_s(facts.get('count', 0))}, "
            "an event id came again with other facts"
        ),
        "the first body stands; the other one waits for a person",
        "compare both, ask the provider, then release or reject.",
        "/conflicts",
    ),
    "secret_ends": _Words(
        lambda key, facts: f"{key}: a secret or certificate ends on {facts.get('rotate_by')}",
        "after that day its callbacks may be refused",
        "rotate it (docs/deployment.md), then set rotate_by to the next day.",
        "/sources/{key}",
    ),
    "channel_down": _Words(
        _channel_down,
        "notices wait and are sent again until the channel takes them",
        "run `receiver alerts test`; repair the address or the server.",
        "/alerts",
    ),
    "drift": _Words(
        _drift,
        "the provider is asked again by reconciliation's rhythm",
        "open the drift report; each finding shows both sides.",
        "/reconciliation",
    ),
}


def _of(kind: str) -> _Words:
    return _KINDS[kind]
