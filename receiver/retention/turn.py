"""One run of retention: whose turn it is, and what it does. Any worker may run it; one at a time does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.acknowledge import prune_payloads
from receiver.logs import logger
from receiver.retention.archive import erase_written, owed, reserve, rewrite, verify_file, write_reserved
from receiver.retention.files import Archive, ArchiveBroken, FsspecArchive
from receiver.retention.forget import forget_old
from receiver.retention.manifest import write_manifest
from receiver.retention.pace import paced
from receiver.retention.reindex import reindex_due

EVERY = timedelta(hours=1)
LEASE = timedelta(minutes=15)
"""Renewed with every file; a worker that vanished gives its turn up after this."""

MOST_FILES = 50
"""Files of one run: a long backlog is worked off over some hours."""

PRUNE_ROWS = 500

log = logger("worker")


@dataclass(slots=True)
class Ran:
    """What a run did. ``failed``: why the archive could not be used; the rest was done all the same."""

    files: int = 0
    archived: int = 0
    erased: int = 0
    forgotten: dict[str, int] = field(default_factory=dict)
    reindexed: int = 0
    changed: bool = False
    failed: str | None = None

    def __str__(self) -> str:
        said = f"{self.archived} payloads archived in {self.files} files, {self.erased} erased"
        if self.forgotten:
            said += "; forgotten: " + ", ".join(f"{n} {name}" for name, n in self.forgotten.items())
        if self.reindexed:
            said += f"; {self.reindexed} indexes written afresh"
        return said if self.failed is None else f"{said}; {self.failed}"


_TAKE = text(
    """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now)
INSERT INTO retention_turns AS r (id, held_until, turn_id)
SELECT 1, t.now + CAST(:lease AS interval), :turn FROM t
ON CONFLICT (id) DO UPDATE SET held_until = excluded.held_until, turn_id = excluded.turn_id
WHERE r.held_until <= (SELECT now FROM t)
  AND (CAST(:every AS interval) IS NULL OR r.last_run_at IS NULL
       OR r.last_run_at <= (SELECT now FROM t) - CAST(:every AS interval))
RETURNING turn_id"""
)

_RENEW = text(
    "UPDATE retention_turns SET held_until ="
    " coalesce(CAST(:now AS timestamptz), now()) + CAST(:lease AS interval)"
    " WHERE id = 1 AND turn_id = :turn RETURNING 1"
)

_END = text(
    "UPDATE retention_turns SET held_until = t.now, last_run_at = t.now, last_result = :result"
    " FROM (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now) t WHERE id = 1 AND turn_id = :turn"
)


_LEAVE = text(
    "UPDATE retention_turns SET held_until = coalesce(CAST(:now AS timestamptz), now())"
    " WHERE id = 1 AND turn_id = :turn"
)


class TurnTaken(Exception):
    """Somebody else runs retention now, or took this turn over."""


def archive_of(deps: Deps) -> Archive | None:
    """The configured archive; None where there is none."""
    settings = deps.settings.retention
    return FsspecArchive(settings.archive_url) if settings.archives else None


def run_due(deps: Deps) -> Ran | None:
    """A duty: run once an hour, by whichever worker comes first; None where it was not the time."""
    try:
        return run(deps, archive_of(deps), every=EVERY)
    except TurnTaken:
        return None


def run(deps: Deps, archive: Archive | None, *, every: timedelta | None = None) -> Ran:
    """Archive and erase what is old enough, then forget. Raises TurnTaken, and what the database raises;
    a broken archive is told in the answer, and nothing is erased that it should hold.
    """
    turn = _take(deps, every)
    ran = Ran()
    try:
        _payloads(deps, archive, ran, turn)
        if archive is not None and ran.changed:
            write_manifest(deps, archive)
    except ArchiveBroken as error:
        ran.failed = f"{error.code}: {error.detail}"
        log.warning("retention.archive_failed", code=error.code, detail=error.detail)
    ran.forgotten = forget_old(deps)
    ran.reindexed = len(reindex_due(deps))
    with deps.sessions.begin() as session:
        session.execute(_END, {"now": deps.clock.now(), "turn": turn, "result": str(ran)[:2000]})
    log.info("retention.ran", files=ran.files, archived=ran.archived, erased=ran.erased, **_words(ran))
    return ran


@contextmanager
def turn_held(deps: Deps) -> Iterator[None]:
    """Hold the turn for one act on a file of the archive. Raises TurnTaken."""
    turn = _take(deps, None)
    try:
        yield
    finally:
        with deps.sessions.begin() as session:
            session.execute(_LEAVE, {"now": deps.clock.now(), "turn": turn})


def _take(deps: Deps, every: timedelta | None) -> UUID:
    turn = deps.dice.new_id()
    with deps.sessions.begin() as session:
        asked = {"now": deps.clock.now(), "lease": LEASE, "turn": turn, "every": every}
        if session.execute(_TAKE, asked).first() is None:
            raise TurnTaken
    return turn


def _payloads(deps: Deps, archive: Archive | None, ran: Ran, turn: UUID) -> None:
    settings = deps.settings.retention
    if archive is None:
        if settings.erases:
            _erase_unarchived(deps, ran, turn)
        return
    _pay_owed(deps, archive, ran, turn)
    for _ in range(MOST_FILES):
        with deps.sessions.begin() as session:
            _renew(session, deps, turn)
            file = reserve(session, age=settings.payloads, now=deps.clock.now())
            file_id = None if file is None else file.id
        if file_id is None:
            return
        _write_and_erase(deps, archive, file_id, ran)


def _pay_owed(deps: Deps, archive: Archive, ran: Ran, turn: UUID) -> None:
    with deps.sessions.begin() as session:
        found = owed(session, now=deps.clock.now())
    for file_id, work in found:
        with deps.sessions.begin() as session:
            _renew(session, deps, turn)
        try:
            _pay(deps, archive, file_id, work, ran)
        except ArchiveBroken as error:
            # One file that is damaged must not keep all others from being written.
            if error.code == "archive_unreachable" or work == "write":
                raise
            ran.failed = f"{error.code}: {error.detail}"
            log.warning("retention.archive_failed", code=error.code, detail=error.detail)


def _pay(deps: Deps, archive: Archive, file_id: int, work: str, ran: Ran) -> None:
    if work == "write":
        _write_and_erase(deps, archive, file_id, ran)
    elif work == "rewrite":
        rewrite(deps, archive, file_id)
        ran.changed = True
    else:
        # Written by an earlier run: is it still there?
        verify_file(deps, archive, file_id)
        ran.erased += erase_written(deps, file_id)


def _write_and_erase(deps: Deps, archive: Archive, file_id: int, ran: Ran) -> None:
    with paced():
        ran.archived += write_reserved(deps, archive, file_id)
    ran.files += 1
    ran.changed = True
    ran.erased += erase_written(deps, file_id)


def _erase_unarchived(deps: Deps, ran: Ran, turn: UUID) -> None:
    number = PRUNE_ROWS
    while number == PRUNE_ROWS:
        with paced(), deps.sessions.begin() as session:
            _renew(session, deps, turn)
            number = prune_payloads(
                session,
                older_than=deps.settings.retention.payloads,
                limit=PRUNE_ROWS,
                open_too=False,
                now=deps.clock.now(),
            )
        ran.erased += number


def _renew(session: Session, deps: Deps, turn: UUID) -> None:
    if session.execute(_RENEW, {"now": deps.clock.now(), "lease": LEASE, "turn": turn}).first() is None:
        raise TurnTaken


def _words(ran: Ran) -> dict[str, object]:
    return {"forgotten": ran.forgotten, "failed": ran.failed}
