"""What the demo provider knows: every event that it recorded, whether its callback was sent or not.

A small SQLite file beside the trial's secrets, shared by the web processes that serve the demo API and by
`receiver trigger`; never a table of the merchant's database. A payment is read off its events.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

PAGE = 100
FAULTS = ("429", "500", "timeout", "lag", "wrong-amount")

_TABLES = """\
CREATE TABLE IF NOT EXISTS events (
  number INTEGER PRIMARY KEY, id TEXT UNIQUE, at REAL, transaction_id TEXT, order_id TEXT, body TEXT);
CREATE INDEX IF NOT EXISTS events_transaction ON events (transaction_id);
CREATE INDEX IF NOT EXISTS events_order ON events (order_id);
CREATE INDEX IF NOT EXISTS events_at ON events (at);
CREATE TABLE IF NOT EXISTS faults (name TEXT PRIMARY KEY, times INTEGER);
"""

_STATUS = {
    "payment.pending": "pending",
    "payment.failed": "failed",
    "payment.authorized": "authorized",
    "payment.succeeded": "paid",
    "payment.voided": "voided",
}
_MONEY = frozenset({"authorized", "paid", "voided"})
_REFUND = {"payment.refunded": "succeeded", "payment.refund_failed": "failed"}
_DISPUTE = {"dispute.opened": "opened", "dispute.won": "won", "dispute.lost": "lost"}


class DemoBook:
    """The record in one file. A connection for each call: several processes read and write it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._open() as connection:
            connection.executescript(_TABLES)

    def record(self, bodies: Iterable[bytes], at: datetime) -> None:
        """Record events, as their callbacks' bodies say them; one that is known stays as it is."""
        self.record_at((body, at) for body in bodies)

    def record_at(self, events: Iterable[tuple[bytes, datetime]]) -> None:
        """Record events, each with its own time."""
        rows = []
        for body, at in events:
            document = json.loads(body)
            data = document.get("data") or {}
            rows.append(
                (
                    document["id"],
                    at.timestamp(),
                    data.get("transaction_id"),
                    data.get("order_id"),
                    body.decode(),
                )
            )
        with self._open() as connection, connection:
            connection.executemany(
                "INSERT INTO events (id, at, transaction_id, order_id, body) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO NOTHING",
                rows,
            )

    def payment(self, transaction_id: str) -> dict[str, Any] | None:
        """One payment as it stands; None: not known."""
        found = self._bodies("transaction_id = ?", transaction_id)
        return payment_of(found) if found else None

    def payments_of(self, order_id: str) -> list[dict[str, Any]]:
        """Every payment of one order."""
        by_transaction: dict[str, list[dict[str, Any]]] = {}
        for body in self._bodies("order_id = ?", order_id):
            transaction = (body.get("data") or {}).get("transaction_id")
            if transaction is not None:
                by_transaction.setdefault(transaction, []).append(body)
        return [payment_of(found) for found in by_transaction.values()]

    def events(
        self, start: datetime, end: datetime, after: str | None
    ) -> tuple[list[dict[str, Any]], str | None]:
        """A page of a window's events, and the id after which the next one begins."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT id, body FROM events WHERE at >= ? AND at < ?"
                " AND number > coalesce((SELECT number FROM events WHERE id = ?), 0)"
                " ORDER BY number LIMIT ?",
                (start.timestamp(), end.timestamp(), after, PAGE + 1),
            ).fetchall()
        page = rows[:PAGE]
        return [json.loads(body) for _, body in page], page[-1][0] if len(rows) > PAGE else None

    def break_down(self, fault: str, times: int) -> None:
        """Let the API fail in one way for the next ``times`` answers; 0 mends it."""
        if fault not in FAULTS:
            raise ValueError(fault)
        with self._open() as connection, connection:
            connection.execute("INSERT OR REPLACE INTO faults VALUES (?, ?)", (fault, times))

    def fault(self) -> str | None:
        """The fault of this answer, counted down; None: it is a good one."""
        with self._open() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            found = connection.execute("SELECT name FROM faults WHERE times > 0 ORDER BY name").fetchone()
            if found is None:
                return None
            connection.execute("UPDATE faults SET times = times - 1 WHERE name = ?", found)
            return str(found[0])

    def _bodies(self, where: str, value: str) -> list[dict[str, Any]]:
        with self._open() as connection:
            rows = connection.execute(f"SELECT body FROM events WHERE {where} ORDER BY number", (value,))
            return [json.loads(row[0]) for row in rows.fetchall()]

    def _open(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self._path, timeout=10))


def payment_of(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A payment as its events leave it; the newest status counts, and money outweighs a status."""
    first = events[0]
    document: dict[str, Any] = {"status": None, "created_at": first.get("created_at")}
    lists: dict[str, dict[str, dict[str, Any]]] = {"captures": {}, "refunds": {}, "disputes": {}}
    for event in sorted(events, key=lambda one: one.get("sequence") or 0):
        data = event.get("data") or {}
        kind = str(event.get("type"))
        document |= {key: event[key] for key in ("sequence", "account", "live") if event.get(key) is not None}
        document |= {key: data[key] for key in ("transaction_id", "order_id", "currency") if data.get(key)}
        status = _STATUS.get(kind)
        if status is not None and (status in _MONEY or document["status"] not in _MONEY):
            document |= {"status": status, "amount": data.get("amount", document.get("amount"))}
        if kind == "payment.captured":
            _note(lists["captures"], data.get("capture_id"), data.get("amount"), "succeeded")
        elif kind in _REFUND:
            refund = data.get("refund_id") or data.get("transaction_id")
            _note(lists["refunds"], refund, data.get("amount"), _REFUND[kind])
        elif kind in _DISPUTE:
            _note(lists["disputes"], data.get("dispute_id"), data.get("amount"), _DISPUTE[kind])
    return {**document, **{name: list(found.values()) for name, found in lists.items()}}


def _note(found: dict[str, dict[str, Any]], part: str | None, amount: int | None, status: str) -> None:
    if part is not None:
        known = found.get(part, {})
        found[part] = {"id": part, "amount": known.get("amount") or amount, "status": status}
