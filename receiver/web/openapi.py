"""The OpenAPI document of the order API, kept true by a test that compares it with the routes."""

from __future__ import annotations

from typing import Any

from receiver import __version__
from receiver.orders.models import STATES

JSON = "application/json"

REFERENCE = {
    "name": "reference",
    "in": "path",
    "required": True,
    "description": "The order's reference, percent-encoded; a slash may stand as it is.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
RECEIPT = {
    "name": "receipt",
    "in": "path",
    "required": True,
    "description": "The receipt that the provider was given for the event.",
    "schema": {"type": "string", "format": "uuid"},
}


def document() -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Receiver: order API",
            "version": __version__,
            "description": "Register the orders that payments may pay. A state is never set: only events "
            "move an order. Amounts are integers in the currency's minor unit.",
        },
        "security": [{"bearer": []}],
        "paths": {**_order_paths(), **_other_paths()},
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _order_paths() -> dict[str, Any]:
    return {
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
            "parameters": [REFERENCE],
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
            "parameters": [REFERENCE],
            "post": _operation(
                "Cancel an order that holds no money, here or at a provider, and has no event to be worked.",
                "orders:write",
                {"200": "OrderFacts"},
                (400, 401, 403, 404, 409, 415, 422),
                body="Cancel",
            ),
        },
    }


def _other_paths() -> dict[str, Any]:
    return {
        "/api/orders/{reference}/reconcile": {
            "parameters": [REFERENCE],
            "post": _operation(
                "Let a worker ask the providers for the order at once.",
                "orders:write",
                {"202": "Asked"},
                (401, 403, 404),
            ),
        },
        "/api/reconciliation": {
            "get": _operation(
                "Where the providers' records and ours differ, of all sources or of one (`source`).",
                "orders:read",
                {"200": "Drift"},
                (401, 403, 422),
            ),
        },
        "/api/events/{receipt}": {
            "parameters": [RECEIPT],
            "get": _operation(
                "One event with its attempts and conflicts, never its payload.",
                "events:read",
                {"200": "EventInFull"},
                (401, 403, 404),
            ),
        },
        "/api/events/{receipt}/replay": {
            "parameters": [RECEIPT],
            "post": _operation(
                "Send a failed or expired event round again, with fresh attempts and deadline; at most 100 "
                "of a source in a minute.",
                "events:replay",
                {"202": "Event"},
                (400, 401, 403, 404, 409, 415, 422, 429),
                body="Replay",
            ),
        },
        "/api/openapi.json": {
            "get": {
                "summary": "This document.",
                "security": [],
                "responses": {"200": {"description": "OpenAPI 3.1", "content": {JSON: {}}}},
            }
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


TEXT: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
FLAG: dict[str, Any] = {"type": "boolean"}
TIME: dict[str, Any] = {"type": "string", "format": "date-time"}
AMOUNT = {"type": "integer", "minimum": 1, "maximum": 10**15}
CURRENCY = {"type": "string", "pattern": "^[A-Z]{3}$"}
SOURCES = {"type": ["array", "null"], "items": TEXT, "minItems": 1}
REASON = {"type": "string", "minLength": 1, "maxLength": 500}
FACTS = {
    "reference": TEXT,
    "amount_minor": AMOUNT,
    "currency": CURRENCY,
    "sources": SOURCES,
    "state": {"type": "string", "enum": list(STATES)},
    "authorized_minor": INTEGER,
    "captured_minor": INTEGER,
    "refunded_minor": INTEGER,
    "cancelled_at": _maybe(TIME),
    "created_at": TIME,
    "updated_at": TIME,
}
EVENT = {
    **dict.fromkeys(("receipt", "source", "provider_event_id", "kind", "state"), TEXT),
    **{
        name: _maybe(TEXT)
        for name in (
            *("type", "order_reference", "transaction_id", "effect_id", "currency"),
            *("outcome", "reason", "detail", "parked_reason"),
        )
    },
    **dict.fromkeys(("attempts", "replays", "receipts", "variants"), INTEGER),
    "amount_minor": _maybe(INTEGER),
    "received_at": TIME,
    "finished_at": _maybe(TIME),
}
LINE = {
    **dict.fromkeys(("kind", "source", "transaction_id", "effect_id", "by"), TEXT),
    "amount_minor": _maybe(INTEGER),
    "currency": _maybe(TEXT),
    "event": _maybe(TEXT),
    "created_at": TIME,
}
CHANGE = {
    "from": _maybe(TEXT),
    "to": TEXT,
    "event": _maybe(TEXT),
    "by": TEXT,
    "reason": _maybe(TEXT),
    "at": TIME,
}
TRANSACTION = {
    "source": TEXT,
    "transaction_id": TEXT,
    "status": _maybe(TEXT),
    "paying": FLAG,
    "refused": FLAG,
}
ATTEMPT = {
    **dict.fromkeys(("replay", "attempt", "duration_ms"), INTEGER),
    "started_at": TIME,
    "outcome": TEXT,
    "error_code": _maybe(TEXT),
    "error": _maybe(TEXT),
}
CONFLICT = {
    **dict.fromkeys(("kind", "payload_sha256", "state"), TEXT),
    "count": INTEGER,
    "first_seen_at": TIME,
    "last_seen_at": TIME,
}
FINDING = {
    **dict.fromkeys(("kind", "source", "order_reference", "transaction_id", "ours", "theirs"), TEXT),
    "opened_at": TIME,
    "seen_at": TIME,
}
UNANSWERED = {
    **dict.fromkeys(("order_reference", "source", "state", "why"), TEXT),
    "said": _maybe(TEXT),
    "created_at": TIME,
    "last_checked_at": _maybe(TIME),
    "next_check_at": _maybe(TIME),
}
ERROR = {"code": TEXT, "message": TEXT, "field": _maybe(TEXT)}


def _schemas() -> dict[str, Any]:
    return {
        "NewOrder": _object(
            {"reference": TEXT, "amount_minor": AMOUNT, "currency": CURRENCY, "sources": SOURCES},
            ("reference", "amount_minor", "currency"),
        ),
        "Correction": _object(
            {"amount_minor": AMOUNT, "currency": CURRENCY, "sources": SOURCES, "reason": REASON}, ("reason",)
        ),
        "Cancel": _object({"reason": REASON}),
        "Asked": _object({"reference": TEXT, "asked": INTEGER}),
        "Drift": _object(
            {
                "drift": INTEGER,
                "findings": {"type": "array", "items": _object(FINDING)},
                "for_a_person": {"type": "array", "items": _object(UNANSWERED)},
                "for_a_person_count": INTEGER,
            }
        ),
        "Replay": _object({"reason": REASON}),
        "OrderFacts": _object(FACTS),
        "CorrectedOrder": _object(
            {**FACTS, "woken": INTEGER, "replayable": {"type": "array", "items": TEXT}}
        ),
        "Order": _object(
            {
                **FACTS,
                "ledger": {"type": "array", "items": _object(LINE)},
                "transitions": {"type": "array", "items": _object(CHANGE)},
                "transactions": {"type": "array", "items": _object(TRANSACTION)},
                "events": {"type": "array", "items": _ref("Event")},
            }
        ),
        "Event": _object(EVENT),
        "EventInFull": _object(
            {
                **EVENT,
                "order": _maybe(TEXT),
                "attempt_history": {"type": "array", "items": _object(ATTEMPT)},
                "conflicts": {"type": "array", "items": _object(CONFLICT)},
            }
        ),
        "Error": _object({"error": _object(ERROR)}),
    }
