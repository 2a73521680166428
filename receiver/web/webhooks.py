"""The intake's door: `POST /webhooks/<source>`.

Raw bytes first, then the signature over them, then the provider's one reader, one statement, the
commit, the answer. No session, cookie or form protection here: the signature is the protection.

`Door` is plain WSGI in front of Flask and answers such posts itself: Flask's request, session and
hooks cost more than all that is done here. What it does not take goes to Flask, whose route (needed
for the 405 of other methods) gives the same answers through the same code.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from flask import Blueprint, Flask, Response, current_app, request
from werkzeug.datastructures import EnvironHeaders

from receiver.deps import Deps
from receiver.inbox.intake import Intake, IntakeUnavailable
from receiver.inbox.receive import kept_headers, store
from receiver.inbox.rejections import UNKNOWN_SOURCE, Rejection
from receiver.logs import logger
from receiver.providers.authentication import UNAVAILABLE
from receiver.providers.provider import Provider
from receiver.providers.reading import UnusableId
from receiver.providers.registry import UnknownProvider, provider_of
from receiver.providers.strict_json import Unreadable
from receiver.settings import Source
from receiver.signature import Unverified
from receiver.web.headers import CONTENT_POLICY
from receiver.web.intake_counts import IntakeCounts
from receiver.web.raw_body import Environ, Refused, announced_length, read_body
from receiver.web.visits import visit

blueprint = Blueprint("webhooks", __name__)

log = logger("intake")

RETRY_AFTER_SECONDS = 5
"""What a 503 asks for: soon, since providers' own schedules start slow."""

ANSWERS = {
    400: b'{"error": "unreadable"}',
    401: b'{"error": "unauthorized"}',
    404: b'{"error": "unknown source"}',
    408: b'{"error": "too slow"}',
    413: b'{"error": "too large"}',
    415: b'{"error": "content encoding not accepted"}',
    422: b'{"error": "unusable id"}',
    500: b'{"error": "fault"}',
    503: b'{"error": "unavailable"}',
}
"""One body for each status: nothing of the reason, and nothing of what is stored."""


PREFIX = "/webhooks/"


class Answer(NamedTuple):
    """What the sender is told."""

    status: int
    body: bytes


@blueprint.route("/webhooks/<source_name>", methods=["POST"], provide_automatic_options=False)
@blueprint.route("/webhooks/<source_name>/", methods=["POST"], provide_automatic_options=False)
def receive(source_name: str) -> Response:
    """The same by way of Flask."""
    status, body = receive_from(current_app.extensions, source_name, request.environ)
    return Response(body, status=status, headers=_headers(status, body))


class Door:
    """The WSGI application in front of Flask's."""

    def __init__(self, app: Flask) -> None:
        self._extensions = app.extensions
        self._flask = app.wsgi_app

    def __call__(self, environ: Environ, start_response: Any) -> Iterable[bytes]:
        path: str = environ.get("PATH_INFO", "")
        if not path.startswith(PREFIX) or environ["REQUEST_METHOD"] not in ("POST", "GET"):
            return self._flask(environ, start_response)
        source_name = path[len(PREFIX) :].removesuffix("/")
        if environ["REQUEST_METHOD"] == "GET":
            answer = challenge_from(self._extensions, source_name, environ.get("QUERY_STRING", ""))
            if answer is None:
                return self._flask(environ, start_response)
            start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
            return (answer,)
        if "/" in source_name or not source_name or not self._is_ours(environ.get("HTTP_HOST", "")):
            # Flask knows what to say to a stranger's path or host.
            return self._flask(environ, start_response)
        status, body = receive_from(self._extensions, source_name, environ)
        start_response(f"{status} {_phrase(status)}", _headers(status, body))
        return (body,)

    def _is_ours(self, host: str) -> bool:
        # Compared as it came. Behind a proxy that names the host in a header of its own, Flask knows.
        hosts = self._extensions["receiver"].settings.trusted_hosts
        return not hosts or host in hosts or host.rsplit(":", 1)[0] in hosts


def challenge_from(extensions: dict[str, Any], source_name: str, query: str) -> bytes | None:
    """The answer to a provider that first asks, by a GET, whether we hold its key; None to all others,
    for whom GET is no method of this URL.
    """
    deps: Deps = extensions["receiver"]
    source = deps.settings.sources.get(source_name)
    if source is None:
        return None
    try:
        ask = provider_of(source).challenge
        asked = dict(parse_qsl(query, max_num_fields=20))
    except (UnknownProvider, ValueError):
        return None
    answer = ask(source, asked) if ask is not None else None
    return None if answer is None else answer.encode()


def receive_from(extensions: dict[str, Any], source_name: str, environ: Environ) -> Answer:
    """Verify, store, answer."""
    deps: Deps = extensions["receiver"]
    counts: IntakeCounts = extensions["intake_counts"]
    body: bytes | None = None
    spoken: Provider | None = None
    try:
        source = _source(deps, source_name)
        spoken = _provider_of(source)
        body = read_body(environ, deps.settings)
        began = time.perf_counter()
        key_id = _verified(deps, source, spoken, environ, body)
        return _stored(deps, extensions["intake"], counts, source, spoken, environ, body, key_id, began)
    except Refused as refused:
        _note(deps, counts, source_name, refused, environ, body)
        status = refused.status
        if status == 401 and spoken is not None:
            status = spoken.answers.unverified
        return Answer(status, ANSWERS[refused.status])
    except Exception as error:
        log.exception("webhook.fault", error=type(error).__name__)
        return Answer(500, ANSWERS[500])


def _source(deps: Deps, name: str) -> Source:
    source = deps.settings.sources.get(name)
    if source is None:
        raise Refused(404, "unknown_source")
    return source


_SPOKEN: dict[int, tuple[Source, Provider | None]] = {}
"""The provider of each source object, as its options describe it; None where it cannot verify."""


def _provider_of(source: Source) -> Provider:
    known = _SPOKEN.get(id(source))
    if known is None or known[0] is not source:
        try:
            described = provider_of(source)
        except UnknownProvider as error:
            raise Refused(503, "unknown_provider") from error
        if len(_SPOKEN) > 1000:
            _SPOKEN.clear()
        known = _SPOKEN[id(source)] = (source, described if described.is_ready(source) else None)
    if known[1] is None:
        raise Refused(503, "no_secret")
    return known[1]


def _verified(deps: Deps, source: Source, spoken: Provider, environ: Environ, body: bytes) -> str:
    verdict = spoken.verify(source, EnvironHeaders(environ), body, deps.clock.unix())
    if isinstance(verdict, Unverified):
        if verdict.reason == UNAVAILABLE:
            # Ours and not the sender's: it shall come again.
            raise Refused(503, verdict.reason)
        raise Refused(401, verdict.reason, skew_seconds=verdict.skew_seconds)
    return verdict.key_id


@lru_cache(maxsize=512)
def _header_name(key: str) -> str | None:
    """The header that a key of the environment stands for; None where it is none."""
    if key in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        return key.replace("_", "-").title()
    if key.startswith("HTTP_") and key not in ("HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"):
        return key[5:].replace("_", "-").title()
    return None


def _sent_headers(environ: Environ) -> list[tuple[str, str]]:
    return [(name, value) for key, value in environ.items() if (name := _header_name(key)) and value]


def _stored(
    deps: Deps,
    intake: Intake,
    counts: IntakeCounts,
    source: Source,
    spoken: Provider,
    environ: Environ,
    body: bytes,
    key_id: str,
    began: float,
) -> Answer:
    headers = kept_headers(_sent_headers(environ), spoken.secret_headers)
    try:
        events = spoken.read(source.name, EnvironHeaders(environ), body)
        if not events:
            raise Refused(400, "no_events", detail="the body holds no event", headers=headers)
        receipts = store(
            deps, intake, events, body=body, headers=headers, key_id=key_id, now=deps.clock.now()
        )
    except Unreadable as error:
        raise Refused(400, error.code, detail=error.detail, headers=headers) from error
    except UnusableId as error:
        raise Refused(422, error.code, detail=error.detail, headers=headers) from error
    except IntakeUnavailable as error:
        log.warning("webhook.unavailable", source=source.name, code=error.code, length=len(body))
        return Answer(503, ANSWERS[503])
    duration_ms = int((time.perf_counter() - began) * 1000)
    for receipt in receipts:
        counts.received(source.name, receipt.result, duration_ms)
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
    url = spoken.visit(source, body) if spoken.visit is not None else None
    if url is not None:
        visit(source.name, url)
    answers = spoken.answers
    if answers.accepted == HTTPStatus.NO_CONTENT:
        return Answer(answers.accepted, b"")
    if answers.body is not None:
        return Answer(answers.accepted, answers.body.encode())
    return Answer(answers.accepted, b'{"received": true, "receipt": "%s"}' % str(receipts[0].id).encode())


def _note(
    deps: Deps, counts: IntakeCounts, source_name: str, refused: Refused, environ: Environ, body: bytes | None
) -> None:
    known = source_name in deps.settings.sources
    sha256 = hashlib.sha256(body).hexdigest() if body is not None else None
    headers = refused.more.get("headers")
    length = len(body) if body is not None else announced_length(environ) or 0
    rejection = Rejection(
        source=source_name if known else UNKNOWN_SOURCE,
        reason=refused.reason,
        at=deps.clock.wall(),
        remote_address=environ.get("REMOTE_ADDR", "")[:64],
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


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        # GoCardless wants 498, which no registry knows.
        return "Invalid Token"


def _headers(status: int, body: bytes) -> list[tuple[str, str]]:
    headers = [("Content-Security-Policy", CONTENT_POLICY), ("X-Content-Type-Options", "nosniff")]
    if status != HTTPStatus.NO_CONTENT:
        headers += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    if status == 503:
        headers.append(("Retry-After", str(RETRY_AFTER_SECONDS)))
    return headers
