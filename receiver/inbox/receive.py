"""What the door hands in: a verified request becomes a payload and its events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from receiver.deps import Deps
from receiver.inbox.intake import Intake
from receiver.inbox.intake_statement import NewEvent, Payload, Receipt
from receiver.providers.reading import ReadEvent

REDACTED = "[redacted]"

SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
"""Headers that may carry a credential of their own, whatever the provider."""


def kept_headers(headers: Iterable[tuple[str, str]], secret_headers: frozenset[str]) -> list[tuple[str, str]]:
    """The headers as they are stored: all of them, signature and timestamp included, so that a
    stored event can be verified again; only what carries a secret itself is cut.
    """
    hidden = SECRET_HEADERS | secret_headers
    return [
        (name, REDACTED if name.lower() in hidden else value.replace("\0", "")) for name, value in headers
    ]


def store(
    deps: Deps,
    intake: Intake,
    events: Iterable[ReadEvent],
    *,
    body: bytes,
    headers: list[tuple[str, str]],
    key_id: str | None,
    now: datetime | None = None,
) -> list[Receipt]:
    """Store one verified request's events; returns their receipts once they are committed.

    ``headers`` are the kept ones. Raises IntakeUnavailable when the commit is not proven in time.
    """
    payload = Payload(deps.dice.new_id(), body, json.dumps(headers))
    new = [
        NewEvent(
            id=(receipt := deps.dice.new_id()),
            # A notification that carries only an object's id repeats it for every status of the object:
            # each request is then an event of its own.
            provider_event_id=(
                f"{event.provider_event_id}@{receipt}" if event.per_receipt else event.provider_event_id
            ),
            event_type=event.event_type,
            facts=event.facts,
            facts_sha256=event.facts_sha256,
            payload_sha256=event.payload_sha256,
            payload_id=payload.id,
            item=event.item,
            key_id=key_id,
            flaw=event.flaw,
        )
        for event in events
    ]
    return intake.write(payload, new, now)
