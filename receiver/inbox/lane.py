"""A lane of the worker: claim a batch, work it, and when it fails find out which row is to blame.

T1 claims and commits. T2 works the whole batch in one transaction. A deadlock repeats T2; a lock
timeout or any other fault makes the batch fall apart into single rows, so that a locked order delays
its own events only and poison hurts itself alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from psycopg import errors
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.attempt_faults import code_of, place_of, told_of
from receiver.inbox.claimed import COLUMNS, Claimed, claimed_from
from receiver.inbox.confirm import Confirmed, Confirmer
from receiver.inbox.table import INBOX
from receiver.inbox.work_batch import ClaimLost, Worked, work_batch
from receiver.logs import logger
from receiver.orders.record import FactsChanged
from receiver.queue.claim import claim, claim_lost
from receiver.queue.renew import renew
from receiver.queue.settle import Settlement, defer, hand_back, release, settle

LOCK_TIMEOUT = "2s"
"""How long T2 waits for a locked order before the batch falls apart."""

SAME_AGAIN = 5
"""Times that T2 is repeated after a deadlock or changed facts before it counts as a failure."""

FETCH_SECONDS = 10.0
"""How long a claim's rows are read back one after the other, while other sources' rows wait."""

_REPEATED = (errors.DeadlockDetected, errors.SerializationFailure)
_LOCKED = (errors.LockNotAvailable,)

log = logger("worker")


@dataclass(slots=True)
class _Claim:
    """What is still to be settled. ``ends``: rows whose end is known, but could not be written yet;
    ``locked``: orders and transactions that somebody else was found to hold.
    """

    id: UUID
    rows: list[Claimed]
    ends: dict[UUID, Settlement] = field(default_factory=dict)
    locked: set[tuple[str, str]] = field(default_factory=set)


class Lane:
    """One claim after the other, each worked in transactions of its own; one thread's alone.

    ``stopping`` is asked between transactions; once it says so, what was not started is handed back.
    """

    def __init__(self, deps: Deps, worker: str, confirmer: Confirmer, stopping: Callable[[], bool]) -> None:
        self._deps = deps
        self._worker = worker
        self._confirmer = confirmer
        self._stopping = stopping
        self._owed: list[_Claim] = []

    def use(self, deps: Deps, confirmer: Confirmer) -> None:
        """Work by other settings from the next batch on."""
        self._deps = deps
        self._confirmer = confirmer

    def batch(self) -> int:
        """Claim one batch and work it; returns the number of rows claimed."""
        self._hand_back_owed()
        settings = self._deps.settings
        return self._work_claim(
            lambda session, claim_id: claim(
                session,
                INBOX,
                COLUMNS,
                claim_id=claim_id,
                worker=self._worker,
                batch=settings.batch_size,
                lease=settings.lease,
                now=self._deps.clock.now(),
            )
        )

    def lost_row(self) -> int:
        """Claim one row that a worker was lost with, and work it alone."""
        return self._work_claim(
            lambda session, claim_id: claim_lost(
                session,
                INBOX,
                COLUMNS,
                claim_id=claim_id,
                worker=self._worker,
                lease=self._deps.settings.lease,
                now=self._deps.clock.now(),
            )
        )

    def _work_claim(self, take: Callable[[Session, UUID], Sequence[object]]) -> int:
        claim_id = self._deps.dice.new_id()
        with self._deps.sessions.begin() as session:
            rows = [claimed_from(row) for row in take(session, claim_id)]
        if not rows:
            return 0
        taken = _Claim(claim_id, list(rows))
        self._owed.append(taken)
        if not self._stopping():
            self._work(taken)
        self._hand_back_owed()
        return len(rows)

    def _work(self, taken: _Claim) -> None:
        """Work a claim's rows; those that are settled leave ``taken.rows``. What must be read back goes
        last and one by one, and what the time does not suffice for goes back to the inbox.
        """
        unproven = [row for row in taken.rows if self._confirmer.wants(row)]
        rows = [row for row in taken.rows if row not in unproven] if unproven else taken.rows
        try:
            if rows:
                self._settled(taken, self._transaction(taken, rows))
        except Exception as error:
            if len(rows) > 1:
                log.warning("batch.falls_apart", rows=len(rows), error=code_of(error))
            for row in list(rows):
                if self._stopping():
                    return
                self._work_alone(taken, row)
        ends = time.monotonic() + FETCH_SECONDS
        for row in unproven:
            if self._stopping() or time.monotonic() >= ends:
                return
            later = self._confirmer.put_off(row)
            if later is not None:
                taken.ends[row.id] = later
                continue
            self._work_alone(taken, row, unproven=True)

    def _work_alone(self, taken: _Claim, row: Claimed, unproven: bool = False) -> None:
        started = time.monotonic()
        try:
            self._renew(taken)
            if row not in taken.rows:
                return
            if not taken.locked.isdisjoint(_held_by(row)):
                # One wait for a locked order is enough for all its events.
                self._deferred(taken, row)
                return
            confirmed = self._confirmer.confirm(row) if unproven else None
            if isinstance(confirmed, Settlement):
                self._write(taken, row, confirmed, time.monotonic() - started)
                return
            worked = self._transaction(taken, [confirmed.row if confirmed else row], confirmed)
            self._settled(taken, worked)
        except ClaimLost:
            log.warning("event.claim_lost", event_id=str(row.id))
            taken.rows.remove(row)
        except Exception as error:
            self._failed(taken, row, error, started)

    def _transaction(self, taken: _Claim, rows: list[Claimed], confirmed: Confirmed | None = None) -> Worked:
        """T2, repeated with the same attempt where only a race was lost; with what was read back, if so."""
        for again in range(SAME_AGAIN):
            try:
                with self._deps.sessions.begin() as session:
                    self._limit(session)
                    worked = work_batch(
                        session,
                        self._deps.settings,
                        taken.id,
                        rows,
                        worker=self._worker,
                        now=self._deps.clock.now(),
                    )
                    if confirmed is not None:
                        self._confirmer.keep(session, confirmed)
                    return worked
            except FactsChanged:
                if again == SAME_AGAIN - 1:
                    raise
            except DBAPIError as error:
                if not isinstance(error.orig, _REPEATED) or again == SAME_AGAIN - 1:
                    raise
        raise AssertionError("unreachable")

    def _limit(self, session: Session) -> None:
        limit = int(self._deps.settings.batch_limit.total_seconds() * 1000)
        session.execute(
            text(
                "SELECT set_config('statement_timeout', :statement, true),"
                f" set_config('lock_timeout', '{LOCK_TIMEOUT}', true)"
            ),
            {"statement": f"{limit}ms"},
        )

    def _renew(self, taken: _Claim) -> None:
        """Move the lease of all rows that still wait for their turn; those that are not ours drop out."""
        with self._deps.sessions.begin() as session:
            mine = renew(
                session,
                INBOX,
                taken.id,
                [row.id for row in taken.rows],
                lease=self._deps.settings.lease,
                now=self._deps.clock.now(),
            )
        taken.rows = [row for row in taken.rows if row.id in mine]

    def _failed(self, taken: _Claim, row: Claimed, error: Exception, started: float) -> None:
        """One row's own failure: back to pending, by its kind soon and uncounted or by backoff."""
        if isinstance(error, DBAPIError) and isinstance(error.orig, _LOCKED):
            taken.locked.update(_held_by(row))
            self._deferred(taken, row)
            return
        code = code_of(error)
        log.exception("event.attempt_failed", event_id=str(row.id), code=code, attempt=row.attempts)
        jitter = self._deps.dice.jitter()
        settlement = release(row.id, row.attempts, jitter, code, told_of(error), place_of(error))
        self._write(taken, row, settlement, time.monotonic() - started)

    def _deferred(self, taken: _Claim, row: Claimed) -> None:
        log.warning("event.deferred", event_id=str(row.id), code="order_locked")
        self._write(taken, row, defer(row.id, "order_locked", "the order was locked by somebody else"))

    def _write(self, taken: _Claim, row: Claimed, settlement: Settlement, seconds: float = 0.0) -> None:
        # Kept until it is written: an attempt that ended with the database away must count, or poison
        # that takes the database along would never die.
        taken.ends[row.id] = settlement
        with self._deps.sessions.begin() as session:
            settle(
                session,
                INBOX,
                taken.id,
                [settlement],
                worker=self._worker,
                started_at=row.claimed_at,
                duration_ms=int(seconds * 1000),
                now=self._deps.clock.now(),
            )
        taken.rows.remove(row)

    def _hand_back_owed(self) -> None:
        """Give back what is still claimed: a shutdown, or a database that went away in between."""
        for taken in list(self._owed):
            if taken.rows:
                with self._deps.sessions.begin() as session:
                    settle(
                        session,
                        INBOX,
                        taken.id,
                        [taken.ends.get(row.id) or hand_back(row.id) for row in taken.rows],
                        worker=self._worker,
                        started_at=taken.rows[0].claimed_at,
                        now=self._deps.clock.now(),
                    )
                log.warning("batch.handed_back", rows=len(taken.rows))
            self._owed.remove(taken)

    def _settled(self, taken: _Claim, worked: Worked) -> None:
        by_id = {row.id: row for row in taken.rows}
        for row_id, state, reason in worked.settled:
            row = by_id.pop(row_id)
            level = log.warning if state in ("failed", "expired") else log.info
            level(
                "event.worked",
                event_id=str(row_id),
                source=row.event.source,
                provider_event_id=row.provider_event_id,
                kind=str(row.event.kind),
                state=state,
                outcome=worked.outcomes[row_id],
                reason=reason,
                attempt=row.attempts,
            )
        taken.rows = list(by_id.values())


def _held_by(row: Claimed) -> set[tuple[str, str]]:
    """What must be free for this row: its order by reference, its transaction by source."""
    event = row.event
    held = {("", event.order_reference)} if event.order_reference is not None else set()
    return held | ({(event.source, event.transaction_id)} if event.transaction_id is not None else set())
