"""Write indexes afresh once a month: rows that change and are deleted by age leave B-trees half empty.

A row is written three times, each time into every index, and ids grow: what vacuum clears in old pages is
never filled again. `REINDEX CONCURRENTLY` blocks neither reads nor writes.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from receiver.deps import Deps
from receiver.logs import logger

EVERY = timedelta(days=30)

TABLES = (
    "webhook_events",
    "webhook_payloads",
    "webhook_event_attempts",
    "webhook_rejections",
    "inbox_minutes",
)

SMALLEST = 1024 * 1024
"""Indexes below so many bytes are left alone."""

MOST_SECONDS = 600.0
"""One run of it: what is left waits for the next run."""

log = logger("worker")

_IS_DUE = text(
    "SELECT last_reindex_at IS NULL OR last_reindex_at <= coalesce(CAST(:now AS timestamptz), now())"
    " - CAST(:every AS interval) FROM retention_turns WHERE id = 1"
)

_OURS = """\
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
WHERE t.relname = ANY(CAST(:tables AS text[])) AND t.relnamespace = current_schema()::regnamespace"""

_BROKEN = text(f"{_OURS} AND NOT i.indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$' ORDER BY c.relname")

_LARGE = text(
    f"{_OURS} AND i.indisvalid AND pg_relation_size(c.oid) >= :smallest"
    " AND c.relname > :after ORDER BY c.relname"
)

_NOTE = text(
    "UPDATE retention_turns SET reindexed = CAST(:reindexed AS text), last_reindex_at = CASE WHEN"
    " CAST(:reindexed AS text) IS NULL THEN coalesce(CAST(:now AS timestamptz), now())"
    " ELSE last_reindex_at END WHERE id = 1"
)


def reindex_due(deps: Deps, *, every: timedelta = EVERY) -> list[str]:
    """Write the large indexes afresh where a month is over, one after the other, for some minutes; the next
    run goes on behind the last. Returns their names. One that fails is left for the next month.
    """
    now = deps.clock.now()
    with deps.sessions.begin() as session:
        if not session.execute(_IS_DUE, {"now": now, "every": every}).scalar_one_or_none():
            return []
        after = session.execute(text("SELECT coalesce(reindexed, '') FROM retention_turns")).scalar_one()
        asked = {"tables": list(TABLES), "smallest": SMALLEST, "after": after}
        broken = list(session.execute(_BROKEN, {"tables": list(TABLES)}).scalars())
        names = list(session.execute(_LARGE, asked).scalars())
    ends, done = time.monotonic() + MOST_SECONDS, []
    for name in broken:
        # What an earlier run left that was ended in the midst.
        _run(deps, f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"')
    for name in names:
        if time.monotonic() >= ends:
            break
        if _run(deps, f'REINDEX INDEX CONCURRENTLY "{name}"'):
            done.append(name)
        _note(deps, name, now)
    else:
        _note(deps, None, now)
    return done


def _note(deps: Deps, reindexed: str | None, now: datetime | None) -> None:
    with deps.sessions.begin() as session:
        session.execute(_NOTE, {"reindexed": reindexed, "now": now})


def _run(deps: Deps, statement: str) -> bool:
    """One statement outside any transaction, with limits of its own; False where it failed."""
    try:
        with deps.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("SET lock_timeout = '10s'"))
            connection.execute(text("SET statement_timeout = '30min'"))
            try:
                connection.execute(text(statement))
            finally:
                connection.execute(text("RESET lock_timeout"))
                connection.execute(text("RESET statement_timeout"))
    except DBAPIError as error:
        log.warning("retention.reindex_failed", statement=statement, error=type(error.orig).__name__)
        return False
    return True
