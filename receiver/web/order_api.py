"""The order API for the merchant's systems: bearer tokens, integers only, JSON errors.

It registers, reads, corrects and cancels orders, reads events by their receipt, and sends failed ones
round again. It never sets a state: only events move an order.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec, TypeVar
from uuid import UUID

from flask import Blueprint, Response, g, jsonify, request

from receiver.accounts.models import ApiToken
from receiver.accounts.tokens import check_token
from receiver.inbox.cancel_order import NotCancellable, cancel_order
from receiver.inbox.correct_order import UNSET, NotCorrectable, UnknownOrder, correct_order
from receiver.inbox.event_detail import find_event
from receiver.inbox.filter import FilterError, check_text, is_storable
from receiver.inbox.find_events import events_of_order
from receiver.inbox.register_order import OrderFactsDiffer, OrderRefused, register_order
from receiver.inbox.replay import (
    NotReplayable,
    RowChanged,
    TooManyReplays,
    UnknownEvent,
    replay_by_token,
)
from receiver.orders.find_orders import order_detail
from receiver.reconciliation.ask import Asker
from receiver.reconciliation.demand import check_before_cancel
from receiver.web import documents
from receiver.web.current import current_deps, statement_time, transaction
from receiver.web.openapi import document

blueprint = Blueprint("order_api", __name__, url_prefix="/api")

MAX_REASON = 500
FIELD_OF = {
    "bad_reference": "reference",
    "bad_amount": "amount_minor",
    "bad_currency": "currency",
    "bad_sources": "sources",
}

P = ParamSpec("P")
R = TypeVar("R")


class ApiError(Exception):
    """A refusal of the API, answered as ``{"error": {"code", "message", "field"}}``."""

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.field = field


@blueprint.errorhandler(ApiError)
def refuse(error: ApiError) -> Response:
    """The refusal as JSON."""
    response = jsonify(error={"code": error.code, "message": error.message, "field": error.field})
    response.status_code = error.status
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if error.status == 429:
        response.headers["Retry-After"] = "60"
    return response


def bearer(scope: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let in a request whose bearer token has the scope: 401 without a token, 403 without the scope."""

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            g.api_token = check_bearer(scope)
            return view(*args, **kwargs)

        return guarded

    return decorate


def check_bearer(scope: str) -> ApiToken:
    """The token of this request. Raises ApiError."""
    kind, _, text = request.headers.get("Authorization", "").partition(" ")
    token = None
    if kind.lower() == "bearer" and text.strip().isascii():
        with transaction() as session:
            token = check_token(session, text.strip(), now=statement_time())
    if token is None:
        raise ApiError(401, "unauthorized", "A valid bearer token is needed.")
    if scope not in token.scopes:
        raise ApiError(403, "forbidden", f"The token lacks the scope {scope}.")
    return token


@blueprint.post("/orders")
@bearer("orders:write")
def register() -> tuple[Response, int]:
    """Register an order: 201 when new, 200 when it is registered with the same facts, 409 with others."""
    body = _body({"reference", "amount_minor", "currency"}, {"sources"})
    try:
        with transaction() as session:
            registered = register_order(
                session,
                order_id=current_deps().dice.new_id(),
                reference=body["reference"],
                amount_minor=body["amount_minor"],
                currency=body["currency"],
                sources=body.get("sources"),
                now=statement_time(),
            )
            answer = documents.order(registered.order)
    except OrderRefused as refusal:
        raise ApiError(422, refusal.code, _sentence(refusal.detail), FIELD_OF.get(refusal.code)) from refusal
    except OrderFactsDiffer as refusal:
        raise ApiError(409, refusal.code, _sentence(refusal.detail)) from refusal
    return jsonify(answer), 201 if registered.created else 200


@blueprint.get("/orders/<path:reference>")
@bearer("orders:read")
def show(reference: str) -> Response:
    """One order with its ledger, its transitions, its transactions and every event with its outcome."""
    check_reference(reference)
    with transaction() as session:
        detail = order_detail(session, reference)
        if detail is None:
            unknown_order()
        return jsonify(documents.order_in_full(detail, events_of_order(session, detail.order)))


@blueprint.patch("/orders/<path:reference>")
@bearer("orders:write")
def correct(reference: str) -> Response:
    """Correct a wrongly registered order while its ledger is empty; a reason is asked for."""
    check_reference(reference)
    body = _body({"reason"}, {"amount_minor", "currency", "sources"})
    reason = _reason(body)
    for field in ("amount_minor", "currency"):
        if field in body and body[field] is None:
            raise ApiError(422, "missing_value", f"{field} must not be null; leave it out to keep it.", field)
    try:
        with transaction() as session:
            corrected = correct_order(
                session,
                reference,
                amount_minor=body.get("amount_minor"),
                currency=body.get("currency"),
                sources=body.get("sources", UNSET),
                actor=acting_token(),
                reason=reason,
                now=statement_time(),
            )
            answer = documents.order(corrected.order)
    except UnknownOrder:
        unknown_order()
    except OrderRefused as refusal:
        raise ApiError(422, refusal.code, _sentence(refusal.detail), FIELD_OF.get(refusal.code)) from refusal
    except NotCorrectable as refusal:
        raise ApiError(409, refusal.code, _sentence(refusal.detail)) from refusal
    events = [str(event_id) for event_id in corrected.replayable]
    return jsonify({**answer, "woken": corrected.woken, "replayable": events})


@blueprint.post("/orders/<path:reference>/cancel")
@bearer("orders:write")
def cancel(reference: str) -> Response:
    """Cancel an order without money, here or at a provider, and without an event to be worked (else 409)."""
    check_reference(reference)
    reason = _reason(_body({"reason"}, set()))
    try:
        check_before_cancel(current_deps(), Asker(current_deps()), reference)
        with transaction() as session:
            order = cancel_order(
                session, reference, actor=acting_token(), reason=reason, now=statement_time()
            )
            answer = documents.order(order)
    except UnknownOrder:
        unknown_order()
    except NotCancellable as refusal:
        raise ApiError(409, refusal.code, _sentence(refusal.detail)) from refusal
    return jsonify(answer)


@blueprint.get("/events/<uuid:receipt>")
@bearer("events:read")
def event(receipt: UUID) -> Response:
    """One event by the receipt that its provider was given."""
    with transaction() as session:
        detail = find_event(session, receipt)
        if detail is None:
            raise ApiError(404, "event_unknown", "There is no event of this receipt.")
        return jsonify(documents.event_in_full(detail))


@blueprint.post("/events/<uuid:receipt>/replay")
@bearer("events:replay")
def replay(receipt: UUID) -> tuple[Response, int]:
    """Send a failed or expired event round again: 202; at most 100 of a source in a minute (429)."""
    reason = _reason(_body({"reason"}, set()))
    try:
        with transaction() as session:
            row = replay_by_token(
                session,
                receipt,
                token=g.api_token.name,
                reason=reason,
                give_up=current_deps().settings.give_up,
                now=statement_time(),
            )
            answer = documents.event(row)
    except UnknownEvent:
        raise ApiError(404, "event_unknown", "There is no event of this receipt.") from None
    except (NotReplayable, RowChanged) as refusal:
        raise ApiError(409, refusal.code, _sentence(refusal.detail)) from refusal
    except TooManyReplays as refusal:
        raise ApiError(429, refusal.code, _sentence(refusal.detail)) from refusal
    return jsonify(answer), 202


@blueprint.get("/openapi.json")
def openapi() -> Response:
    """The document of this API; public."""
    return jsonify(document())


def _body(required: set[str], optional: set[str]) -> dict[str, Any]:
    """The request's JSON object with exactly the fields that this route knows."""
    if request.mimetype != "application/json":
        raise ApiError(415, "unsupported_media_type", "Send a JSON object as application/json.")
    try:
        body = json.loads(request.get_data(), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except ApiError:
        raise
    except (ValueError, RecursionError):
        raise ApiError(400, "unreadable", "The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise ApiError(400, "unreadable", "The body must be a JSON object.")
    if "state" in body:
        raise ApiError(422, "unknown_field", "A state is never set: only events move an order.", "state")
    for field in sorted(set(body) - required - optional):
        shown = field.encode("utf-8", "backslashreplace").decode()[:64]
        raise ApiError(422, "unknown_field", f"{shown} is not a field of this request.", shown)
    for field in sorted(required - set(body)):
        raise ApiError(422, "missing_field", f"{field} is missing.", field)
    _check_sources(body.get("sources"))
    return body


def _check_sources(sources: object) -> None:
    """Refuse what is no list of names before an act sorts and stores it."""
    texts = sources if isinstance(sources, list) and sources else [None]
    if sources is not None and not all(isinstance(text, str) and is_storable(text) for text in texts):
        message = "sources must be a list of source names, or null for any source."
        raise ApiError(422, "bad_sources", message, "sources")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ApiError(400, "unreadable", "A field stands twice.")
    return dict(pairs)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _reason(body: dict[str, Any]) -> str:
    reason = body["reason"]
    if not isinstance(reason, str) or not 1 <= len(reason.strip()) <= MAX_REASON:
        raise ApiError(422, "bad_reason", f"reason must be a text of 1 to {MAX_REASON} characters.", "reason")
    if not is_storable(reason):
        raise ApiError(422, "bad_reason", "reason must not hold NUL or lone surrogates.", "reason")
    return reason.strip()


def check_reference(reference: str) -> None:
    """404 for a reference that no order can have."""
    try:
        check_text("reference", reference)
    except FilterError:
        unknown_order()


def unknown_order() -> NoReturn:
    """The 404 of an order that is not registered."""
    raise ApiError(404, "order_unknown", "No order of this reference is registered.")


def acting_token() -> str:
    """Whom the record of acts names: the token."""
    return f"token:{g.api_token.name}"


def _sentence(detail: str) -> str:
    return f"{detail[:1].upper()}{detail[1:]}."
