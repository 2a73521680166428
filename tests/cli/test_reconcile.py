"""`receiver reconcile`: what differs as table, JSON and exit code; an order, a window, a catch-up at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from receiver.deps import Deps
from receiver.inbox.process import Processor
from tests.cli.conftest import Shell, answered
from tests.reconciliation.provider import KEY, Provider, body, run_provider

Asked = Callable[..., Result]


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    """The demo provider over real HTTP."""
    with run_provider(tmp_path) as running:
        yield running


@pytest.fixture
def asked(shell: Shell, provider: Provider, tmp_path: Path) -> Asked:
    """Run a command where the demo source's API is the provider's."""
    path = tmp_path / "asked.toml"
    path.write_text(
        '[sources.demo]\nprovider = "demo"\nsecrets = ["env:DEMO_SECRET"]\n'
        f'api = {{ key = "env:K" }}\napi_url = "{provider.url}"\n'
    )
    return lambda *words: shell(*words, env={"RECEIVER_SOURCES": str(path), "K": KEY})


def pay(provider: Provider, order: str, **data: Any) -> None:
    """The provider holds a payment, and its callback is lost."""
    at = datetime.now(UTC) - timedelta(seconds=5)
    provider.book.record([body(f"evt_{order}", "payment.succeeded", order, f"tx_{order}", at, **data)], at)


def test_one_order_is_asked_for_at_once(asked: Asked, provider: Provider, deps: Deps) -> None:
    """Both sides are printed; what was missing goes to the inbox, and code 1 stays for what differs."""
    asked("orders", "register", "o_1", "--amount", "25.00 EUR")
    pay(provider, "o_1")
    (found,) = answered(asked("reconcile", "--order", "o_1", "--json"))
    assert (found["result"], found["posted"], found["differences"][0]["kind"]) == ("posted", 1, "missing")
    deps.clock.at = datetime.now(UTC) + timedelta(seconds=1)  # type: ignore[attr-defined]
    Processor(deps, "w").tick()
    assert "all known here" in asked("reconcile", "--order", "o_1").stdout

    asked("orders", "register", "o_2", "--amount", "25.00 EUR")
    pay(provider, "o_2", amount=2400)
    differs = asked("reconcile", "--order", "o_2")
    assert differs.exit_code == 1
    assert "amount_differs: here order pending" in differs.stdout
    report = asked("reconcile", "--json")
    assert (report.exit_code, json.loads(report.stdout)["drift"]) == (1, 1)
    assert "amount differs" in asked("reconcile").stdout
    assert asked("reconcile", "--source", "nobody").exit_code == 1
    assert asked("reconcile", "--order", "nobody").exit_code == 1


def test_a_failing_api_is_said_and_is_code_1(asked: Asked, provider: Provider) -> None:
    """No answer is no all-clear; the order is listed for a person."""
    asked("orders", "register", "o_1", "--amount", "25.00 EUR")
    provider.book.break_down("500", 1)
    failed = asked("reconcile", "--order", "o_1")
    assert failed.exit_code == 1
    assert "server_error" in failed.stdout
    report = answered(asked("reconcile", "--json"))
    assert report["for_a_person"][0]["why"] == "unavailable"


def test_a_window_of_orders_and_a_catch_up(asked: Asked, provider: Provider) -> None:
    """Unpaid orders of a window are asked for; a catch-up says how many events were missing."""
    for order in ("o_1", "o_2", "o_3"):
        asked("orders", "register", order, "--amount", "25.00 EUR")
        pay(provider, order)
    assert asked("reconcile", "--since", "2026-01-01", "--json").exit_code == 1
    caught = answered(asked("reconcile", "--catch-up", "demo", "--from", "2026-01-01", "--json"))
    assert (caught["state"], caught["listed"], caught["missing"]) == ("done", 3, 3)
    assert (
        "3 known, 0 were missing" in asked("reconcile", "--catch-up", "demo", "--from", "2026-01-01").stdout
    )
    assert asked("reconcile", "--catch-up", "demo").exit_code == 2
    refused = asked("reconcile", "--catch-up", "demo", "--from", "2399-01-01")
    assert "a window begins before it ends" in refused.output
