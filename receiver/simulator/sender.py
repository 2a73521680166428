"""Whose callbacks are played: signs as the provider would, with what the source holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from receiver.providers.authentication import SignedRequest
from receiver.providers.provider import Provider
from receiver.providers.reading import UnusableId
from receiver.providers.strict_json import Unreadable
from receiver.settings import Source
from receiver.simulator.scenarios import PlannedPost


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose callbacks are played: signs with the source's first secret, at ``unix()`` plus the shift."""

    provider: Provider
    source: Source
    unix: Callable[[], float] = time.time

    def signed(self, post: PlannedPost) -> SignedRequest:
        """What the provider would send. Raises ValueError where it cannot be signed with what is here."""
        now = int(self.unix()) + post.signed_shift
        usable = self.provider.usable_secrets(self.source) or self.source.secrets
        secret = usable[0].value if usable else ""
        request = self.provider.sign_request(secret, post.body, now, post.event_id, self.source.options)
        headers = {"Content-Type": "application/json", **request.headers}
        if post.signed_shift and self.provider.timestamp_optional(self.source):
            headers["X-Timestamp"] = str(now)
        return SignedRequest(headers, request.body)

    def headers_and_body(self, post: PlannedPost) -> tuple[dict[str, str], bytes]:
        """What goes out: a tampered post has one byte changed after signing."""
        request = self.signed(post)
        body = request.body
        if post.tampered:
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
        return request.headers, body

    def stored_id(self, headers: Mapping[str, str], body: bytes) -> str | None:
        """The id under which the service keeps the request's event; None where it cannot tell alone."""
        try:
            event = self.provider.read(self.source.name, Headers(headers), body)[0]
        except (Unreadable, UnusableId):
            return None
        return None if event.per_receipt else event.provider_event_id

    def stores_with(self, status: int) -> bool:
        """Whether that answer says that the event is stored."""
        return status == self.provider.answers.accepted or 200 <= status < 300


class Headers(dict[str, str]):
    """Headers by any case of their names."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__({name.lower(): value for name, value in headers.items()})

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)
