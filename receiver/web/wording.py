"""How values look on pages: money, times, ages, durations, names of states; and links to orders."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from flask import Flask, url_for
from markupsafe import Markup

from receiver.inbox.filter import Filter
from receiver.inbox.reasons import OUTCOMES, help_for, rejection_means
from receiver.inbox.waiting import register_command
from receiver.money import format_amount
from receiver.web.current import current_deps

GOOD = frozenset({"processed", "applied", "paid", "refunded", "released"})
BAD = frozenset({"failed", "expired", "charged_back", "disputed", "conflict", "lost", "worker_lost"})
WAITING = frozenset(
    {"pending", "parked", "in_flight", "authorized", "partially_paid", "partially_refunded", "open"}
)


def teach(app: Flask) -> None:
    """Give the templates their filters and functions."""
    app.jinja_env.filters.update(
        amount=amount,
        at=at,
        ago=ago,
        duration=duration,
        words=words,
        share=share,
        badge=badge,
        on_axis=on_axis,
    )
    app.jinja_env.globals.update(
        order_url=order_url, target_url=target_url, help_for=help_for, rejection_means=rejection_means
    )
    app.jinja_env.globals.update(register_command=register_command)
    app.jinja_env.globals.update(outcome_words=lambda outcome: OUTCOMES.get(outcome, ""))
    app.jinja_env.trim_blocks = True
    app.jinja_env.lstrip_blocks = True


def amount(minor: int | None, currency: str | None) -> str:
    """``18.600 KWD``; without a currency the minor units are said to be such."""
    if minor is None:
        return "–"
    return format_amount(minor, currency) if currency else f"{minor} minor units"


def at(instant: datetime | None) -> Markup:
    """An instant in UTC; its age stands in the title."""
    if instant is None:
        return Markup("–")
    return _time(instant, _utc(instant), age_of(instant))


def ago(instant: datetime | None) -> Markup:
    """An instant's age; the time itself stands in the title."""
    if instant is None:
        return Markup("–")
    return _time(instant, age_of(instant), _utc(instant))


def on_axis(instant: datetime, days: bool = False) -> Markup:
    """An instant below a picture: hours and minutes, or the day too."""
    utc = instant.astimezone(UTC)
    return _time(instant, utc.strftime("%a %d, %H:%M" if days else "%H:%M"), _utc(instant))


def _time(instant: datetime, shown: str, title: str) -> Markup:
    machine = instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(machine, title, shown)


def _utc(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def age_of(instant: datetime) -> str:
    """``3 min ago``, or ``in 3 min`` for a time to come."""
    seconds = (current_deps().clock.wall() - instant).total_seconds()
    if abs(seconds) < 1:
        return "now"
    text = span(abs(seconds))
    return f"{text} ago" if seconds > 0 else f"in {text}"


def span(seconds: float) -> str:
    """A length of time in its two largest units at most."""
    seconds = int(seconds)
    if seconds < 60:
        return f"{seconds} s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60:
        return f"{minutes} min"
    if hours < 24:
        return f"{hours} h {minutes % 60} min" if minutes % 60 and hours < 6 else f"{hours} h"
    return f"{days} d {hours % 24} h" if hours % 24 and days < 3 else f"{days} d"


def duration(milliseconds: float | timedelta | None) -> str:
    """``12 ms``, ``1.4 s`` or longer."""
    if milliseconds is None:
        return "–"
    if isinstance(milliseconds, timedelta):
        milliseconds = milliseconds.total_seconds() * 1000
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.3g} s"
    return span(milliseconds / 1000)


def share(value: float | None) -> str:
    """A share in per cent; one that is not whole is never rounded up to 100 %."""
    if value is None:
        return "–"
    percent = value * 100
    return f"{percent:.0f} %" if percent in (0, 100) else f"{min(percent, 99.9):.1f} %"


def words(text: str | None) -> str:
    """A code as words: ``partially_paid`` as ``partially paid``."""
    return (text or "–").replace("_", " ")


def badge(text: str | None, kind: str | None = None) -> Markup:
    """A state or outcome with its colour; the word itself always says it too."""
    if not text:
        return Markup("")
    tone = kind or (
        "good" if text in GOOD else "bad" if text in BAD else "wait" if text in WAITING else "quiet"
    )
    return Markup('<span class="badge {}">{}</span>').format(tone, words(text))


def link(endpoint: str, filter: Filter) -> str:  # noqa: A002
    """A page under a filter."""
    values: dict[str, Any] = dict(filter.as_query())
    return url_for(endpoint, **values)


def order_url(reference: str) -> str:
    """The page of an order. A reference that a browser would resolve as a path goes as a parameter."""
    if any(part in ("", ".", "..") for part in reference.split("/")):
        return url_for("orders.by_query", reference=reference)
    return url_for("orders.show", reference=reference)


def target_url(target: str) -> str | None:
    """The page of what an act was done on; None where there is none."""
    kind, _, name = target.partition(":")
    if kind == "order":
        return order_url(name)
    if kind in ("event", "bulk_replay") and _is_uuid(name):
        return f"/{'events' if kind == 'event' else 'replays'}/{name}"
    if kind == "conflict" and name.isascii() and name.isdigit():
        return f"/conflicts/{name}"
    if kind == "archive":
        return url_for("retention.page")
    if kind == "alert":
        return url_for("alerts.index")
    if kind == "source" and name:
        return url_for("sources.show", name=name)
    return None


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
