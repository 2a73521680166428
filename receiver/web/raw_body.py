"""The raw body of a post, once, before anything looks into it: length, limit and total deadline."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from receiver.settings import Settings

CHUNK = 64 * 1024

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
    announced = _announced(environ)
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
            except _GunicornBodyError as error:
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


def _announced(environ: Environ) -> int | None:
    text = environ.get("CONTENT_LENGTH")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise Refused(400, "content_length")
    return int(text)


def _body_errors() -> tuple[type[BaseException], ...]:
    try:
        from gunicorn.http.errors import ParseException
    except ImportError:  # another WSGI server
        return (OSError,)
    return (OSError, ParseException)


_GunicornBodyError = _body_errors()


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
