"""What the commands of the desk (orders, inbox, users, tokens) share: Deps on the right database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from sqlalchemy.orm import Session

from receiver.cli.home import desk_settings
from receiver.cli.output import Refused
from receiver.deps import Deps
from receiver.inbox.find_events import event_by_provider_id
from receiver.inbox.models import WebhookEvent


@contextmanager
def desk() -> Iterator[Deps]:
    """Deps of one command, closed at its end. Raises SettingsError."""
    deps = Deps.build(desk_settings())
    try:
        yield deps
    finally:
        deps.dispose()


def find_one_event(session: Session, text: str) -> WebhookEvent:
    """The event of a receipt or of a provider's event id (``source:id`` where several have it).

    Raises Refused.
    """
    try:
        event = session.get(WebhookEvent, UUID(text))
    except ValueError:
        event = None
    if event is not None:
        return event
    if "\0" in text or not text.isprintable():
        raise Refused("an event id has no control characters")
    found = event_by_provider_id(session, text)
    source, colon, rest = text.partition(":")
    if not found and colon:
        found = event_by_provider_id(session, rest, source)
    if not found:
        raise Refused(f"there is no event {text}")
    if len(found) > 1:
        names = ", ".join(f"{event.source}:{event.provider_event_id}" for event in found)
        raise Refused(f"several sources have this event id: name one of {names}")
    return found[0]
