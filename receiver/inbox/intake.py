"""The intake: requests of one process share one statement and one commit.

A request hands in its events and waits for them alone; a few flushers take what has gathered, one
statement at a time, 1 to `GROUP_ROWS` rows through the same code. The caller gets its receipts once
they are committed, or IntakeUnavailable within the deadline: an answer of 2xx is never sent without
proof of the commit.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from psycopg import errors
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, TimeoutError as PoolTimeoutError

from receiver.deps import Deps
from receiver.inbox.intake_statement import NewEvent, Payload, Receipt, write_events
from receiver.logs import logger

GROUP_ROWS = 64
"""Rows of one statement: at 64 the database is far from its limit and a row waits little."""

FLUSHERS = 2
"""Statements under way at once in one process: one commits while the next one gathers."""

MAX_WAITING = 2000
"""Requests that may wait; beyond it the answer is 503 at once, since it would be too late anyway."""

RETRIED = (errors.SerializationFailure, errors.DeadlockDetected)


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
        self._waiting: deque[Submission] = deque()
        self._flushers: list[_Flusher] = []
        self._pid = 0
        self._closed = False

    def write(self, payload: Payload, events: Sequence[NewEvent], now: datetime | None = None) -> list[Receipt]:
        """Store one request's events; returns their receipts in the order of ``events``.

        Raises IntakeUnavailable when the commit is not proven within the deadline.
        """
        submission = Submission(payload, events, now)
        with self._gathered:
            if len(self._waiting) >= MAX_WAITING:
                raise IntakeUnavailable("overloaded")
            self._start()
            self._waiting.append(submission)
            self._gathered.notify()
        if not submission.done.wait(self._timeout):
            submission.abandoned = True
            self._abort_stalled()
            raise IntakeUnavailable("stalled")
        if submission.receipts is None:
            raise IntakeUnavailable(submission.failure)
        return submission.receipts

    def close(self) -> None:
        """Let the flushers end (tests and orderly exits)."""
        with self._gathered:
            self._closed = True
            self._gathered.notify_all()
        for flusher in self._flushers:
            flusher.thread.join(5)

    def take(self) -> list[Submission]:
        """Wait for submissions and take a group of them: keys unique, rows up to GROUP_ROWS."""
        with self._gathered:
            while not self._waiting and not self._closed:
                self._gathered.wait()
            group: list[Submission] = []
            left: list[Submission] = []
            keys: set[tuple[str, str]] = set()
            rows = 0
            while self._waiting and (not group or rows < GROUP_ROWS):
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
            if self._waiting:
                self._gathered.notify()
            return group

    def _start(self) -> None:
        if self._pid == os.getpid():
            return
        self._pid = os.getpid()
        self._flushers = [_Flusher(self, self._engine, self._give_up) for _ in range(FLUSHERS)]
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

    def __init__(self, intake: Intake, engine: Engine, give_up: Any) -> None:
        self._intake = intake
        self._engine = engine
        self._give_up = give_up
        self._busy: psycopg.Connection[Any] | None = None
        self.thread = threading.Thread(target=self._run, name="intake", daemon=True)

    def abort(self) -> None:
        """Cut the connection of a statement that nobody waits for any more.

        A frozen server or a lost network answers nothing, and libpq would wait for ever.
        """
        connection = self._busy
        if connection is None:
            return
        try:
            with socket.socket(fileno=os.dup(connection.fileno())) as peer:
                peer.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error):
            return

    def _run(self) -> None:
        while not self._intake.closed:
            group = self._intake.take()
            if not group:
                continue
            try:
                self._flush(group)
            except Exception:
                # A fault of ours: the requests get 503 and come again, and this thread must live on.
                logger("intake").exception("intake.flush_failed", requests=len(group))
            finally:
                for submission in group:
                    submission.done.set()

    def _flush(self, group: list[Submission]) -> None:
        try:
            self._write(group)
        except (psycopg.Error, DBAPIError, PoolTimeoutError, OSError) as error:
            if len(group) == 1 or _is_connection_lost(error):
                self._fail(group, error)
                return
            # One request's row may have spoilt the statement: each on its own, so that only it pays.
            logger("intake").warning("intake.group_redone", requests=len(group), error=type(error).__name__)
            for submission in group:
                try:
                    self._write([submission])
                except (psycopg.Error, DBAPIError, PoolTimeoutError, OSError) as own:
                    self._fail([submission], own)

    def _fail(self, group: list[Submission], error: Exception) -> None:
        code = "database_away" if _is_connection_lost(error) else "not_stored"
        for submission in group:
            submission.failure = code
        logger("intake").error("intake.unavailable", code=code, error=type(error).__name__, requests=len(group))

    def _write(self, group: list[Submission]) -> None:
        """Write a group, once more on a fresh connection after a lost one, a deadlock or a clash."""
        try:
            self._write_once(group)
        except RETRIED:
            self._write_once(group)
        except (psycopg.OperationalError, DBAPIError, OSError):
            if all(submission.abandoned for submission in group):
                raise
            # A server that came back leaves a whole pool of dead connections behind.
            self._engine.dispose()
            self._write_once(group)

    def _write_once(self, group: list[Submission]) -> None:
        pooled = self._engine.raw_connection()
        connection: psycopg.Connection[Any] = pooled.driver_connection  # type: ignore[assignment]
        self._busy = connection
        try:
            for turn in range(max(len(_turns(submission)) for submission in group)):
                self._write_turn(connection, group, turn)
        except psycopg.OperationalError:
            self._busy = None
            pooled.invalidate()
            raise
        finally:
            self._busy = None
            pooled.close()

    def _write_turn(self, connection: psycopg.Connection[Any], group: list[Submission], turn: int) -> None:
        parts = [(s, _turns(s)[turn]) for s in group if turn < len(_turns(s))]
        receipts = write_events(
            connection,
            [submission.payload for submission, _ in parts],
            [event for _, events in parts for event in events],
            give_up=self._give_up,
            now=group[0].now,
        )
        by_key = {(receipt.source, receipt.provider_event_id): receipt for receipt in receipts}
        for submission, events in parts:
            got = [by_key[(event.facts.source, event.provider_event_id)] for event in events]
            submission.receipts = got if turn == 0 else [*(submission.receipts or []), *got]


def _turns(submission: Submission) -> list[Sequence[NewEvent]]:
    """A request's events split so that each statement sees a key once: one turn in the plain case."""
    if len(submission.events) == 1:
        return [submission.events]
    turns: list[list[NewEvent]] = []
    seen: list[set[str]] = []
    for event in submission.events:
        for turn, keys in zip(turns, seen, strict=True):
            if event.provider_event_id not in keys:
                turn.append(event)
                keys.add(event.provider_event_id)
                break
        else:
            turns.append([event])
            seen.append({event.provider_event_id})
    return list(turns)


def _is_connection_lost(error: Exception) -> bool:
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, errors.QueryCanceled):
        return True
    return isinstance(cause, psycopg.OperationalError | PoolTimeoutError | OSError)
