"""Forget what is older than its age: in small pieces, each a transaction, so that nobody waits for them.

Orders, ledger lines and transitions are never forgotten; a line keeps its event's source and id as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import text

from receiver.deps import Deps
from receiver.retention.pace import paced
from receiver.retention_settings import RetentionSettings

ROWS = 500
"""Rows of one transaction."""

PIECES = 200
"""Transactions of one kind in one run: what is left waits for the next hour."""

_NOW = "coalesce(CAST(:now AS timestamptz), now())"
_OLD = f"{_NOW} - CAST(:age AS interval)"


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing that is forgotten. ``statement`` takes ``now``, ``age`` and ``rows``, and counts."""

    name: str
    age: str
    statement: str


def _deleted(table: str, key: str, condition: str) -> str:
    return (
        f"WITH gone AS (DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {condition}"
        f" ORDER BY {key} LIMIT :rows FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) FROM gone"
    )


KINDS = (
    Kind(
        "attempts",
        "attempts",
        "WITH gone AS (DELETE FROM webhook_event_attempts WHERE (event_id, replay, attempt) IN ("
        "SELECT a.event_id, a.replay, a.attempt FROM webhook_event_attempts a"
        f" JOIN webhook_events e ON e.id = a.event_id WHERE a.started_at <= {_OLD}"
        " AND e.finished_at IS NOT NULL AND (e.state = 'processed' OR e.acknowledged_at IS NOT NULL)"
        " ORDER BY a.event_id LIMIT :rows FOR UPDATE OF a SKIP LOCKED)"
        " RETURNING 1) SELECT count(*) FROM gone",
    ),
    Kind("rejections", "rejections", _deleted("webhook_rejections", "id", f"minute <= {_OLD}")),
    Kind(
        "conflict bodies",
        "conflicts",
        "WITH gone AS (UPDATE webhook_conflicts SET payload = NULL, headers = NULL WHERE id IN ("
        f"SELECT id FROM webhook_conflicts WHERE last_seen_at <= {_OLD} AND payload IS NOT NULL"
        " AND (kind = 'variant' OR state <> 'open') ORDER BY id LIMIT :rows FOR UPDATE SKIP LOCKED)"
        " RETURNING 1) SELECT count(*) FROM gone",
    ),
    Kind("audit", "audit", _deleted("operator_actions", "id", f"at <= {_OLD}")),
    Kind(
        "minutes",
        "minutes",
        # Only what the hours hold already: the counters of /metrics must never go back.
        "WITH gone AS (DELETE FROM inbox_minutes WHERE (source, minute, result) IN ("
        f"SELECT source, minute, result FROM inbox_minutes WHERE minute <= {_OLD}"
        " AND minute < (SELECT max(hour) - interval '7 hours' FROM inbox_hours)"
        " ORDER BY minute LIMIT :rows FOR UPDATE SKIP LOCKED)"
        " RETURNING 1) SELECT count(*) FROM gone",
    ),
    Kind(
        "levels",
        "minutes",
        "WITH gone AS (DELETE FROM inbox_levels WHERE (source, minute) IN ("
        f"SELECT source, minute FROM inbox_levels WHERE minute <= {_OLD}"
        " ORDER BY minute LIMIT :rows FOR UPDATE SKIP LOCKED)"
        " RETURNING 1) SELECT count(*) FROM gone",
    ),
    Kind(
        "keys",
        "keys",
        # An open dead letter is never forgotten: somebody has still to look at it. Nor is one whose payload
        # has still to be archived, or that keeps it since no archive is configured.
        "WITH gone AS (DELETE FROM webhook_events WHERE id IN ("
        f"SELECT e.id FROM webhook_events e WHERE e.received_at <= {_OLD} AND e.last_received_at <= {_OLD}"
        f" AND e.finished_at <= {_OLD} AND (e.state = 'processed' OR e.acknowledged_at IS NOT NULL)"
        " AND (e.payload_id IS NULL OR CAST(:unarchived AS boolean))"
        # A wish to erase lives in the row that goes with the key.
        " AND NOT EXISTS (SELECT 1 FROM archived_events a JOIN archive_files f ON f.id = a.file_id"
        " WHERE a.event_id = e.id AND a.erased_at IS NOT NULL AND f.rewrite)"
        " ORDER BY e.id LIMIT :rows FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) FROM gone",
    ),
    Kind(
        "payloads of forgotten events",
        "keys",
        "WITH gone AS (DELETE FROM webhook_payloads WHERE id IN ("
        f"SELECT p.id FROM webhook_payloads p WHERE p.received_at <= {_OLD}"
        " AND NOT EXISTS (SELECT 1 FROM webhook_events e WHERE e.payload_id = p.id)"
        " ORDER BY p.id LIMIT :rows FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) FROM gone",
    ),
)
"""What is forgotten, in this order."""


def age_of(kind: Kind, settings: RetentionSettings) -> timedelta:
    """How old it becomes."""
    found: timedelta = getattr(settings, kind.age)
    return found


def forget_old(deps: Deps) -> dict[str, int]:
    """Forget everything that is older than its age; returns how many rows of each kind."""
    done: dict[str, int] = {}
    for kind in KINDS:
        settings = deps.settings.retention
        asked = {
            "now": deps.clock.now(),
            "age": age_of(kind, settings),
            "rows": ROWS,
            "unarchived": settings.erases and not settings.archives,
        }
        for _ in range(PIECES):
            with paced(), deps.sessions.begin() as session:
                number = int(session.execute(text(kind.statement), asked).scalar_one())
            done[kind.name] = done.get(kind.name, 0) + number
            if number < ROWS:
                break
    return {name: number for name, number in done.items() if number}
