"""Conflicts: other facts under a known event id. List them, let one in as an event of its own, reject one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.inbox.intake_statement import NewEvent, Payload, Receipt, write_events
from receiver.inbox.models import WebhookConflict, WebhookEvent, WebhookPayload
from receiver.inbox.release import NotReleasable
from receiver.providers.reading import ReadEvent, UnusableId
from receiver.providers.registry import UnknownProvider, provider_of
from receiver.providers.strict_json import Unreadable
from receiver.queue.backoff import GIVE_UP
from receiver.settings import Settings

STATES = ("open", "released", "rejected")

MAX_PAGE = 200


class UnknownConflict(Exception):
    """No conflict of that number."""

    def __init__(self, conflict_id: int) -> None:
        super().__init__(f"no conflict {conflict_id}")
        self.code = "conflict_unknown"
        self.detail = str(self)


@dataclass(frozen=True, slots=True)
class ConflictDetail:
    """A conflict with its event and both bodies; ``payload`` None where it was erased.

    ``read`` is what the conflicting body says, None where it is not kept or can no longer be read.
    """

    conflict: WebhookConflict
    event: WebhookEvent
    payload: WebhookPayload | None
    read: ReadEvent | None


def list_conflicts(
    session: Session,
    *,
    state: str | None = "open",
    source: str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[tuple[WebhookConflict, WebhookEvent]]:
    """Conflicts (never variants), the newest first, each with its event. ``before`` goes on after a page."""
    query = (
        select(WebhookConflict, WebhookEvent)
        .join(WebhookEvent, WebhookEvent.id == WebhookConflict.event_id)
        # A literal, so that the partial index serves prepared statements too.
        .where(text("webhook_conflicts.kind = 'conflict'"))
        .order_by(WebhookConflict.id.desc())
        .limit(max(1, min(limit, MAX_PAGE)))
    )
    if state is not None:
        query = query.where(WebhookConflict.state == state)
    if source is not None:
        query = query.where(WebhookEvent.source == source)
    if before is not None:
        query = query.where(WebhookConflict.id < before)
    return [(conflict, event) for conflict, event in session.execute(query)]


def find_conflict(session: Session, settings: Settings, conflict_id: int) -> ConflictDetail:
    """One conflict with everything that tells it from its event. Raises UnknownConflict."""
    conflict = session.get(WebhookConflict, conflict_id, populate_existing=True)
    if conflict is None:
        raise UnknownConflict(conflict_id)
    event = session.get_one(WebhookEvent, conflict.event_id)
    payload = session.get(WebhookPayload, event.payload_id) if event.payload_id else None
    try:
        read = _read(settings, event, conflict)
    except NotReleasable:
        read = None
    return ConflictDetail(conflict, event, payload, read)


def release_conflict(
    session: Session,
    settings: Settings,
    conflict_id: int,
    *,
    event_id: UUID,
    payload_id: UUID,
    actor: str,
    reason: str,
    admin: bool,
    give_up: timedelta = GIVE_UP,
    now: datetime | None = None,
) -> WebhookEvent:
    """Let a conflicting body in as an event of its own, ``<id>#<first 8 of its sha256>``, with the audit
    row; the worker then decides about it like any other.

    ``event_id`` and ``payload_id`` become those of the new rows. Raises UnknownConflict, NotReleasable.
    """
    conflict, event = _open(session, conflict_id, admin, reason)
    read = _read(settings, event, conflict)
    sha256 = conflict.payload_sha256
    payload = Payload(payload_id, conflict.payload or b"", json.dumps(conflict.headers or []))
    new = NewEvent(
        id=event_id,
        provider_event_id=f"{event.provider_event_id}#{sha256.hex()[:8]}",
        event_type=read.event_type,
        facts=read.facts,
        facts_sha256=read.facts_sha256,
        payload_sha256=sha256,
        payload_id=payload_id,
        item=read.item,
        key_id=event.key_id,
        flaw=read.flaw,
    )
    (receipt,) = _write(session, payload, new, give_up, now)
    if receipt.id != event_id:
        raise NotReleasable("known", f"there is an event {new.provider_event_id} already")
    _settle(session, conflict, "released", actor, reason, now, {"event": str(event_id)})
    return session.get_one(WebhookEvent, event_id)


def reject_conflict(
    session: Session,
    conflict_id: int,
    *,
    actor: str,
    reason: str,
    admin: bool,
    now: datetime | None = None,
) -> WebhookConflict:
    """Say that the conflicting body shall never count, with the audit row.

    Raises UnknownConflict, NotReleasable.
    """
    conflict, _ = _open(session, conflict_id, admin, reason)
    _settle(session, conflict, "rejected", actor, reason, now, {})
    return conflict


def _open(
    session: Session, conflict_id: int, admin: bool, reason: str
) -> tuple[WebhookConflict, WebhookEvent]:
    if not admin:
        raise NotReleasable("needs_admin", "only an admin releases or rejects")
    if not reason.strip():
        raise NotReleasable("no_reason", "say why: the audit row keeps it")
    conflict = session.get(WebhookConflict, conflict_id, with_for_update=True, populate_existing=True)
    if conflict is None:
        raise UnknownConflict(conflict_id)
    if conflict.kind != "conflict":
        raise NotReleasable("not_a_conflict", "this is a variant: its facts are those of its event")
    if conflict.state != "open":
        raise NotReleasable("not_open", f"the conflict is {conflict.state} already, by {conflict.by}")
    return conflict, session.get_one(WebhookEvent, conflict.event_id)


class _Headers:
    """Kept headers, looked up as the door does: without minding case."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values = {name.lower(): value for name, value in pairs}

    def get(self, name: str, /) -> str | None:
        return self._values.get(name.lower())


def _read(settings: Settings, event: WebhookEvent, conflict: WebhookConflict) -> ReadEvent:
    """What the kept body says of the event's id, through the provider's one reader."""
    if conflict.payload is None:
        raise NotReleasable("body_not_kept", "of this conflict only the hash was kept, not the body")
    source = settings.sources.get(event.source)
    if source is None:
        raise NotReleasable("unreadable", f"there are no settings for the source {event.source} here")
    try:
        found = provider_of(source).read(event.source, _Headers(conflict.headers or ()), conflict.payload)
    except (UnknownProvider, Unreadable, UnusableId) as error:
        raise NotReleasable("unreadable", f"the kept body can no longer be read: {error}") from error
    for read in found:
        if (
            read.provider_event_id == event.provider_event_id
            and read.payload_sha256 == conflict.payload_sha256
        ):
            return read
    raise NotReleasable("unreadable", "the kept body no longer holds this event")


def _write(
    session: Session, payload: Payload, event: NewEvent, give_up: timedelta, now: datetime | None
) -> list[Receipt]:
    # The intake's own statement, in this transaction: one way for events to come into the inbox.
    connection: psycopg.Connection[Any] = session.connection().connection.driver_connection  # type: ignore[assignment]
    return write_events(connection, [payload], [event], give_up=give_up, now=now)


def _settle(
    session: Session,
    conflict: WebhookConflict,
    state: str,
    actor: str,
    reason: str,
    now: datetime | None,
    more: dict[str, str],
) -> None:
    session.execute(
        update(WebhookConflict)
        .where(WebhookConflict.id == conflict.id)
        .values(state=state, by=actor, reason=reason.strip())
        .execution_options(synchronize_session=False)
    )
    session.refresh(conflict)
    record(
        session,
        actor=actor,
        action="conflict.release" if state == "released" else "conflict.reject",
        target=f"conflict:{conflict.id}",
        criteria={"of": str(conflict.event_id), "sha256": conflict.payload_sha256.hex(), **more},
        reason=reason.strip(),
        now=now,
    )
