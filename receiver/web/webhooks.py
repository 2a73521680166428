"""The intake's door: `POST /webhooks/<source>`.

Raw bytes first, then the signature over them, then the provider's one reader, one statement, the
commit, the answer. No session, cookie or form protection here: the signature is the protection.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import Any

from flask import Blueprint, Response, current_app, request

from receiver.deps import Deps
from receiver.inbox.intake import Intake, IntakeUnavailable
from receiver.inbox.receive import kept_headers, store
from receiver.inbox.rejections import UNKNOWN_SOURCE, Rejection
from receiver.logs import logger
from receiver.providers.provider import Provider
from receiver.providers.reading import UnusableId
from receiver.providers.registry import UnknownProvider, provider
from receiver.providers.strict_json import Unreadable
from receiver.settings import Source
from receiver.signature import Unverified
from receiver.web.intake_counts import IntakeCounts

blueprint = Blueprint("webhooks", __name__)

log = logger("intake")

RETRY_AFTER_SECONDS = 5
"""What a 503 asks for: soon, since providers' own schedules start slow."""

CHUNK = 64 * 1024


class Refused(Exception):
    """The request is answered with ``status``; ``reason`` is the operator's, never the sender's."""

    def __init__(self, status: int, reason: str, **more: Any) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.more = more


ANSWERS = {
    400: b'{"error": "unreadable"}',
    401: b'{"error": "unauthorized"}',
    404: b'{"error": "unknown source"}',
    408: b'{"error": "too slow"}',
    413: b'{"error": "too large"}',
    415: b'{"error": "content encoding not accepted"}',
    422: b'{"error": "unusable id"}',
    503: b'{"error": "unavailable"}',
}
"""One body for each status: nothing of the reason, and nothing of what is stored."""


@blueprint.route("/webhooks/<source_name>", methods=["POST"], provide_automatic_options=False)
@blueprint.route("/webhooks/<source_name>/", methods=["POST"], provide_automatic_options=False)
def receive(source_name: str) -> Response:
    """Verify, store, answer."""
    deps: Deps = current_app.extensions["receiver"]
    counts: IntakeCounts = current_app.extensions["intake_counts"]
    body = b""
    try:
        source = deps.settings.sources.get(source_name)
        if source is None:
            raise Refused(404, "unknown_source")
        spoken = _provider_of(source)
        body = _read_body(deps)
        verdict = spoken.verify(source, request.headers, body, deps.clock.unix())
        if isinstance(verdict, Unverified):
            raise Refused(401, verdict.reason, skew_seconds=verdict.skew_seconds)
        return _stored(deps, counts, source, spoken, body, verdict.key_id)
    except Refused as refused:
        _note(deps, counts, source_name, refused, body)
        return _answer(refused.status)


def _provider_of(source: Source) -> Provider:
    try:
        spoken = provider(source.provider)
    except UnknownProvider as error:
        raise Refused(503, "unknown_provider") from error
    if not spoken.usable_secrets(source):
        raise Refused(503, "no_secret")
    return spoken


def _read_body(deps: Deps) -> bytes:
    """The raw bytes, under the limit and the deadline; Flask's own reading is never used here."""
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Refused(415, "content_encoding")
    limit = deps.settings.max_body_bytes
    announced = _announced()
    if announced is not None and announced > limit:
        raise Refused(413, "too_large")
    if announced is None and not request.environ.get("wsgi.input_terminated"):
        # Without a length and without chunks there is no body.
        return b""
    stream = request.environ["wsgi.input"]
    parts: list[bytes] = []
    length = 0
    with _deadline(deps.settings.read_timeout.total_seconds()):
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


def _announced() -> int | None:
    text = request.environ.get("CONTENT_LENGTH")
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


def _stored(
    deps: Deps, counts: IntakeCounts, source: Source, spoken: Provider, body: bytes, key_id: str
) -> Response:
    headers = kept_headers(request.headers.items(), spoken.secret_headers)
    intake: Intake = current_app.extensions["intake"]
    try:
        events = spoken.read(source.name, request.headers, body)
        receipts = store(
            deps, intake, events, body=body, headers=headers, key_id=key_id, now=deps.clock.now()
        )
    except Unreadable as error:
        raise Refused(400, error.code, detail=error.detail, headers=headers) from error
    except UnusableId as error:
        raise Refused(422, error.code, detail=error.detail, headers=headers) from error
    except IntakeUnavailable as error:
        log.error("webhook.unavailable", source=source.name, code=error.code, length=len(body))
        return _answer(503)
    for receipt in receipts:
        counts.received(source.name, receipt.result)
        level = log.warning if receipt.result == "conflict" else log.info
        level(
            "webhook.received",
            source=source.name,
            receipt=str(receipt.id),
            provider_event_id=receipt.provider_event_id,
            result=receipt.result,
            length=len(body),
            key_id=key_id,
        )
    return Response(
        f'{{"received": true, "receipt": "{receipts[0].id}"}}', status=200, mimetype="application/json"
    )


def _note(deps: Deps, counts: IntakeCounts, source_name: str, refused: Refused, body: bytes) -> None:
    known = source_name in deps.settings.sources
    sha256 = hashlib.sha256(body).hexdigest() if body else None
    headers = refused.more.get("headers")
    announced = request.environ.get("CONTENT_LENGTH") or ""
    length = len(body) or (int(announced) if announced.isdigit() and len(announced) < 19 else 0)
    rejection = Rejection(
        source=source_name if known else UNKNOWN_SOURCE,
        reason=refused.reason,
        at=deps.clock.wall(),
        remote_address=(request.remote_addr or "")[:64],
        length=length,
        sha256=sha256,
        skew_seconds=refused.more.get("skew_seconds"),
        detail=refused.more.get("detail"),
        body=body if headers is not None else None,
        headers=headers,
    )
    counts.rejected(rejection)
    log.warning(
        "webhook.refused",
        source=rejection.source,
        status=refused.status,
        reason=refused.reason,
        length=length,
        sha256=sha256,
        skew_seconds=rejection.skew_seconds,
    )


def _answer(status: int) -> Response:
    response = Response(ANSWERS[status], status=status, mimetype="application/json")
    if status == 503:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response
