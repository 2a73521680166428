"""Archive, then erase: each step may be the last of a process, and the next one goes on from it.

Reserve chooses payloads and names their file, in one transaction: from then on they belong to it. Write puts
the file there, reads it back, and only then says so. Erase takes what a written file holds, in small pieces.
A process that dies in between leaves a reserved file, which is written again under the same name with the
same payloads: nothing is lost and nothing is there twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.arrays import Uuids
from receiver.db import at
from receiver.deps import Deps
from receiver.retention.files import Archive, ArchiveBroken, ArchivedPayload, packed, read_checked, unpacked
from receiver.retention.models import ArchivedEvent, ArchiveFile
from receiver.retention.pace import paced

FILE_PAYLOADS = 2_000
FILE_BYTES = 32 * 1024 * 1024
"""What one file holds at most; it is packed in memory."""

ERASE_ROWS = 200
"""Payloads of one transaction: it holds their rows for some milliseconds."""

RESTORED_STAYS = timedelta(days=7)
"""How long a restored payload stays before it is erased again."""

_NOW = "coalesce(CAST(:now AS timestamptz), now())"

# Open dead letters keep their payload: somebody has still to look at it. The sizes are summed up in the
# order of the ids, so that the choice ends before the file becomes too large.
_CHOOSE = text(
    f"""\
SELECT id, received_at FROM (
  SELECT p.id, p.received_at, sum(octet_length(p.payload)) OVER (ORDER BY p.id) AS size,
         row_number() OVER (ORDER BY p.id) AS number
  FROM (
    SELECT p.id, p.received_at, p.payload FROM webhook_payloads p
    WHERE p.received_at <= {_NOW} - CAST(:age AS interval)
      AND NOT EXISTS (SELECT 1 FROM archived_events a WHERE a.payload_id = p.id)
      AND EXISTS (SELECT 1 FROM webhook_events e WHERE e.payload_id = p.id)
      AND NOT EXISTS (
        SELECT 1 FROM webhook_events e WHERE e.payload_id = p.id
          AND (e.state IN ('pending', 'in_flight')
               OR (e.state IN ('failed', 'expired') AND e.acknowledged_at IS NULL)))
    ORDER BY p.id LIMIT :rows
  ) p
) s WHERE number = 1 OR size <= :bytes ORDER BY id"""
)

_TAKE = text(
    "INSERT INTO archived_events (event_id, payload_id, file_id)"
    " SELECT e.id, e.payload_id, :file FROM webhook_events e"
    " WHERE e.payload_id = ANY(CAST(:ids AS uuid[])) ON CONFLICT DO NOTHING"
)

_CONTENT = text(
    """\
SELECT p.id, p.received_at, p.payload, p.headers,
       jsonb_agg(jsonb_build_object('id', e.id, 'source', e.source, 'provider_event_id', e.provider_event_id,
                                    'state', e.state, 'outcome', e.outcome) ORDER BY e.item, e.id) AS events
FROM webhook_payloads p JOIN webhook_events e ON e.payload_id = p.id
WHERE p.id IN (SELECT payload_id FROM archived_events WHERE file_id = :file AND erased_at IS NULL)
GROUP BY p.id ORDER BY p.id"""
)

_ERASE = text(
    f"""\
WITH gone AS (
  DELETE FROM webhook_payloads WHERE id IN (
    SELECT p.id FROM archived_events a
    JOIN archive_files f ON f.id = a.file_id AND f.state <> 'reserved'
    JOIN webhook_payloads p ON p.id = a.payload_id
    WHERE a.file_id = :file
      AND (a.restored_at IS NULL OR a.restored_at <= {_NOW} - CAST(:stays AS interval))
      AND NOT EXISTS (
        SELECT 1 FROM webhook_events e WHERE e.payload_id = p.id
          AND (e.state IN ('pending', 'in_flight')
               OR (e.state IN ('failed', 'expired') AND e.acknowledged_at IS NULL)))
    ORDER BY p.id LIMIT :rows FOR UPDATE OF p SKIP LOCKED
  ) RETURNING id
), fetched AS (
  UPDATE webhook_fetches SET body = NULL WHERE body IS NOT NULL AND event_id IN (
    SELECT a.event_id FROM archived_events a JOIN gone ON gone.id = a.payload_id)
)
SELECT count(*) FROM gone"""
)


def reserve(session: Session, *, age: timedelta, now: datetime | None = None) -> ArchiveFile | None:
    """Choose the next file's payloads and name it; None when nothing is old enough. The name says when its
    first payload came and is of this file alone.
    """
    rows = _chosen(session, age, now)
    if not rows:
        return None
    ids: Sequence[UUID] = [row.id for row in rows]
    file = ArchiveFile(
        name=_name(rows[0].received_at, ids[0]),
        first_received_at=min(row.received_at for row in rows),
        last_received_at=max(row.received_at for row in rows),
        payloads=len(rows),
        created_at=at(now),
    )
    session.add(file)
    session.flush()
    session.execute(_TAKE, {"file": file.id, "ids": Uuids(ids)})
    return file


def write_reserved(deps: Deps, archive: Archive, file_id: int) -> int:
    """Write a reserved file, prove it by reading it back, and say so; returns its payloads. What was erased
    on request meanwhile is not in it. Raises ArchiveBroken.
    """
    with deps.sessions.begin() as session:
        name = session.execute(select(ArchiveFile.name).where(ArchiveFile.id == file_id)).scalar_one()
        payloads = [
            ArchivedPayload(row.id, row.received_at, bytes(row.payload), row.headers, row.events)
            for row in session.execute(_CONTENT, {"file": file_id})
        ]
    data = packed(payloads)
    _put(archive, name, data, len(payloads))
    with deps.sessions.begin() as session:
        _written(session, file_id, data, len(payloads), deps.clock.now())
        kept = {payload.id for payload in payloads}
        session.execute(
            text(
                "DELETE FROM archived_events WHERE file_id = :file AND erased_at IS NULL"
                " AND payload_id <> ALL(CAST(:kept AS uuid[]))"
            ),
            {"file": file_id, "kept": Uuids(kept)},
        )
    return len(payloads)


_IS_DONE = text(
    """\
UPDATE archive_files SET state = 'done' WHERE id = :file AND state = 'written' AND NOT EXISTS (
  SELECT 1 FROM archived_events a JOIN webhook_payloads p ON p.id = a.payload_id
  WHERE a.file_id = :file AND a.restored_at IS NULL)"""
)

_STAYED = text(
    f"""\
SELECT DISTINCT file_id FROM archived_events
WHERE restored_at IS NOT NULL AND restored_at <= {_NOW} - CAST(:stays AS interval)"""
)

_NO_LONGER_RESTORED = text(
    f"""\
UPDATE archived_events SET restored_at = NULL
WHERE file_id = :file AND restored_at <= {_NOW} - CAST(:stays AS interval)
  AND NOT EXISTS (SELECT 1 FROM webhook_payloads p WHERE p.id = archived_events.payload_id)"""
)


def erase_written(deps: Deps, file_id: int) -> int:
    """Erase the payloads that a written file holds, piece by piece; returns how many. One whose event goes
    round again stays for the next time.
    """
    now = deps.clock.now()
    erased, number = 0, ERASE_ROWS
    while number == ERASE_ROWS:
        with paced(), deps.sessions.begin() as session:
            asked = {"file": file_id, "now": now, "rows": ERASE_ROWS, "stays": RESTORED_STAYS}
            number = int(session.execute(_ERASE, asked).scalar_one())
        erased += number
    with deps.sessions.begin() as session:
        session.execute(_NO_LONGER_RESTORED, {"file": file_id, "now": now, "stays": RESTORED_STAYS})
        session.execute(_IS_DONE, {"file": file_id})
    return erased


def rewrite(deps: Deps, archive: Archive, file_id: int) -> None:
    """Write a file anew without what was erased on request, then delete the old one. Raises ArchiveBroken.

    A file that holds nothing of it stays. Only who holds retention's turn calls this and `write_reserved`:
    two writers of one name would leave bytes that the manifest's checksum does not know.
    """
    with deps.sessions.begin() as session:
        file = session.get_one(ArchiveFile, file_id)
        name, sha256, version, owed = file.name, file.sha256, file.version, file.rewrite
        erased = set(
            session.scalars(
                select(ArchivedEvent.payload_id).where(
                    ArchivedEvent.file_id == file_id, ArchivedEvent.erased_at.is_not(None)
                )
            )
        )
    if owed and sha256 is not None:
        old = list(unpacked(read_checked(archive, name, sha256)))
        left = [payload for payload in old if payload.id not in erased]
        data, renamed = packed(left), _next_name(name, version)
        if len(left) < len(old):
            _put(archive, renamed, data, len(left))
        with deps.sessions.begin() as session:
            file = session.get_one(ArchiveFile, file_id, with_for_update=True)
            # What was erased while the file was being written is still in it.
            file.rewrite = _holds_erased(session, file_id, [payload.id for payload in left])
            if len(left) < len(old):
                file.name, file.previous_name, file.version = renamed, name, version + 1
                _written(session, file_id, data, len(left), deps.clock.now())
    _delete_previous(deps, archive, file_id)


def _holds_erased(session: Session, file_id: int, kept: list[UUID]) -> bool:
    query = select(ArchivedEvent.event_id).where(
        ArchivedEvent.file_id == file_id,
        ArchivedEvent.erased_at.is_not(None),
        ArchivedEvent.payload_id.in_(kept),
    )
    return session.execute(query.limit(1)).first() is not None


def _delete_previous(deps: Deps, archive: Archive, file_id: int) -> None:
    with deps.sessions.begin() as session:
        previous = session.get_one(ArchiveFile, file_id).previous_name
    if previous is not None:
        archive.delete(previous)
        with deps.sessions.begin() as session:
            session.get_one(ArchiveFile, file_id).previous_name = None


def verify_file(deps: Deps, archive: Archive, file_id: int) -> int:
    """Read a written file and compare everything with the manifest; returns its payloads. Raises
    ArchiveBroken.
    """
    with deps.sessions.begin() as session:
        file = session.get_one(ArchiveFile, file_id)
        name, sha256, expected = file.name, file.sha256, file.payloads
    if sha256 is None:
        raise ArchiveBroken("archive_missing", f"{name} is reserved and not written yet")
    found = sum(1 for _ in unpacked(read_checked(archive, name, sha256)))
    if found != expected:
        raise ArchiveBroken("archive_changed", f"{name} holds {found} payloads, not {expected}")
    with deps.sessions.begin() as session:
        session.get_one(ArchiveFile, file_id).verified_at = at(deps.clock.now())
    return found


def owed(session: Session, *, now: datetime | None = None) -> list[tuple[int, str]]:
    """Files on which work is owed, the oldest first, with the work: `write`, `erase` or `rewrite`."""
    rows = session.execute(
        select(ArchiveFile.id, ArchiveFile.state, ArchiveFile.rewrite, ArchiveFile.previous_name)
        .where(text("state <> 'done' OR rewrite OR previous_name IS NOT NULL"))
        .order_by(ArchiveFile.id)
    ).all()
    found = [(row.id, "write") for row in rows if row.state == "reserved"]
    found += [(row.id, "rewrite") for row in rows if row.rewrite or row.previous_name is not None]
    stayed = session.execute(_STAYED, {"now": now, "stays": RESTORED_STAYS}).scalars()
    erase = {row.id for row in rows if row.state == "written"} | set(stayed)
    return found + [(file_id, "erase") for file_id in sorted(erase)]


def waiting(session: Session, *, age: timedelta, now: datetime | None = None) -> int:
    """How many payloads are old enough to be archived, of the next file."""
    return len(_chosen(session, age, now))


def _chosen(session: Session, age: timedelta, now: datetime | None) -> Sequence[Any]:
    asked = {"now": now, "age": age, "rows": FILE_PAYLOADS, "bytes": FILE_BYTES}
    return session.execute(_CHOOSE, asked).all()


def _name(received_at: datetime, first: UUID) -> str:
    return f"payloads-{received_at:%Y-%m-%d}-{first}.jsonl.gz"


def _next_name(name: str, version: int) -> str:
    stem = name.removesuffix(".jsonl.gz").removesuffix(f"-v{version}")
    return f"{stem}-v{version + 1}.jsonl.gz"


def _put(archive: Archive, name: str, data: bytes, number: int) -> None:
    """Write and prove it: the bytes that come back are the bytes that went, and every line can be read."""
    archive.write(name, data)
    back = read_checked(archive, name, hashlib.sha256(data).hexdigest())
    if sum(1 for _ in unpacked(back)) != number:
        raise ArchiveBroken("archive_changed", f"{name} came back with other payloads")


def _written(session: Session, file_id: int, data: bytes, number: int, now: datetime | None) -> None:
    file: Any = session.get_one(ArchiveFile, file_id)
    file.state = "written" if file.state == "reserved" else file.state
    file.sha256, file.bytes = hashlib.sha256(data).hexdigest(), len(data)
    file.payloads, file.written_at, file.verified_at = number, at(now), at(now)
