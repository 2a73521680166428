"""One bounded question to a provider's API: time, size and redirects limited, every failure a value.

No text that leaves this file holds the address or a header: some APIs take their password in the query.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import requests

from receiver.providers.payment_api import NotFound, Unavailable
from receiver.providers.strict_json import Unreadable, parse_object

CONNECT_SECONDS = 3.0
READ_SECONDS = 5.0
TOTAL_SECONDS = 12.0
"""For all questions about one payment together; one more read may run over it."""

MAX_ANSWER = 1024 * 1024
_CHUNK = 16 * 1024
MAX_RETRY_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Question:
    """One request. ``path`` is quoted already; ``json`` and ``form`` are bodies."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    json: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx with a JSON object; a list comes as the object's ``items``."""

    status: int
    document: dict[str, Any]
    body: bytes


class _Headers(requests.auth.AuthBase):
    """Our headers as the authentication, so that no netrc file puts another in its place."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.update(self._headers)
        return request


def ask(http: requests.Session, question: Question, deadline: float) -> Answer | NotFound | Unavailable:
    """The answer to one question, until ``deadline`` (of time.monotonic)."""
    left = deadline - time.monotonic()
    if left <= 0:
        return Unavailable("timeout", f"no answer within {TOTAL_SECONDS:.0f} s")
    try:
        with http.request(
            question.method,
            question.url,
            params=dict(question.query),
            json=question.json,
            data=question.form,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            auth=_Headers(question.headers),
            timeout=(min(CONNECT_SECONDS, left), min(READ_SECONDS, left)),
            allow_redirects=False,
            stream=True,
        ) as response:
            return _judged(response, _read(response, deadline))
    except requests.Timeout:
        return Unavailable("timeout", "the API did not answer in time")
    except (requests.RequestException, OSError) as error:
        # The exception's own text may hold the address, and that a password.
        return Unavailable("network", f"the API cannot be reached ({type(error).__name__})")


def _read(response: requests.Response, deadline: float) -> bytes | Unavailable:
    pieces: list[bytes] = []
    size = 0
    for piece in _pieces(response):
        pieces.append(piece)
        size += len(piece)
        if size > MAX_ANSWER:
            return Unavailable("too_large", f"the answer is larger than {MAX_ANSWER} bytes")
        if time.monotonic() > deadline:
            return Unavailable("timeout", f"the answer took longer than {TOTAL_SECONDS:.0f} s")
    return b"".join(pieces)


def _pieces(response: requests.Response) -> Any:
    read_some = getattr(response.raw, "read1", None)
    if read_some is None:
        yield from response.iter_content(_CHUNK)
        return
    try:
        # What has come, not a full chunk: an answer that drips must not outlast the deadline.
        while piece := read_some(_CHUNK, decode_content=True):
            yield piece
    except Exception as error:
        raise requests.ConnectionError("the answer broke off") from error


def _judged(response: requests.Response, body: bytes | Unavailable) -> Answer | NotFound | Unavailable:
    status = response.status_code
    if isinstance(body, Unavailable):
        return body
    if status == 404 or status == 410:
        return NotFound("the API does not know this payment", status, body)
    if status in (401, 403):
        return Unavailable("unauthorized", f"the API refuses our credentials ({status})", None, status, body)
    if status == 429:
        return Unavailable(
            "rate_limited", "the API asks for a pause (429)", _retry_after(response), status, body
        )
    if 300 <= status < 400:
        return Unavailable("redirected", f"the API redirects ({status}): is its address right?", None, status)
    if status >= 500:
        said = _retry_after(response)
        return Unavailable("server_error", f"the API failed ({status})", said, status, body)
    if not 200 <= status < 300:
        return Unavailable("refused", f"the API refused the question ({status})", None, status, body)
    try:
        listed = body.lstrip(b" \t\r\n").startswith(b"[")
        return Answer(status, parse_object(b'{"items":' + body + b"}" if listed else body), body)
    except Unreadable as error:
        return Unavailable("not_json", f"the answer is no JSON object ({error.code})", None, status, body)


def _retry_after(response: requests.Response) -> timedelta | None:
    """Seconds or a date, from one second to an hour."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        wait = timedelta(seconds=int(text))
    else:
        try:
            wait = parsedate_to_datetime(text) - datetime.now(UTC)
        except (ValueError, TypeError):
            return None
    return min(max(wait, timedelta(seconds=1)), MAX_RETRY_AFTER)
