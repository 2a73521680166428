"""Bring payloads back from the archive, and erase one for good."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import delete, select, text, update
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.arrays import Uuids
from receiver.db import at
from receiver.deps import Deps
from receiver.inbox.models import WebhookConflict, WebhookEvent, WebhookFetch, WebhookPayload
from receiver.retention.archive import rewrite, write_reserved
from receiver.retention.files import Archive, ArchiveBroken, ArchivedPayload, read_checked, unpacked
from receiver.retention.manifest import write_manifest
from receiver.retention.models import ArchivedEvent, ArchiveFile
from receiver.retention.turn import TurnTaken, turn_held

MOST = 10_000
"""Events of one restore."""


class NotRestorable(Exception):
    """``code``: event_unknown, not_archived, payload_there, payload_erased."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def where_archived(session: Session, event_id: UUID) -> tuple[ArchivedEvent, ArchiveFile] | None:
    """In which file the event's payload lies; None where it was never archived."""
    row = session.execute(
        select(ArchivedEvent, ArchiveFile)
        .join(ArchiveFile, ArchiveFile.id == ArchivedEvent.file_id)
        .where(ArchivedEvent.event_id == event_id)
    ).one_or_none()
    return None if row is None else (row[0], row[1])


def restore_event(deps: Deps, archive: Archive, event_id: UUID, *, actor: str, reason: str) -> str:
    """Bring one event's payload back, with the audit row; returns the file that it came from. It stays for
    a week, so that it can be read and replayed. Raises NotRestorable, ArchiveBroken.
    """
    with deps.sessions.begin() as session:
        event = session.get(WebhookEvent, event_id)
        if event is None:
            raise NotRestorable("event_unknown", f"no event {event_id}")
        if event.payload_id is not None:
            raise NotRestorable("payload_there", "the payload of this event is not erased")
        found = where_archived(session, event_id)
        if found is None or found[1].sha256 is None:
            raise NotRestorable("not_archived", "the payload was erased and never archived")
        if found[0].erased_at is not None:
            raise NotRestorable("payload_erased", "the payload was erased for good, from the archive too")
        payload_id, file_id, name = found[0].payload_id, found[1].id, found[1].name
    _restore(deps, archive, file_id, {payload_id}, actor=actor, reason=reason)
    return name


def restore_window(
    deps: Deps, archive: Archive, start: datetime, end: datetime, *, actor: str, reason: str
) -> int:
    """Bring back the payloads received from ``start`` to before ``end``, at most MOST; returns how many.

    Raises ArchiveBroken; what was brought back before stays.
    """
    with deps.sessions.begin() as session:
        rows = session.execute(
            select(ArchivedEvent.file_id, ArchivedEvent.payload_id)
            .join(WebhookEvent, WebhookEvent.id == ArchivedEvent.event_id)
            .join(ArchiveFile, ArchiveFile.id == ArchivedEvent.file_id)
            .where(
                ArchiveFile.last_received_at >= start,
                ArchiveFile.first_received_at < end,
                ArchiveFile.sha256.is_not(None),
                WebhookEvent.received_at >= start,
                WebhookEvent.received_at < end,
                WebhookEvent.payload_id.is_(None),
                ArchivedEvent.erased_at.is_(None),
            )
            .order_by(ArchivedEvent.file_id)
            .limit(MOST)
        ).all()
    wanted: dict[int, set[UUID]] = {}
    for file_id, payload_id in rows:
        wanted.setdefault(file_id, set()).add(payload_id)
    return sum(
        _restore(deps, archive, file_id, ids, actor=actor, reason=reason) for file_id, ids in wanted.items()
    )


def _restore(
    deps: Deps, archive: Archive, file_id: int, wanted: set[UUID], *, actor: str, reason: str
) -> int:
    with deps.sessions.begin() as session:
        file = session.get_one(ArchiveFile, file_id)
        name, sha256 = file.name, file.sha256 or ""
    data = read_checked(archive, name, sha256)
    payloads = [payload for payload in unpacked(data) if payload.id in wanted]
    if {payload.id for payload in payloads} != wanted:
        raise ArchiveBroken("archive_changed", f"{name} does not hold every payload that it should")
    now = deps.clock.now()
    with deps.sessions.begin() as session:
        _put_back(session, payloads, now)
        record(
            session,
            actor=actor,
            action="payload.restore",
            target=f"archive:{name}",
            criteria={"payloads": [str(payload.id) for payload in payloads][:100]},
            count=len(payloads),
            reason=reason,
            now=now,
        )
    return len(payloads)


_BACK = text(
    "INSERT INTO webhook_payloads (id, payload, headers, received_at)"
    " VALUES (:id, :payload, CAST(:headers AS jsonb), :received_at) ON CONFLICT DO NOTHING"
)

_POINT = text(
    "UPDATE webhook_events e SET payload_id = a.payload_id FROM archived_events a"
    " WHERE a.event_id = e.id AND a.payload_id = ANY(CAST(:ids AS uuid[])) AND a.erased_at IS NULL"
)


def _put_back(session: Session, payloads: Sequence[ArchivedPayload], now: datetime | None) -> None:
    for payload in payloads:
        values = {"id": payload.id, "payload": payload.payload, "received_at": payload.received_at}
        session.execute(_BACK, {**values, "headers": json.dumps(payload.headers)})
    ids = [payload.id for payload in payloads]
    session.execute(_POINT, {"ids": Uuids(ids)})
    session.execute(
        update(ArchivedEvent).where(ArchivedEvent.payload_id.in_(ids)).values(restored_at=at(now))
    )


def erase_payload(
    deps: Deps, archive: Archive | None, event_id: UUID, *, actor: str, reason: str
) -> str | None:
    """Erase one request's bytes for good: here, what was read back, other bodies under its id, and in the
    archive. Its key, hashes and outcome stay. The other events of one request lose it too.

    Returns the name of the file that had to be written anew, if any. Raises NotRestorable for an unknown
    event, and ArchiveBroken where the archive cannot be reached, or retention runs, now: the file then still
    holds it, which is kept in mind and done by the next run.
    """
    now = deps.clock.now()
    with deps.sessions.begin() as session:
        event = session.get(WebhookEvent, event_id)
        if event is None:
            raise NotRestorable("event_unknown", f"no event {event_id}")
        payload_id, events = event.payload_id, {event_id}
        if payload_id is not None:
            sharing = select(WebhookEvent.id).where(WebhookEvent.payload_id == payload_id)
            events |= set(session.scalars(sharing))
            # Before it is asked where it is archived: a run that chose it meanwhile is seen.
            session.execute(delete(WebhookPayload).where(WebhookPayload.id == payload_id))
        found = where_archived(session, event_id)
        if found is not None:
            of_payload = ArchivedEvent.payload_id == found[0].payload_id
            events |= set(session.scalars(select(ArchivedEvent.event_id).where(of_payload)))
            session.execute(update(ArchivedEvent).where(of_payload).values(erased_at=at(now)))
        session.execute(update(WebhookFetch).where(WebhookFetch.event_id.in_(events)).values(body=None))
        session.execute(
            update(WebhookConflict)
            .where(WebhookConflict.event_id.in_(events))
            .values(payload=None, headers=None)
        )
        if found is not None:
            found[1].rewrite = True
        record(
            session,
            actor=actor,
            action="payload.erase",
            target=f"event:{event_id}",
            criteria={"events": sorted(str(each) for each in events), "archived": found is not None},
            count=len(events),
            reason=reason,
            now=now,
        )
        owed = (found[1].id, found[1].name) if found is not None else None
    if owed is not None:
        _take_out(deps, archive, *owed)
    return None if owed is None else owed[1]


def _take_out(deps: Deps, archive: Archive | None, file_id: int, name: str) -> None:
    """Write the file anew, in retention's turn: two writers of one file would spoil it."""
    if archive is None:
        raise ArchiveBroken("archive_unreachable", f"ARCHIVE_URL is not set, and {name} still holds it")
    try:
        with turn_held(deps):
            with deps.sessions() as session:
                reserved = session.get_one(ArchiveFile, file_id).sha256 is None
            if reserved:
                # A writing of it may have broken off after the file was there.
                write_reserved(deps, archive, file_id)
            rewrite(deps, archive, file_id)
            write_manifest(deps, archive)
    except TurnTaken:
        raise ArchiveBroken("archive_busy", f"retention runs now, and {name} may still hold it") from None
