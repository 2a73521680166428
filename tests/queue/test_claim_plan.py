"""The plans of claim and resume: a claim's cost hangs on what is due, not on what ended, waits or is held."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from receiver.inbox.claimed import COLUMNS
from receiver.inbox.table import INBOX
from receiver.queue import pauses
from receiver.queue.claim import claim_statement
from receiver.queue.pauses import resume
from tests.factories import NOW, make_pause

FILL = """\
INSERT INTO webhook_events (id, source, provider_event_id, kind, facts_sha256, payload_sha256,
  received_at, last_received_at, created_at, updated_at, next_attempt_at, give_up_at, state, outcome,
  finished_at, attempts)
SELECT gen_random_uuid(), :source, :source || :state || n, 'succeeded', '\\x00', '\\x00', :at, :at, :at, :at,
  CAST(:at AS timestamptz) + n * interval '1 millisecond', CAST(:at AS timestamptz) + interval '72 hours',
  :state, CASE WHEN :state = 'processed' THEN 'applied' END,
  CASE WHEN :state = 'processed' THEN CAST(:at AS timestamptz) END, 0
FROM generate_series(1, :rows) n"""

BATCH = 100


@pytest.fixture
def filled(session: Session) -> Session:
    """200,000 ended rows, 100,000 held ones ahead of 2,000 due ones of two sources."""
    session.connection().exec_driver_sql("SET LOCAL synchronous_commit = off")
    for source, state, rows in (
        ("a", "processed", 200_000),
        ("held", "pending", 100_000),
        ("a", "pending", 1_000),
        ("b", "pending", 1_000),
    ):
        at = NOW.replace(hour=1 if source == "held" else 2)
        session.execute(text(FILL), {"source": source, "state": state, "rows": rows, "at": at})
    make_pause(session, "held")
    session.commit()
    session.connection().exec_driver_sql("ANALYZE webhook_events")
    session.connection().exec_driver_sql("ANALYZE pauses")
    session.commit()
    return session


def plan(session: Session) -> dict[str, Any]:
    """The plan that a prepared claim runs with, without knowing its values."""
    compiled = claim_statement(INBOX, COLUMNS).compile(
        dialect=postgresql.dialect(paramstyle="numeric_dollar")
    )
    names = compiled.positiontup or []
    values = {
        "now": f"'{NOW.isoformat()}'::timestamptz",
        "batch": str(BATCH),
        "claim_id": "'00000000-0000-7000-8000-000000000001'::uuid",
        "worker": "'w1'",
        "lease": "interval '60 seconds'",
    }
    types = {"now": "timestamptz", "batch": "int", "claim_id": "uuid", "worker": "text", "lease": "interval"}
    connection = session.connection()
    connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
    connection.exec_driver_sql(
        f"PREPARE claim ({', '.join(types[name] for name in names)}) AS {compiled.string}"
    )
    given = ", ".join(values[name] for name in names)
    rows = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE claim ({given})")
    explained = rows.scalar_one()
    document = json.loads(explained) if isinstance(explained, str) else explained
    connection.exec_driver_sql("DEALLOCATE claim")
    return document[0]["Plan"]  # type: ignore[no-any-return]


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The plan's nodes, each with what it is below."""
    yield node
    for child in node.get("Plans", []):
        yield from nodes(child)


def read_rows(node: dict[str, Any]) -> float:
    """Rows that a node read: those it gave and those it dropped, in all its loops."""
    dropped = sum(value for name, value in node.items() if name.startswith("Rows Removed by"))
    return (node["Actual Rows"] + dropped) * node["Actual Loops"]


@pytest.mark.field_case(132)
@pytest.mark.slow
def test_the_claim_reads_only_what_it_takes(filled: Session) -> None:
    """Beside 200,000 ended and 100,000 held rows the generic plan reads a few hundred rows by index."""
    tree = list(nodes(plan(filled)))

    on_events = [node for node in tree if node.get("Relation Name") == "webhook_events"]
    scans = [node for node in on_events if node["Node Type"] not in ("ModifyTable", "LockRows")]
    assert {node["Node Type"] for node in scans} <= {"Index Scan", "Index Only Scan"}
    assert {node["Index Name"] for node in scans} == {"ix_webhook_events_pending", "pk_webhook_events"}
    assert sum(read_rows(node) for node in scans) <= 4 * BATCH
    updated = next(node for node in tree if node["Node Type"] == "ModifyTable")
    assert updated["Actual Rows"] == BATCH
    assert updated["Shared Hit Blocks"] + updated["Shared Read Blocks"] < 60 * BATCH

    # Dead versions, as a long reader elsewhere keeps them from vacuum, are passed over by the index.
    filled.execute(
        text("UPDATE webhook_events SET updated_at = now() WHERE source IN ('a', 'b') AND state = 'pending'")
    )
    again = [node for node in nodes(plan(filled)) if node.get("Index Name") == "ix_webhook_events_pending"]
    assert sum(read_rows(node) for node in again) <= 4 * BATCH


def test_a_piece_of_a_resume_reads_only_its_own_rows(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside 20,000 held rows each statement of a resume reads a piece's rows, by the pending index."""
    monkeypatch.setattr(pauses, "PIECE", BATCH)
    session.execute(text(FILL), {"source": "held", "state": "pending", "rows": 20_000, "at": NOW})
    make_pause(session, "held")
    session.commit()
    session.connection().exec_driver_sql("ANALYZE webhook_events")
    ran: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        ran.append((statement, values))

    event.listen(session.get_bind(), "before_cursor_execute", note)
    resumed = resume(session, INBOX, "held")
    event.remove(session.get_bind(), "before_cursor_execute", note)
    assert resumed == (BATCH, False)
    pieces = [(statement, values) for statement, values in ran if "seen AS MATERIALIZED" in statement]
    assert len(pieces) == 2

    for statement, values in pieces:
        connection = session.connection()
        explained = connection.exec_driver_sql(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", values
        ).scalar_one()
        tree = list(nodes(explained[0]["Plan"]))
        on_events = [node for node in tree if node.get("Relation Name") == "webhook_events"]
        scans = [node for node in on_events if node["Node Type"] not in ("ModifyTable", "LockRows")]
        assert {node["Index Name"] for node in scans} <= {"ix_webhook_events_pending", "pk_webhook_events"}
        assert sum(read_rows(node) for node in scans) <= 4 * BATCH
