"""Sends one text over one channel. Apprise is loaded by who tells alone: it costs a process 40 MiB."""

from __future__ import annotations

import logging
import re
from urllib.parse import unquote, urlsplit

from receiver.alert_settings import Channel

CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 5.0, 10.0, 20.0

MOST = 300
"""Characters of an error that are kept."""

SHORTEST_SECRET = 5
"""A part of a channel's URL that is at least this long is cut out of what an error repeats."""


def send(channel: Channel, subject: str, body: str, *, level: str) -> str | None:
    """Send; None when the channel took it, else why not, in words that hold nothing of its URL."""
    if not channel.url:
        return f"the variable {channel.name} is not set"
    # Imported here, so that only a process that has something to tell pays for it.
    from apprise import Apprise, NotifyFormat, NotifyType

    # Its own lines may hold what a channel's URL holds: ours say what went wrong, cleaned.
    logging.getLogger("apprise").propagate = False
    try:
        service = Apprise.instantiate(channel.url, suppress_exceptions=True)
    except Exception as error:
        return f"its URL cannot be read ({type(error).__name__})"
    if service is None:
        return "its URL is none that apprise knows"
    service.socket_connect_timeout = CONNECT_SECONDS
    service.socket_read_timeout = READ_SECONDS
    teller = Apprise()
    teller.add(service)
    try:
        result = teller.notify(
            body=body,
            title=subject,
            notify_type=NotifyType.FAILURE if level == "page" else NotifyType.WARNING,
            body_format=NotifyFormat.TEXT,
            timeout=TOTAL_SECONDS,
        )
    except Exception as error:
        return f"it could not be told ({type(error).__name__})"
    if result:
        return None
    said = [str(entry.message) for entry in result.logs() if entry.level in ("WARNING", "ERROR", "CRITICAL")]
    return clean("; ".join(said), channel) or "it did not take the notice"


def clean(said: str, channel: Channel) -> str:
    """An error's words without any part of the channel's URL, and of bounded length."""
    parts = urlsplit(channel.url)
    secrets = {parts.password, parts.username, *re.split(r"[/?&=@:]", channel.url.partition("://")[2])}
    for secret in sorted({s for s in secrets if s}, key=len, reverse=True):
        for spelling in (secret, unquote(secret)):
            if len(spelling) >= SHORTEST_SECRET and spelling != parts.hostname:
                said = said.replace(spelling, "[cut]")
    said = re.sub(r"\w+://\S+", "[cut]", said)
    return " ".join(said.split())[:MOST]


def fault_of(channel: Channel) -> str | None:
    """What is wrong with a channel's URL, without sending anything; None when it can be read."""
    if not channel.url:
        return f"the variable {channel.name} is not set"
    from apprise import Apprise

    try:
        known = Apprise.instantiate(channel.url, suppress_exceptions=True)
    except Exception as error:
        return f"its URL cannot be read ({type(error).__name__})"
    return None if known is not None else "its URL is none that apprise knows"
