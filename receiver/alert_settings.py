"""What is worth an alert, and whom to tell: thresholds and channels, read from the environment.

Channels are named (``ALERT_URLS = "env:CHAT_URL env:MAIL_URL"``), since their URLs hold secrets. One
whose variable is not set is no fault of the start: what it should tell waits, and that is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, Self
from urllib.parse import quote, urlsplit

MAIL = "SUPPORT_EMAIL"
"""The name of the channel that mails to the address of that setting."""

MOST_CHANNELS = 8


@dataclass(frozen=True)
class Channel:
    """One way to tell people. ``url`` is one that apprise knows, empty where its variable is not set.

    ``pages`` is True for one that is told of what cannot wait alone.
    """

    name: str
    url: str = field(repr=False)
    pages: bool = False


class Reader(Protocol):
    """What this reads settings with; it collects the faults."""

    environ: Mapping[str, str]
    faults: list[str]

    def integer(self, name: str, default: int, low: int, high: int) -> int: ...

    def seconds(self, name: str, default: timedelta, low: float, high: float) -> timedelta: ...


@dataclass(frozen=True)
class AlertSettings:
    """Thresholds of alerts, and the channels that are told."""

    channels: tuple[Channel, ...] = ()
    public_url: str = ""
    look: timedelta = timedelta(seconds=20)
    remind: timedelta = timedelta(hours=4)
    recovery: timedelta = timedelta(minutes=2)
    backlog: timedelta = timedelta(minutes=5)
    dead_count: int = 20
    dead_sources: int = 2
    failing_count: int = 3
    expiry: timedelta = timedelta(hours=12)
    silence_times: int = 10
    silence: timedelta = timedelta(minutes=10)
    rejections: int = 20
    skew: timedelta = timedelta(seconds=30)
    rotate: timedelta = timedelta(days=14)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read the environment; faults are added to the reader's."""
        return cls(
            channels=(
                *_channels(reader, "ALERT_URLS", pages=False),
                *_channels(reader, "ALERT_PAGE_URLS", pages=True),
                *_mail(reader),
            ),
            public_url=_public_url(reader),
            look=reader.seconds("ALERT_LOOK_SECONDS", cls.look, 0.2, 300),
            remind=reader.seconds("ALERT_REMIND_SECONDS", cls.remind, 60, 30 * 86400),
            recovery=reader.seconds("ALERT_RECOVERY_SECONDS", cls.recovery, 0, 86400),
            backlog=reader.seconds("ALERT_BACKLOG_SECONDS", cls.backlog, 10, 86400),
            dead_count=reader.integer("ALERT_DEAD_COUNT", cls.dead_count, 1, 1_000_000),
            dead_sources=reader.integer("ALERT_DEAD_SOURCES", cls.dead_sources, 1, 1000),
            failing_count=reader.integer("ALERT_FAILING_COUNT", cls.failing_count, 1, 1_000_000),
            expiry=reader.seconds("ALERT_EXPIRY_SECONDS", cls.expiry, 60, 30 * 86400),
            silence_times=reader.integer("ALERT_SILENCE_TIMES", cls.silence_times, 2, 1000),
            silence=reader.seconds("ALERT_SILENCE_SECONDS", cls.silence, 60, 7 * 86400),
            rejections=reader.integer("ALERT_REJECTIONS", cls.rejections, 1, 1_000_000),
            skew=reader.seconds("ALERT_SKEW_SECONDS", cls.skew, 1, 86400),
            rotate=reader.seconds("ALERT_ROTATE_SECONDS", cls.rotate, 86400, 365 * 86400),
        )

    def told_of(self, level: str) -> tuple[Channel, ...]:
        """The channels that are told of alerts of a level."""
        return tuple(channel for channel in self.channels if level == "page" or not channel.pages)


def _channels(reader: Reader, name: str, *, pages: bool) -> list[Channel]:
    references = reader.environ.get(name, "").replace(",", " ").split()
    if len(references) > MOST_CHANNELS:
        reader.faults.append(f"{name}: at most {MOST_CHANNELS} channels")
    found = []
    for reference in references[:MOST_CHANNELS]:
        kind, _, variable = reference.partition(":")
        if kind != "env" or not variable.replace("_", "").isalnum():
            # Never echo the text: it may be the secret itself.
            reader.faults.append(f'{name}: a channel is named as "env:NAME", never written down')
            continue
        found.append(Channel(variable, reader.environ.get(variable, ""), pages))
    if len({channel.name for channel in found}) != len(found):
        reader.faults.append(f"{name} names a channel twice")
    return found


def _mail(reader: Reader) -> list[Channel]:
    """The channel of SUPPORT_EMAIL, over the server of SMTP_URL, as a URL of apprise."""
    to, server = reader.environ.get("SUPPORT_EMAIL", ""), reader.environ.get("SMTP_URL", "")
    if not to:
        return []
    sender = reader.environ.get("ALERT_FROM", "") or to
    for setting, address in (("SUPPORT_EMAIL", to), ("ALERT_FROM", sender)):
        if not _is_address(address):
            reader.faults.append(f"{setting} must be one e-mail address")
            return []
    try:
        parts = urlsplit(server)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("smtp", "smtps") or not host or parts.path.strip("/") or parts.query:
        # It may hold a password: never echo it.
        reader.faults.append(
            "SMTP_URL must be smtp://[user:password@]host[:port] (or smtps://), since SUPPORT_EMAIL is set"
        )
        return []
    secure = parts.scheme == "smtps"
    account = f"{parts.username}:{parts.password or ''}@" if parts.username else ""
    mode = "ssl" if secure else "starttls" if account else "insecure"
    address = f"[{host}]" if ":" in host else host
    query = f"from={quote(sender)}&to={quote(to)}&format=text&mode={mode}"
    scheme = "mailtos" if mode != "insecure" else "mailto"
    return [Channel(MAIL, f"{scheme}://{account}{address}:{port or (465 if secure else 25)}/?{query}")]


def _is_address(text: str) -> bool:
    name, at, host = text.partition("@")
    allowed = text.isascii() and text.isprintable() and not set(text) & set(' ,;<>"()[]\\')
    return bool(allowed and name and at and host and "@" not in host and len(text) <= 254)


def _public_url(reader: Reader) -> str:
    text = reader.environ.get("PUBLIC_URL", "").rstrip("/")
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        fine = fine and not parts.username and text.isprintable() and " " not in text
    except ValueError:
        fine = False
    if not fine:
        reader.faults.append("PUBLIC_URL must be the http(s) URL under which people open the pages")
        return ""
    return text
