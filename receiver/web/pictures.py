"""Pictures drawn on the server: pure functions from steps of time to SVG and its words.

The drawing holds shapes alone and is stretched to its place; titles, scales and legends are text of the
page around it, so that a phone shows them as large as a desk does. Colours are classes of the sheet, and
a legend or a dash says what a colour says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from receiver.inbox.history import SHARES, Span, Step
from receiver.web.drawing import HEIGHT, bar, bars, figure, nice, stairs, svg


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry of a legend: the class of its colour, its name, and its number."""

    tone: str
    name: str
    number: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing with the words around it. ``scale`` is what stands at the axis, from the top down."""

    key: str
    title: str
    summary: str
    drawing: Markup
    scale: tuple[str, ...]
    times: tuple[datetime, ...]
    legend: tuple[Mark, ...]
    is_empty: bool = False


RESULTS = (
    ("applied", "applied"),
    ("unchanged", "changed nothing"),
    ("dead", "dead"),
    ("rejected", "rejected"),
)
LEVELS = (("waiting", "waiting"), ("parked", "parked"), ("held", "held"))


def results_picture(steps: Sequence[Step], span: Span) -> Picture:
    """Events a minute by result, stacked."""
    minutes = span.step / timedelta(minutes=1)
    rows = [[step.counts.get(group, 0) / minutes for group, _ in RESULTS] for step in steps]
    top = nice(max((sum(row) for row in rows), default=0))
    totals = {group: sum(step.counts.get(group, 0) for step in steps) for group, _ in RESULTS}
    received = sum(step.counts.get("received", 0) for step in steps)
    legend = tuple(Mark(group, name, f"{totals[group]:,}") for group, name in RESULTS)
    said = ", ".join(f"{mark.number} {mark.name}" for mark in legend)

    def words(number: int) -> str:
        counts = steps[number].counts
        parts = [f"{counts[group]:,} {name}" for group, name in RESULTS if counts.get(group)]
        return ", ".join(parts) or "nothing"

    return Picture(
        key="results",
        title="Events a minute, by result",
        summary=f"In the last {in_words(span)}: {received:,} received; {said}.",
        drawing=svg("results", _named(steps, span), bars(rows, [group for group, _ in RESULTS], top), words),
        scale=(figure(top), figure(top / 2), "0"),
        times=_times(steps, span),
        legend=legend,
        is_empty=not any(totals.values()),
    )


def times_picture(steps: Sequence[Step], span: Span, say: Callable[[float], str]) -> Picture:
    """The time from receipt to applied, as percentiles on a scale of powers of ten. ``say`` words ms."""
    found = [ms for step in steps for ms in step.percentiles.values()]
    low = 10 ** math.floor(math.log10(min(found, default=100)))
    high = 10 ** math.ceil(math.log10(max(max(found, default=1000), low * 10)))

    def height(ms: float) -> float:
        return HEIGHT * math.log(max(ms, low) / low) / math.log(high / low)

    lines = Markup("").join(
        stairs([_height_of(step.percentiles.get(share), height) for step in steps], f"p{share * 100:.0f}")
        for share in SHARES
    )
    last = next((step.percentiles for step in reversed(steps) if step.percentiles), {})
    legend = tuple(
        Mark(f"p{share * 100:.0f}", f"{share:.0%} within", f"≤ {say(last[share])}" if share in last else "–")
        for share in SHARES
    )

    def words(number: int) -> str:
        known = steps[number].percentiles
        if not known:
            return "nothing applied"
        return ", ".join(f"{share:.0%} within {say(ms)}" for share, ms in known.items())

    newest = ", ".join(f"{mark.name} {mark.number}" for mark in legend)
    return Picture(
        key="times",
        title="From receipt to applied",
        summary=f"Over the last {in_words(span)}, on a scale of powers of ten. Newest step: {newest}.",
        drawing=svg("times", _named(steps, span), lines, words),
        scale=(say(high), say(math.sqrt(low * high)), say(low)),
        times=_times(steps, span),
        legend=legend,
        is_empty=not found,
    )


def backlog_picture(steps: Sequence[Step], span: Span) -> Picture:
    """Rows that wait, are parked or held, stacked."""
    rows = [[float(getattr(step, name) or 0) for name, _ in LEVELS] for step in steps]
    top = nice(max((sum(row) for row in rows), default=0))
    last = next((step for step in reversed(steps) if step.waiting is not None), None)
    legend = tuple(
        Mark(name, words, f"{getattr(last, name) or 0:,}" if last else "–") for name, words in LEVELS
    )

    def words(number: int) -> str:
        step = steps[number]
        if step.waiting is None:
            return "no worker looked"
        return ", ".join(f"{getattr(step, name):,} {said}" for name, said in LEVELS)

    newest = ", ".join(f"{mark.number} {mark.name}" for mark in legend)
    return Picture(
        key="backlog",
        title="Backlog",
        summary=f"Pending events over the last {in_words(span)}; last noted: {newest}.",
        drawing=svg("backlog", _named(steps, span), bars(rows, [name for name, _ in LEVELS], top), words),
        scale=(figure(top), figure(top / 2), "0"),
        times=_times(steps, span),
        legend=legend,
        is_empty=last is None,
    )


def oldest_picture(steps: Sequence[Step], span: Span, say: Callable[[float], str]) -> Picture:
    """The age of the oldest pending row that is not held. ``say`` words milliseconds."""
    found = [step.oldest_seconds for step in steps if step.oldest_seconds is not None]
    top = nice(max(found, default=0))
    heights = [None if step.waiting is None else HEIGHT * (step.oldest_seconds or 0) / top for step in steps]
    last = next((step for step in reversed(steps) if step.waiting is not None), None)
    shown = (
        "–"
        if last is None
        else "nothing waits"
        if last.oldest_seconds is None
        else say(last.oldest_seconds * 1000)
    )

    def words(number: int) -> str:
        step = steps[number]
        if step.waiting is None:
            return "no worker looked"
        return (
            "nothing waited" if step.oldest_seconds is None else f"oldest {say(step.oldest_seconds * 1000)}"
        )

    return Picture(
        key="oldest",
        title="Age of the oldest that waits",
        summary=f"Over the last {in_words(span)}; last noted: {shown}.",
        drawing=svg("oldest", _named(steps, span), stairs(heights, "oldest"), words),
        scale=(say(top * 1000), say(top * 500), "0"),
        times=_times(steps, span),
        legend=(Mark("oldest", "oldest", shown),),
        is_empty=last is None,
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a list of bars: its words, its number, its share of the longest, and where it leads."""

    name: str
    number: int
    shown: str
    drawing: Markup
    href: str


def reason_bars(counts: Mapping[str, int], link: Callable[[str], str], more: bool = False) -> list[Bar]:
    """Dead letters by reason, the most frequent first; ``more``: there are further ones."""
    longest = max(counts.values(), default=0)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        Bar(name, number, f"{number:,}{'+' if more else ''}", bar(number / longest), link(name))
        for name, number in ordered
    ]


def in_words(span: Span) -> str:
    """The span in words."""
    return {"1h": "hour", "24h": "24 hours", "7d": "7 days"}[span.name]


def _named(steps: Sequence[Step], span: Span) -> list[str]:
    form = "%H:%M" if span.length <= timedelta(hours=24) else "%a %d %b %H:%M"
    return [step.at.strftime(f"{form} UTC") for step in steps]


def _times(steps: Sequence[Step], span: Span) -> tuple[datetime, ...]:
    return (steps[0].at, steps[len(steps) // 2].at, steps[-1].at + span.step)


def _height_of(ms: int | None, height: Callable[[float], float]) -> float | None:
    return None if ms is None else height(ms)
