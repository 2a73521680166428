"""The OpenAPI document of the order API, kept true by a test that compares it with the routes."""

from __future__ import annotations

from typing import Any

from receiver import __version__
from receiver.orders.models import STATES

JSON = "application/json"


def document() -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    reference = {
        "name": "reference",
        "in": "path",
        "required": True,
        "description": "The order's reference, percent-encoded; a slash may stand as it is.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    }
    receipt = {
        "name": "receipt",
        "in": "path",
        "required": True,
        "description": "The receipt that the provider was given for the event.",
        "schema": {"type": "string", "format": "uuid"},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Receiver: order API",
            "version": __version__,
            "description": "Register the orders that payments may pay. A state is never set: only events "
            "move an order. Amounts are integers in the currency's minor unit.",
        },
        "security": [{"bearer": []}],
        "paths": {
            "/api/orders": {
                "post": _operation(
                    "Register an order; the same facts again are answered 200, other facts 409.",
                    "orders:write",
                    {"201": "OrderFacts", "200": "OrderFacts"},
                    (400, 401, 403, 409, 415, 422),
                    body="NewOrder",
                )
            },
            "/api/orders/{reference}": {
                "parameters": [reference],
                "get": _operation(
                    "One order with its ledger, transitions, transactions and events.",
                    "orders:read",
                    {"200": "Order"},
                    (401, 403, 404),
                ),
                "patch": _operation(
                    "Correct a wrongly registered order while its ledger is empty. Parked events are woken; "
                    "refused ones are named for replay.",
                    "orders:write",
                    {"200": "CorrectedOrder"},
                    (400, 401, 403, 404, 409, 415, 422),
                    body="Correction",
                ),
            },
            "/api/orders/{reference}/cancel": {
                "parameters": [reference],
                "post": _operation(
                    "Cancel an order that holds no money and has no event to be worked.",
                    "orders:write",
                    {"200": "OrderFacts"},
                    (400, 401, 403, 404, 409, 415, 422),
                    body="Cancel",
                ),
            },
            "/api/events/{receipt}": {
                "parameters": [receipt],
                "get": _operation(
                    "One event with its attempts and conflicts, never its payload.",
                    "events:read",
                    {"200": "EventInFull"},
                    (401, 403, 404),
                ),
            },
            "/api/openapi.json": {
                "get": {
                    "summary": "This document.",
                    "security": [],
                    "responses": {"200": {"description": "OpenAPI 3.1", "content": {JSON: {}}}},
                }
            },
        },
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _operation(
    summary: str, scope: str, answers: dict[str, str], errors: tuple[int, ...], body: str | None = None
) -> dict[str, Any]:
    responses = {
        status: {"description": "Done", "content": {JSON: {"schema": _ref(schema)}}}
        for status, schema in answers.items()
    }
    responses |= {
        str(status): {"description": "Refused", "content": {JSON: {"schema": _ref("Error")}}}
        for status in (*errors, 503)
    }
    operation: dict[str, Any] = {
        "summary": summary,
        "description": f"Needs a token with the scope `{scope}`.",
        "responses": responses,
    }
    if body:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": _ref(body)}}}
    return operation


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Any], required: tuple[str, ...] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties if required is None else required),
        "additionalProperties": False,
    }


def _maybe(kind: dict[str, Any]) -> dict[str, Any]:
    return {**kind, "type": [kind["type"], "null"]}


def _schemas() -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string"}
    integer: dict[str, Any] = {"type": "integer"}
    flag: dict[str, Any] = {"type": "boolean"}
    time: dict[str, Any] = {"type": "string", "format": "date-time"}
    amount = {"type": "integer", "minimum": 1, "maximum": 10**15}
    currency = {"type": "string", "pattern": "^[A-Z]{3}$"}
    sources = {"type": ["array", "null"], "items": text, "minItems": 1}
    reason = {"type": "string", "minLength": 1, "maxLength": 500}
    facts = {
        "reference": text,
        "amount_minor": amount,
        "currency": currency,
        "sources": sources,
        "state": {"type": "string", "enum": list(STATES)},
        "authorized_minor": integer,
        "captured_minor": integer,
        "refunded_minor": integer,
        "cancelled_at": _maybe(time),
        "created_at": time,
        "updated_at": time,
    }
    event = {
        **dict.fromkeys(("receipt", "source", "provider_event_id", "kind", "state"), text),
        **{
            name: _maybe(text)
            for name in (
                *("type", "order_reference", "transaction_id", "effect_id", "currency"),
                *("outcome", "reason", "detail", "parked_reason"),
            )
        },
        **dict.fromkeys(("attempts", "replays", "receipts", "variants"), integer),
        "amount_minor": _maybe(integer),
        "received_at": time,
        "finished_at": _maybe(time),
    }
    line = {
        **dict.fromkeys(("kind", "source", "transaction_id", "effect_id", "by"), text),
        "amount_minor": _maybe(integer),
        "currency": _maybe(text),
        "event": _maybe(text),
        "created_at": time,
    }
    change = {
        "from": _maybe(text),
        "to": text,
        "event": _maybe(text),
        "by": text,
        "reason": _maybe(text),
        "at": time,
    }
    transaction = {
        "source": text,
        "transaction_id": text,
        "status": _maybe(text),
        "paying": flag,
        "refused": flag,
    }
    attempt = {
        **dict.fromkeys(("replay", "attempt", "duration_ms"), integer),
        "started_at": time,
        "outcome": text,
        "error_code": _maybe(text),
        "error": _maybe(text),
    }
    conflict = {
        **dict.fromkeys(("kind", "payload_sha256", "state"), text),
        "count": integer,
        "first_seen_at": time,
        "last_seen_at": time,
    }
    error = {"code": text, "message": text, "field": _maybe(text)}
    return {
        "NewOrder": _object(
            {"reference": text, "amount_minor": amount, "currency": currency, "sources": sources},
            ("reference", "amount_minor", "currency"),
        ),
        "Correction": _object(
            {"amount_minor": amount, "currency": currency, "sources": sources, "reason": reason}, ("reason",)
        ),
        "Cancel": _object({"reason": reason}),
        "OrderFacts": _object(facts),
        "CorrectedOrder": _object(
            {**facts, "woken": integer, "replayable": {"type": "array", "items": text}}
        ),
        "Order": _object(
            {
                **facts,
                "ledger": {"type": "array", "items": _object(line)},
                "transitions": {"type": "array", "items": _object(change)},
                "transactions": {"type": "array", "items": _object(transaction)},
                "events": {"type": "array", "items": _ref("Event")},
            }
        ),
        "Event": _object(event),
        "EventInFull": _object(
            {
                **event,
                "order": _maybe(text),
                "attempt_history": {"type": "array", "items": _object(attempt)},
                "conflicts": {"type": "array", "items": _object(conflict)},
            }
        ),
        "Error": _object({"error": _object(error)}),
    }
