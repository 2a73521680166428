"""The desk's plans: groups, lists, counts and bulk replays read by index, whatever ended before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.inbox.conflicts import list_conflicts
from receiver.inbox.dead_letters import count_matching, next_matching
from receiver.inbox.failure_groups import GroupKey, find_group, list_groups
from receiver.inbox.filter import DEAD, NONE, Filter
from receiver.inbox.find_events import LOOK_AT, list_events
from receiver.inbox.find_rejections import list_rejections
from receiver.inbox.refusals import newest_conflicts, open_conflicts
from receiver.inbox.rejection_groups import rejection_groups
from receiver.orders.find_orders import list_orders
from tests.factories import NOW

ENDED = 100_000
RELATIONS = ("webhook_events", "webhook_conflicts", "webhook_rejections", "operator_actions", "orders")
GROUPS = 6

FILL = """\
INSERT INTO webhook_events (id, source, provider_event_id, event_type, kind, order_reference, transaction_id,
  facts_sha256, payload_sha256, received_at, last_received_at, created_at, updated_at, next_attempt_at,
  give_up_at, state, outcome, reason, failed_in, finished_at, attempts)
SELECT CAST(lpad(to_hex(CAST(extract(epoch FROM CAST(:at AS timestamptz)) * 1000 AS bigint) + n), 12, '0')
         || '7000a000' || lpad(to_hex(n), 12, '0') AS uuid),
  'demo', :state || n, 'type_' || n % 3, 'succeeded', 'o_' || n, 'tx_' || n, '\\x00', '\\x00', t.at, t.at,
  t.at, t.at, t.at, t.at + interval '72 hours', :state,
  CASE WHEN :state = 'processed' THEN 'applied' ELSE 'reason_' || n % 2 END,
  CASE WHEN :state = 'processed' THEN NULL ELSE 'reason_' || n % 2 END,
  CASE WHEN :state = 'expired' THEN 'orders.load:load' END, t.at, 1
FROM generate_series(1, :rows) AS n,
  LATERAL (SELECT CAST(:at AS timestamptz) + n * interval '1 millisecond' AS at) AS t"""


MANY = 30_000
"""Rows of each of the other lists."""

LISTS = [
    """\
INSERT INTO webhook_conflicts (event_id, payload_sha256, kind, first_seen_at, last_seen_at, state)
SELECT e.id, sha256(n::text::bytea), CASE WHEN n <= 100 THEN 'conflict' ELSE 'variant' END, now(), now(),
       CASE WHEN n <= 10 THEN 'open' WHEN n <= 100 THEN 'rejected' ELSE 'open' END
FROM generate_series(1, :many) AS n, (SELECT id FROM webhook_events LIMIT 1) e""",
    """\
INSERT INTO webhook_rejections (source, reason, minute, remote_address, length, count)
SELECT 'demo', 'reason_' || n % 3, date_trunc('minute', now() - n * interval '1 minute'), '127.0.0.1', 1, 1
FROM generate_series(1, :many) AS n""",
    """\
INSERT INTO operator_actions (at, actor, action, target)
SELECT now(), 'actor ' || n % 3, 'action.' || n % 5, 'event:' || n FROM generate_series(1, :many) AS n""",
    """\
INSERT INTO orders (id, reference, amount_minor, currency, state, created_at, updated_at)
SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), 'o_' || n, 1, 'EUR',
       CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'pending' END, now(), now()
FROM generate_series(1, :many) AS n""",
]


@pytest.fixture(scope="module")
def filled(server: Any) -> Iterator[Session]:
    """A long history, and 2,000 dead letters of six groups of each state."""
    from receiver.db import make_engine
    from tests.running import new_database

    with new_database(server) as url:
        engine = make_engine(url)
        with Session(engine) as session:
            session.connection().exec_driver_sql("SET LOCAL synchronous_commit = off")
            for state, rows, hour in (("processed", ENDED, 1), ("failed", 2_000, 2), ("expired", 2_000, 3)):
                session.execute(text(FILL), {"state": state, "rows": rows, "at": NOW.replace(hour=hour)})
            for statement in LISTS:
                session.execute(text(statement), {"many": MANY})
            session.commit()
            session.connection().exec_driver_sql("ANALYZE")
            session.commit()
            yield session
        engine.dispose()


def scans_of(session: Session, ask: Any, table: str | None = "webhook_events") -> list[dict[str, Any]]:
    """The scans of a table (None: of any) in the plans of everything that ``ask`` runs."""
    asked: list[tuple[str, Any]] = []
    connection = session.connection()

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    ask(session)
    event.remove(connection, "before_cursor_execute", note)
    scans: list[dict[str, Any]] = []
    for statement, parameters in asked:
        cursor = connection.connection.cursor()
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
        (explained,) = cursor.fetchone() or ([],)
        document = json.loads(explained) if isinstance(explained, str) else explained
        scans += [
            n
            for n in nodes(document[0]["Plan"])
            if n.get("Relation Name") in ((table,) if table else RELATIONS)
        ]
    session.rollback()
    return scans


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The plan's nodes, each with what it is below."""
    yield node
    for child in node.get("Plans", []):
        yield from nodes(child)


def read_rows(scan: dict[str, Any]) -> float:
    """Rows that a scan read: those it gave and those it dropped, in all its loops."""
    dropped = sum(value for name, value in scan.items() if name.startswith("Rows Removed by"))
    return float((scan["Actual Rows"] + dropped) * scan["Actual Loops"])


FILTERS = {
    "state": Filter(state=DEAD),
    "failed": Filter(state="failed"),
    "source": Filter(state=DEAD, source="demo"),
    "reason": Filter(state=DEAD, reason="reason_1"),
    "event_type": Filter(state=DEAD, event_type="type_1"),
    "no event_type": Filter(state=DEAD, event_type=NONE),
    "place": Filter(state=DEAD, place="orders.load:load"),
    "no place": Filter(state=DEAD, place=NONE),
    "group": GroupKey("demo", "reason_1", "type_1", "orders.load:load").filter(),
    "order": Filter(state=DEAD, order_reference="o_77"),
    "transaction": Filter(state=DEAD, transaction_id="tx_77"),
    "id": Filter(state=DEAD, text="failed77"),
    "beginning of the id": Filter(state=DEAD, text="failed7*"),
    "outcome": Filter(state=DEAD, outcome="reason_0"),
    "from": Filter(state=DEAD, from_=NOW.replace(hour=3)),
    "to": Filter(state=DEAD, to=NOW.replace(hour=3)),
    "nobody": Filter(state=DEAD, source="nobody"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILTERS)
def test_a_bulk_replay_and_its_page_read_dead_letters_alone(filled: Session, name: str) -> None:
    """List, count and the steps of a replay never read the table, nor the history that ended well."""
    asked = FILTERS[name]
    for ask in (
        lambda session: list_events(session, asked),
        lambda session: count_matching(session, asked),
        lambda session: next_matching(session, asked, ("id", "row_version"), after=None, limit=500),
        lambda session: next_matching(
            session, asked, ("id",), after=None, limit=500, dead_at=NOW + timedelta(hours=9)
        ),
    ):
        scans = scans_of(filled, ask)
        assert scans
        assert "Seq Scan" not in {scan["Node Type"] for scan in scans}
        # The open ones are counted, fetched and looked at twice; the history that ended well is 100,000.
        assert sum(read_rows(scan) for scan in scans) <= 5 * LOOK_AT


@pytest.mark.slow
def test_groups_are_read_off_their_index(filled: Session) -> None:
    """The list costs its groups and the rows that it counts; one group costs its own rows alone."""
    assert len(list_groups(filled)) == 2 * GROUPS
    scans = scans_of(filled, list_groups)
    assert {scan.get("Index Name") for scan in scans} == {"ix_webhook_events_causes"}
    assert sum(read_rows(scan) for scan in scans) <= 4_000 + 5 * 2 * GROUPS

    key = GroupKey("demo", "reason_1", "type_1", "orders.load:load")
    scans = scans_of(filled, lambda session: find_group(session, key))
    assert {scan.get("Index Name") for scan in scans} == {"ix_webhook_events_causes"}
    assert sum(read_rows(scan) for scan in scans) <= 2_000 / 3


LOOKS: dict[str, tuple[Any, float]] = {
    "open conflicts": (list_conflicts, 200),
    "all conflicts": (lambda session: list_conflicts(session, state=None), 200),
    "conflicts of a source": (lambda session: list_conflicts(session, source="nobody"), 400),
    "open conflicts, counted": (open_conflicts, 200),
    "newest conflicts": (newest_conflicts, 200),
    "audit": (list_actions, 60),
    "audit, an actor": (lambda session: list_actions(session, actor="actor 1"), 400),
    "audit, an action": (lambda session: list_actions(session, action="action.1"), 400),
    "audit, a target": (lambda session: list_actions(session, target="event:77"), 60),
    "audit, nobody": (lambda session: list_actions(session, actor="nobody"), 60),
    "rejections": (list_rejections, 5_000),
    "rejections without rows": (lambda session: list_rejections(session, reason="none"), 5_000),
    "rejections, grouped": (rejection_groups, 10_000),
    "orders": (list_orders, 60),
    "orders in a rare state": (lambda session: list_orders(session, state="failed"), 60),
    "orders in no state": (lambda session: list_orders(session, state="disputed"), 60),
    "an order by its reference": (lambda session: list_orders(session, text="o_77"), 60),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKS)
def test_the_other_lists_read_about_a_page(filled: Session, name: str) -> None:
    """However many rows there are, a list reads about what it shows, by an index."""
    ask, bound = LOOKS[name]
    scans = scans_of(filled, ask, table=None)

    assert scans
    assert "Seq Scan" not in {scan["Node Type"] for scan in scans}
    assert sum(read_rows(scan) for scan in scans) <= bound
