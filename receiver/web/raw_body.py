"""The raw body of a post, once, before anything looks into it: length, limit and total deadline."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from receiver.settings import Settings

try:
    from gunicorn.http.errors import ParseException
except ImportError:  # another WSGI server
    BODY_ERRORS: tuple[type[Exception], ...] = (OSError,)
else:
    BODY_ERRORS = (OSError, ParseException)
"""What the server raises while a body is read that was framed wrongly or cut off."""

CHUNK = 64 * 1024

MAX_LENGTH_DIGITS = 18
"""Digits read of an announced length."""

Environ = dict[str, Any]


class Refused(Exception):
    """The request is answered with ``status``; ``reason`` is the operator's, never the sender's."""

    def __init__(self, status: int, reason: str, **more: Any) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.more = more


def read_body(environ: Environ, settings: Settings) -> bytes:
    """The raw bytes, under the limit and the deadline of the settings. Raises Refused."""
    encoding = environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Refused(415, "content_encoding")
    limit = settings.max_body_bytes
    announced = announced_length(environ)
    if announced is None and environ.get("CONTENT_LENGTH"):
        raise Refused(400, "content_length")
    if announced is not None and announced > limit:
        raise Refused(413, "too_large")
    if announced is None and not environ.get("wsgi.input_terminated"):
        # Without a length and without chunks there is no body.
        return b""
    stream = environ["wsgi.input"]
    parts: list[bytes] = []
    length = 0
    with _deadline(settings.read_timeout.total_seconds()):
        while announced is None or length < announced:
            wanted = CHUNK if announced is None else min(CHUNK, announced - length)
            try:
                part = stream.read(wanted)
            except BODY_ERRORS as error:
                raise Refused(400, "broken_body") from error
            if not part:
                break
            parts.append(part)
            length += len(part)
            if length > limit:
                raise Refused(413, "too_large")
    if announced is not None and length != announced:
        raise Refused(400, "short_body")
    return b"".join(parts)


def announced_length(environ: Environ) -> int | None:
    """The length that the request announces; None where it announces none that can be read."""
    text = environ.get("CONTENT_LENGTH") or ""
    if not (text.isascii() and text.isdigit()):
        return None
    # Longer ones are too large whatever they say, and Python refuses to read very long ones.
    return int(text[:MAX_LENGTH_DIGITS])


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """A total time for reading a body, kept by gevent; other workers leave it to the proxy."""
    if not _gevent_runs():
        yield
        return
    import gevent

    try:
        with gevent.Timeout(seconds):
            yield
    except gevent.Timeout as error:
        raise Refused(408, "slow_body") from error


def _gevent_runs() -> bool:
    try:
        from gevent.monkey import is_module_patched
    except ImportError:
        return False
    return bool(is_module_patched("socket"))
