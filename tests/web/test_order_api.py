"""The order API: tokens and scopes, idempotent registering, refusals that name the field."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.accounts.tokens import SCOPES
from tests.factories import (
    make_attempt,
    make_conflict,
    make_event,
    make_ledger_entry,
    make_order,
    make_transaction,
    make_transition,
    new_id,
)
from tests.web.conftest import Token

ORDER = {"reference": "ord_1", "amount_minor": 1860, "currency": "EUR"}


@pytest.fixture
def write(token: Token) -> dict[str, str]:
    """A token that may register."""
    return token("orders:read", "orders:write", "events:read")


def test_an_order_is_registered_once(client: FlaskClient, write: dict[str, str]) -> None:
    """201, then 200 for the same facts, 409 for others; the answer is the order."""
    first = client.post("/api/orders", json=ORDER, headers=write)
    assert first.status_code == 201
    assert first.json["state"] == "pending"
    assert first.json["sources"] is None
    second = client.post("/api/orders", json=ORDER, headers=write)
    assert (second.status_code, second.json) == (200, first.json)
    other = client.post("/api/orders", json={**ORDER, "amount_minor": 1861}, headers=write)
    assert other.status_code == 409
    assert other.json["error"]["code"] == "order_exists"
    assert "18.60 EUR" in other.json["error"]["message"]


@pytest.mark.parametrize(
    "change, field, status",
    [
        ({"state": "paid"}, "state", 422),
        ({"colour": "red"}, "colour", 422),
        ({"amount_minor": 18.6}, "amount_minor", 422),
        ({"amount_minor": 1860.0}, "amount_minor", 422),
        ({"amount_minor": "1860"}, "amount_minor", 422),
        ({"amount_minor": True}, "amount_minor", 422),
        ({"amount_minor": 0}, "amount_minor", 422),
        ({"amount_minor": -5}, "amount_minor", 422),
        ({"amount_minor": 10**30}, "amount_minor", 422),
        ({"amount_minor": None}, "amount_minor", 422),
        ({"currency": "eur"}, "currency", 422),
        ({"currency": "XXZ"}, "currency", 422),
        ({"currency": 978}, "currency", 422),
        ({"reference": ""}, "reference", 422),
        ({"reference": "a\0b"}, "reference", 422),
        ({"reference": "\ud800"}, "reference", 422),
        ({"reference": "x" * 256}, "reference", 422),
        ({"reference": 7}, "reference", 422),
        ({"sources": "demo"}, "sources", 422),
        ({"sources": []}, "sources", 422),
        ({"sources": ["a\0b"]}, "sources", 422),
        ({"sources": ["\ud800"]}, "sources", 422),
        ({"sources": [1]}, "sources", 422),
    ],
)
def test_a_bad_fact_is_refused_by_name(
    client: FlaskClient, write: dict[str, str], change: dict[str, Any], field: str, status: int
) -> None:
    """Integers only, no state, no unknown field: 422 and the field."""
    response = client.post("/api/orders", json={**ORDER, **change}, headers=write)
    assert response.status_code == status, response.text
    assert response.json["error"]["field"] == field
    assert response.json["error"]["message"]


@pytest.mark.parametrize("field", ["reference", "amount_minor", "currency"])
def test_a_missing_fact_is_named(client: FlaskClient, write: dict[str, str], field: str) -> None:
    """422 with the field."""
    body = {name: value for name, value in ORDER.items() if name != field}
    response = client.post("/api/orders", json=body, headers=write)
    assert (response.status_code, response.json["error"]["field"]) == (422, field)


@pytest.mark.parametrize(
    "body, kind, status",
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"null", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"reference":"a","reference":"b"}', "application/json", 400),
        (b"[" * 50_000, "application/json", 400),
        (b'{"amount_minor": NaN}', "application/json", 400),
        (b'{"amount_minor": ' + b"9" * 6000 + b"}", "application/json", 400),
        (b"x" * 70_000, "application/json", 413),
        (b"reference=a", "application/x-www-form-urlencoded", 415),
    ],
)
def test_a_bad_body_is_no_fault(
    client: FlaskClient, write: dict[str, str], body: bytes, kind: str, status: int
) -> None:
    """JSON errors with a code, whatever was sent."""
    response = client.post("/api/orders", data=body, content_type=kind, headers=write)
    assert response.status_code == status
    assert response.json["error"]["code"]


@pytest.mark.parametrize("reference", ["ord_1", "shop/2026/17", "Zoë 100%", "a?b#c", " lead"])
def test_an_order_is_read_in_full(
    client: FlaskClient, write: dict[str, str], session: Session, reference: str
) -> None:
    """State, totals, ledger, transitions, transactions, and each event with its outcome."""
    from urllib.parse import quote

    order = make_order(session, state="paid", reference=reference)
    event = make_event(session, state="processed", order_reference=reference)
    make_ledger_entry(session, order, event)
    make_transition(session, order, event_id=event.id)
    make_transaction(session, order, transaction_id=event.transaction_id, paying=True)
    make_event(
        session, state="failed", order_reference=reference, last_error="order 25.00 EUR, event 1.00 EUR"
    )
    session.commit()

    document = client.get(f"/api/orders/{quote(reference, safe='')}", headers=write).json

    assert (document["reference"], document["state"], document["captured_minor"]) == (reference, "paid", 2500)
    assert document["ledger"][0]["kind"] == "capture"
    assert document["ledger"][0]["event"] == str(event.id)
    assert document["transitions"][0]["to"] == "paid"
    assert document["transactions"][0]["paying"] is True
    assert [(row["state"], row["outcome"]) for row in document["events"]] == [
        ("processed", "applied"),
        ("failed", "amount"),
    ]
    assert document["events"][1]["detail"] == "order 25.00 EUR, event 1.00 EUR"


def test_an_unknown_order_is_a_404(client: FlaskClient, write: dict[str, str]) -> None:
    """With a code of its own; a NUL in the path too."""
    for path in ("nowhere", "%00", "x" * 400):
        response = client.get(f"/api/orders/{path}", headers=write)
        assert response.status_code == 404
        assert response.json["error"]["code"] in ("order_unknown", "not_found")


def test_a_correction_wakes_and_names_what_may_be_replayed(
    client: FlaskClient, write: dict[str, str], session: Session
) -> None:
    """The token's name stands in the record; a reason is asked for."""
    make_order(session, reference="ord_c")
    refused = make_event(session, state="failed", order_reference="ord_c")
    session.commit()
    missing = client.patch("/api/orders/ord_c", json={"amount_minor": 2600}, headers=write)
    assert (missing.status_code, missing.json["error"]["field"]) == (422, "reason")

    response = client.patch(
        "/api/orders/ord_c", json={"amount_minor": 2600, "reason": "too low"}, headers=write
    )

    assert response.status_code == 200
    assert (response.json["amount_minor"], response.json["replayable"]) == (2600, [str(refused.id)])
    act = list_actions(session)[0]
    assert (act.action, act.reason) == ("order.correct", "too low")
    assert act.actor.startswith("token:t-")
    again = client.patch("/api/orders/ord_c", json={"amount_minor": 2600, "reason": "x"}, headers=write)
    assert (again.status_code, again.json["error"]["code"]) == (409, "nothing_to_correct")


@pytest.mark.parametrize(
    "body",
    [{"state": "paid"}, {"amount_minor": None}, {"currency": None}, {"amount_minor": 1.5}, {"sources": 3}],
)
def test_a_bad_correction_is_refused(
    client: FlaskClient, write: dict[str, str], session: Session, body: dict[str, Any]
) -> None:
    """422 with the field, and the order stays."""
    order = make_order(session, reference="ord_c")
    session.commit()
    response = client.patch("/api/orders/ord_c", json={**body, "reason": "x"}, headers=write)
    assert (response.status_code, response.json["error"]["field"]) == (422, next(iter(body)))
    session.rollback()
    session.refresh(order)
    assert order.row_version == 1


@pytest.mark.parametrize("reason", ["", " ", "a\0b", "\ud800", 7, None, "x" * 501])
def test_a_bad_reason_is_refused(
    client: FlaskClient, write: dict[str, str], session: Session, reason: object
) -> None:
    """It goes into the record as it is, so it must be text that can stand there."""
    make_order(session, reference="ord_c")
    session.commit()
    response = client.post("/api/orders/ord_c/cancel", json={"reason": reason}, headers=write)
    assert (response.status_code, response.json["error"]["field"]) == (422, "reason")


def test_an_order_is_cancelled_unless_money_is_held(
    client: FlaskClient, write: dict[str, str], session: Session
) -> None:
    """200 and the order; 409 with the reason where money stands."""
    make_order(session, reference="a/b")
    paid = make_order(session, state="paid", reference="ord_p")
    make_ledger_entry(session, paid)
    session.commit()
    done = client.post("/api/orders/a/b/cancel", json={"reason": "x"}, headers=write)
    assert (done.status_code, done.json["state"]) == (200, "cancelled")
    refused = client.post("/api/orders/ord_p/cancel", json={"reason": "x"}, headers=write)
    assert (refused.status_code, refused.json["error"]["code"]) == (409, "money_held")
    assert client.post("/api/orders/none/cancel", json={"reason": "x"}, headers=write).status_code == 404


def test_an_event_is_read_by_its_receipt(
    client: FlaskClient, write: dict[str, str], session: Session
) -> None:
    """Outcome, attempts, conflicts; never the payload."""
    event = make_event(session, state="failed", payload=b'{"card":"4242"}')
    make_attempt(session, event)
    make_conflict(session, event, payload=b'{"card":"4343"}')
    session.commit()
    response = client.get(f"/api/events/{event.id}", headers=write)
    assert (response.json["outcome"], len(response.json["attempt_history"])) == ("amount", 1)
    assert response.json["conflicts"][0]["kind"] == "conflict"
    assert "4242" not in response.text
    assert "4343" not in response.text
    assert client.get(f"/api/events/{new_id()}", headers=write).status_code == 404
    assert client.get("/api/events/nonsense", headers=write).status_code == 404


@pytest.mark.parametrize(
    "method, path, scope",
    [
        ("POST", "/api/orders", "orders:write"),
        ("GET", "/api/orders/x", "orders:read"),
        ("PATCH", "/api/orders/x", "orders:write"),
        ("POST", "/api/orders/x/cancel", "orders:write"),
        ("GET", "/api/events/0196b7f6-0000-7000-8000-000000000000", "events:read"),
        ("POST", "/api/events/0196b7f6-0000-7000-8000-000000000000/replay", "events:replay"),
        ("GET", "/metrics", "metrics"),
    ],
)
def test_each_route_asks_for_its_scope(
    client: FlaskClient, token: Token, method: str, path: str, scope: str
) -> None:
    """401 without a token, 403 with every scope but this one."""
    bare = client.open(path, method=method)
    assert bare.status_code == 401
    assert bare.headers["WWW-Authenticate"] == "Bearer"
    others = [s for s in SCOPES if s != scope]
    assert client.open(path, method=method, headers=token(*others)).status_code == 403
    assert client.open(path, method=method, headers=token(scope)).status_code not in (401, 403, 500)


@pytest.mark.parametrize(
    "text", ["", "Bearer", "Bearer ", "Bearer rcv_wrong", "Basic cmN2Xw==", "Bearer rcv_ünï"]
)
def test_a_bad_token_is_a_401(client: FlaskClient, text: str) -> None:
    """Whatever stands in the header."""
    headers = {"Authorization": text.encode().decode("latin-1")}
    assert client.get("/api/orders/x", headers=headers).status_code == 401


def test_the_api_needs_no_cookie_and_no_form_token(client: FlaskClient, write: dict[str, str]) -> None:
    """Nor does it set one."""
    assert "Set-Cookie" not in client.post("/api/orders", json=ORDER, headers=write).headers


def test_the_document_is_public_and_true(app: Flask, client: FlaskClient) -> None:
    """Every route of the API stands in it, with its methods, and nothing else does."""
    document = client.get("/api/openapi.json").json
    stated = {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method in item
        if method != "parameters"
    }
    routes = {
        (method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("order_api.")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert stated == routes
    assert document["openapi"].startswith("3.1")
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert references <= set(document["components"]["schemas"])


def test_answers_have_the_fields_that_the_document_states(
    client: FlaskClient, write: dict[str, str], session: Session
) -> None:
    """No field more, none less, in the order and in all that hangs on it."""
    order = make_order(session, state="paid", reference="ord_1")
    event = make_event(session, state="processed", order_reference="ord_1")
    make_attempt(session, event)
    make_conflict(session, event)
    make_ledger_entry(session, order, event)
    make_transition(session, order)
    make_transaction(session, order)
    session.commit()
    schemas = client.get("/api/openapi.json").json["components"]["schemas"]

    _holds(schemas, schemas["Order"], client.get("/api/orders/ord_1", headers=write).json)
    _holds(schemas, schemas["EventInFull"], client.get(f"/api/events/{event.id}", headers=write).json)
    _holds(schemas, schemas["Error"], client.get("/api/orders/none", headers=write).json)
    new = client.post("/api/orders", json={**ORDER, "reference": "ord_2"}, headers=write).json
    _holds(schemas, schemas["OrderFacts"], new)
    change = {"amount_minor": 5, "reason": "x"}
    corrected = client.patch("/api/orders/ord_2", json=change, headers=write).json
    _holds(schemas, schemas["CorrectedOrder"], corrected)


_TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "null": type(None)}


def _holds(schemas: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rsplit("/", 1)[1]]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    assert any(isinstance(value, _TYPES[kind]) for kind in kinds), (schema, value)
    if isinstance(value, dict):
        assert set(value) == set(schema["properties"])
        for name, part in value.items():
            _holds(schemas, schema["properties"][name], part)
    if isinstance(value, list):
        for part in value:
            _holds(schemas, schema["items"], part)
