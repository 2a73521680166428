"""`/reconciliation`, the order page, its button and the API: both sides are seen, and acts leave a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta

import pytest
import responses
from flask import Flask
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.app import create_app
from receiver.deps import Deps
from receiver.reconciliation.duty import Reconciler
from receiver.reconciliation.models import CatchUp, OrderCheck
from tests.conftest import NOW
from tests.inbox.gestures import order, register
from tests.reconciliation.gestures import API, demo_source, findings, has, payment, reconcile
from tests.web.conftest import SignIn, Token, fresh, post


@pytest.fixture
def http() -> Iterator[responses.RequestsMock]:
    """The network, in which only what a test answers exists."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture
def deps(deps: Deps) -> Deps:
    """A process whose demo source has an API."""
    sources = {**deps.settings.sources, "demo": demo_source()}
    return deps.with_settings(dataclasses.replace(deps.settings, sources=sources))


@pytest.fixture
def app(deps: Deps) -> Flask:
    """The application over that process."""
    app = create_app(deps)
    app.testing = False
    return app


def test_the_report_shows_both_sides_and_who_must_look(
    http: responses.RequestsMock, deps: Deps, sign_in: SignIn, token: Token, app: Flask
) -> None:
    """Page, order page and API say what differs, and which unpaid orders nobody answers for."""
    register(deps)
    register(deps, "o_2")
    has(http, payment(amount=2600))
    http.add("GET", f"{API}/payments", status=500)
    reconcile(deps, minutes=6)
    deps.clock.move(timedelta(minutes=1))  # type: ignore[attr-defined]
    http.upsert("GET", f"{API}/payments", status=500)
    Reconciler(deps).tick()
    page = sign_in("viewer").get("/reconciliation").get_data(as_text=True)
    assert "amount differs" in page
    assert "order pending, this transaction not known" in page
    assert "succeeded 26.00 EUR" in page
    assert "List a window" not in page
    shown = sign_in("viewer").get("/orders/o_1").get_data(as_text=True)
    assert "At the provider" in shown
    assert "Ask the provider now" not in shown

    drift = app.test_client().get("/api/reconciliation", headers=token("orders:read"))
    assert drift.json is not None
    assert (drift.json["drift"], drift.json["findings"][0]["kind"]) == (1, "amount_differs")
    assert app.test_client().get("/api/reconciliation", headers=token("metrics")).status_code == 403
    bad = app.test_client().get("/api/reconciliation?source=%00", headers=token("orders:read"))
    assert bad.status_code == 400


def test_an_operator_asks_at_once(deps: Deps, sign_in: SignIn, token: Token, app: Flask) -> None:
    """The button and the API make the order due, with an audit row; a viewer may not."""
    register(deps)
    page = sign_in("operator").get("/orders/o_1").get_data(as_text=True)
    assert "Ask the provider now" in page
    assert post(sign_in("viewer"), "/reconciliation/order", reference="o_1").status_code == 403
    asked = post(sign_in("operator", "olga"), "/reconciliation/order", reference="o_1")
    assert (asked.status_code, asked.location) == (303, "/orders/o_1")
    with deps.sessions() as session:
        check = session.get_one(OrderCheck, (order(deps).id, "demo"))
        assert check.next_check_at == NOW
        assert [a.actor for a in list_actions(session, action="order.reconcile")] == ["olga"]
    again = app.test_client().post("/api/orders/o_1/reconcile", headers=token("orders:write"))
    assert (again.status_code, again.json) == (202, {"reference": "o_1", "asked": 1})
    assert post(sign_in("operator"), "/reconciliation/order", reference="nobody").status_code == 404


def test_an_operator_lists_a_window_and_ends_it(deps: Deps, sign_in: SignIn, session: Session) -> None:
    """A catch-up is begun and cancelled with a reason; its progress is on the page."""
    olga = sign_in("operator", "olga")
    window = {"source": "demo", "from": "2026-02-28T12:00", "to": "2026-03-01T12:00"}
    assert post(olga, "/reconciliation/catch-up", **window).status_code == 400
    assert post(olga, "/reconciliation/catch-up", reason="x", **{**window, "from": "soon"}).status_code == 400
    assert post(olga, "/reconciliation/catch-up", reason="we were down", **window).status_code == 303
    row = session.query(CatchUp).one()
    assert (row.state, row.by, row.reason) == ("running", "olga", "we were down")
    page = olga.get("/reconciliation").get_data(as_text=True)
    assert "we were down" in page
    assert "0 were missing" in page
    cancelled = post(olga, f"/reconciliation/catch-ups/{row.id}/cancel", "/reconciliation", reason="enough")
    assert cancelled.status_code == 303
    assert fresh(session, row).state == "cancelled"
    refused = post(olga, "/reconciliation/catch-up", reason="x", **{**window, "source": "lesson"})
    assert refused.status_code == 303
    assert session.query(CatchUp).count() == 1


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        (payment(), 409, "money_at_provider"),
        (payment("authorized"), 409, "money_at_provider"),
        (None, 200, ""),
    ],
)
def test_the_provider_is_asked_before_an_order_is_cancelled(
    http: responses.RequestsMock,
    deps: Deps,
    token: Token,
    app: Flask,
    said: dict[str, object] | None,
    status: int,
    code: str,
) -> None:
    """Money that the provider holds refuses the cancel, and its fact is on the way into the order."""
    register(deps)
    has(http, *([said] if said else []))
    answer = app.test_client().post(
        "/api/orders/o_1/cancel", json={"reason": "changed their mind"}, headers=token("orders:write")
    )
    assert answer.status_code == status
    if code:
        assert answer.json is not None
        assert answer.json["error"]["code"] == code
    assert len(findings(deps)) == (1 if code else 0)


def test_a_provider_that_cannot_say_refuses_a_cancel_unless_an_admin_insists(
    http: responses.RequestsMock, deps: Deps, token: Token, app: Flask, sign_in: SignIn
) -> None:
    """No answer is no all-clear; an admin may cancel anyway, and the record says so."""
    register(deps)
    http.add("GET", f"{API}/payments", status=500)
    answer = app.test_client().post(
        "/api/orders/o_1/cancel", json={"reason": "x"}, headers=token("orders:write")
    )
    assert answer.status_code == 409
    assert answer.json is not None
    assert answer.json["error"]["code"] == "provider_unavailable"
    admin = sign_in("admin")
    assert post(admin, "/order/cancel", reference="o_1", reason="x").status_code == 303
    assert order(deps).state == "pending"
    post(admin, "/order/cancel", reference="o_1", reason="sure", anyway="1")
    assert order(deps).state == "cancelled"
    with deps.sessions() as session:
        assert list_actions(session)[0].reason == "sure (whatever the provider says)"
