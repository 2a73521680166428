"""What tests of reconciliation do again and again: a source with an API, its answers, the duty's tick."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from receiver.deps import Deps
from receiver.reconciliation.duty import Reconciler
from receiver.settings import Secret, Source
from tests.conftest import DEMO_SECRET

API = "https://api.demo.test"
KEY = {"key": Secret("env:KEY", "sk_never_shown")}


def demo_source(name: str = "demo", **more: Any) -> Source:
    """The demo source with an API that can be asked."""
    values: dict[str, Any] = {"api": KEY, "api_url": API, **more}
    return Source(name, "demo", (Secret("env:DEMO_SECRET", DEMO_SECRET),), **values)


def payment(status: str = "paid", **facts: Any) -> dict[str, Any]:
    """A payment as the demo API tells it."""
    return {
        "transaction_id": "tx_1",
        "order_id": "o_1",
        "amount": 2500,
        "currency": "EUR",
        "status": status,
        "created_at": "2026-03-01T12:00:00Z",
        **facts,
    }


def has(http: Any, *payments: dict[str, Any], order: str = "o_1") -> None:
    """Let the API answer these payments, by their ids and by their order."""
    http.upsert("GET", f"{API}/payments", json={"payments": list(payments)})
    for one in payments:
        http.upsert("GET", f"{API}/payments/{one['transaction_id']}", json=one)


def reconcile(deps: Deps, minutes: float = 0) -> int:
    """Move the clock, and let a worker reconcile what is due."""
    from datetime import timedelta

    deps.clock.move(timedelta(minutes=minutes))  # type: ignore[attr-defined]
    return Reconciler(deps).tick()


def rows(deps: Deps, statement: str, **parameters: Any) -> list[dict[str, Any]]:
    """What a statement gives."""
    with deps.sessions.begin() as session:
        return [dict(row) for row in session.execute(text(statement), parameters).mappings()]


def findings(deps: Deps) -> list[tuple[str, str, str]]:
    """(kind, ours, theirs) of the open findings."""
    found = rows(deps, "SELECT kind, ours, theirs FROM drift_findings WHERE closed_at IS NULL ORDER BY id")
    return [(row["kind"], row["ours"], row["theirs"]) for row in found]


def check_of(deps: Deps, source: str = "demo") -> dict[str, Any]:
    """The one check at a source."""
    (row,) = rows(deps, "SELECT * FROM order_checks WHERE source = :source", source=source)
    return row
