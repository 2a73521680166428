"""The intake: requests of one process share one statement and one commit.

A request hands in its events and waits for them alone; a few flushers take what has gathered, one
statement at a time, 1 to `GROUP_ROWS` rows. The caller gets its receipts once they are committed, or
IntakeUnavailable within the deadline: an answer of 2xx is never sent without proof of the commit.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from sqlalchemy import Engine

from receiver.deps import Deps
from receiver.inbox.intake_faults import CLASHES, FAULTS, is_canceled, is_lost, is_stale, name_of
from receiver.inbox.intake_statement import NewEvent, Payload, Receipt, write_events
from receiver.logs import logger

GROUP_ROWS = 64
"""Rows of one statement: at 64 the database is far from its limit and a row waits little."""

HELP_AFTER_SECONDS = 0.05
"""A request that waited so long calls the second flusher in. In plain running there is one: what
gathers while a statement commits goes together, for a fraction of the CPU. But one that is stuck
behind a lock must not hold up the rest."""

MAX_WAITING = 2000
"""Requests that may wait; beyond it the answer is 503 at once, since it would be too late anyway."""


class IntakeUnavailable(Exception):
    """The commit was not proven in time: answer 503 with Retry-After. ``code`` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class Submission:
    """One request's payload and events, and what became of them."""

    payload: Payload
    events: Sequence[NewEvent]
    now: datetime | None
    done: threading.Event = field(default_factory=threading.Event)
    receipts: list[Receipt] | None = None
    failure: str = "stalled"
    abandoned: bool = False

    def keys(self) -> set[tuple[str, str]]:
        """The unique keys of the events."""
        return {(event.facts.source, event.provider_event_id) for event in self.events}


class Intake:
    """The gathering point of one process. Flushers start at the first use, so after any fork."""

    def __init__(self, deps: Deps) -> None:
        self._engine = deps.intake_engine
        self._give_up = deps.settings.give_up
        self._timeout = deps.settings.intake_timeout.total_seconds()
        self._lock = threading.Lock()
        self._gathered = threading.Condition(self._lock)
        self._called = threading.Condition(self._lock)
        self._waiting: deque[Submission] = deque()
        self._flushers: list[_Flusher] = []
        self._pid = 0
        self._closed = self._late = False

    def write(
        self, payload: Payload, events: Sequence[NewEvent], now: datetime | None = None
    ) -> list[Receipt]:
        """Store one request's events; returns their receipts in the order of ``events``.

        Raises IntakeUnavailable when the commit is not proven within the deadline.
        """
        submission, ends = Submission(payload, events, now), time.monotonic() + self._timeout
        with self._gathered:
            if len(self._waiting) >= MAX_WAITING:
                raise IntakeUnavailable("overloaded")
            self._start()
            self._waiting.append(submission)
            self._gathered.notify()
        if not submission.done.wait(HELP_AFTER_SECONDS):
            with self._lock:
                self._late = bool(self._waiting)
                self._called.notify()
        if not submission.done.wait(ends - time.monotonic()):
            submission.abandoned = True
            self._abort_stalled()
            raise IntakeUnavailable("stalled")
        if submission.receipts is None:
            raise IntakeUnavailable(submission.failure)
        return submission.receipts

    def close(self) -> None:
        """Let the flushers end (tests and orderly exits)."""
        with self._lock:
            self._closed = True
            self._gathered.notify_all()
            self._called.notify_all()
        for flusher in self._flushers:
            flusher.thread.join(5)

    def wait(self, *, helps: bool) -> None:
        """Wait until there is something to take; the flusher that ``helps`` waits until it is called."""
        condition = self._called if helps else self._gathered
        with self._lock:
            while not self._closed and not (self._waiting and (self._late or not helps)):
                condition.wait()
        if not helps:
            # Requests that are ready at this moment come along.
            time.sleep(0)

    def take(self) -> list[Submission]:
        """Take a group of what waits: keys unique, rows up to GROUP_ROWS."""
        with self._lock:
            group: list[Submission] = []
            left: list[Submission] = []
            keys: set[tuple[str, str]] = set()
            rows = 0
            while self._waiting and rows < GROUP_ROWS and len(left) < GROUP_ROWS:
                submission = self._waiting.popleft()
                if submission.abandoned:
                    continue
                own = submission.keys()
                if keys & own:
                    # The second of one key goes with the next statement: in this one it is an error.
                    left.append(submission)
                    continue
                keys |= own
                rows += len(submission.events)
                group.append(submission)
            self._waiting.extendleft(reversed(left))
            self._late = self._late and bool(self._waiting)
            return group

    def _start(self) -> None:
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._flushers = [_Flusher(self, self._engine, self._give_up, helps=helps) for helps in (False, True)]
        for flusher in self._flushers:
            flusher.thread.start()

    def _abort_stalled(self) -> None:
        for flusher in self._flushers:
            flusher.abort()

    @property
    def closed(self) -> bool:
        """Whether the flushers should end."""
        return self._closed


class _Flusher:
    """One connection's worth of writing, in a thread (a greenlet under gevent)."""

    def __init__(self, intake: Intake, engine: Engine, give_up: Any, *, helps: bool) -> None:
        self._intake = intake
        self._engine = engine
        self._give_up = give_up
        self._helps = helps
        self._busy: psycopg.Connection[Any] | None = None
        self._group: list[Submission] = []
        self.thread = threading.Thread(target=self._run, name="intake", daemon=True)

    def abort(self) -> None:
        """Cut the connection of a statement that nobody waits for any more.

        A frozen server or a lost network answers nothing, and libpq would wait for ever. A statement
        that somebody still waits for goes on: under load, cutting it would only add to the load.
        """
        connection = self._busy
        if connection is None or not all(submission.abandoned for submission in self._group):
            return
        try:
            with socket.socket(fileno=os.dup(connection.fileno())) as peer:
                peer.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            return

    def _run(self) -> None:
        while not self._intake.closed:
            self._intake.wait(helps=self._helps)
            group = self._intake.take()
            try:
                self._flush(group)
            except Exception:
                # A fault of ours: the requests get 503 and come again, and this thread must live on.
                logger("intake").exception("intake.flush_failed", requests=len(group))
            finally:
                for submission in group:
                    submission.done.set()

    def _flush(self, group: list[Submission]) -> None:
        if not group:
            return
        try:
            self._write(group)
        except FAULTS as error:
            if len(group) == 1 or is_lost(error) or is_canceled(error):
                self._fail(group, error)
                return
            # One request's row may have spoilt the statement: each on its own, so that only it pays.
            logger("intake").warning("intake.group_redone", requests=len(group), error=name_of(error))
            for submission in group:
                try:
                    self._write([submission])
                except FAULTS as own:
                    self._fail([submission], own)
                submission.done.set()

    def _fail(self, group: list[Submission], error: Exception) -> None:
        code = "database_away" if is_lost(error) else "stalled" if is_canceled(error) else "not_stored"
        for submission in group:
            submission.failure = code
        logger("intake").error("intake.unavailable", code=code, error=name_of(error), requests=len(group))

    def _write(self, group: list[Submission]) -> None:
        """Write a group, once more on a fresh connection after a lost one, a deadlock or a clash."""
        self._group = group
        try:
            self._write_once(group)
        except CLASHES:
            self._write_once(group)
        except FAULTS as error:
            if not is_stale(error) or all(submission.abandoned for submission in group):
                raise
            # A server that came back leaves a whole pool of dead connections behind.
            self._engine.dispose()
            self._write_once(group)

    def _write_once(self, group: list[Submission]) -> None:
        pooled = self._engine.raw_connection()
        connection: psycopg.Connection[Any] = pooled.driver_connection  # type: ignore[assignment]
        self._busy = connection
        try:
            turns = [_turns(submission.events) for submission in group]
            found: list[dict[int, Receipt]] = [{} for _ in group]
            for number in range(max(map(len, turns))):
                self._write_turn(
                    connection, group, [t[number] if number < len(t) else [] for t in turns], found
                )
        except psycopg.Error as error:
            if not isinstance(error, psycopg.IntegrityError | psycopg.DataError):
                pooled.invalidate()
            raise
        finally:
            self._busy = None
            pooled.close()
        # Only now: an answer of 2xx needs every statement of its request committed.
        for submission, receipts in zip(group, found, strict=True):
            submission.receipts = [receipts[index] for index in range(len(submission.events))]

    def _write_turn(
        self,
        connection: psycopg.Connection[Any],
        group: list[Submission],
        places: list[list[int]],
        found: list[dict[int, Receipt]],
    ) -> None:
        """Write the events at ``places`` of each request, and note their receipts in ``found``."""
        receipts = write_events(
            connection,
            [submission.payload for submission, own in zip(group, places, strict=True) if own],
            [submission.events[at] for submission, own in zip(group, places, strict=True) for at in own],
            give_up=self._give_up,
            now=group[0].now,
        )
        by_key = {(receipt.source, receipt.provider_event_id): receipt for receipt in receipts}
        for submission, own, noted in zip(group, places, found, strict=True):
            for at in own:
                event = submission.events[at]
                noted[at] = by_key[(event.facts.source, event.provider_event_id)]


def _turns(events: Sequence[NewEvent]) -> list[list[int]]:
    """Places of a request's events, split so that each statement sees a key once: one turn as a rule."""
    if len(events) == 1:
        return [[0]]
    turns: list[list[int]] = []
    repeats: Counter[str] = Counter()
    for place, event in enumerate(events):
        turn = repeats[event.provider_event_id]
        repeats[event.provider_event_id] += 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(place)
    return turns
