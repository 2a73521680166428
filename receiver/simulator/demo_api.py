"""The demo provider's payment API, so that reconciliation can be tried: `receiver up` serves it.

Its shape stands in ``receiver.providers.apis.demo``. It answers from a `DemoBook` alone.
"""

from __future__ import annotations

import hmac
import time
from datetime import datetime
from typing import Any

from flask import Blueprint, Response, jsonify, request

from receiver.simulator.demo_book import DemoBook

LONGER_THAN_ANYBODY_WAITS = 15.0


def demo_api(book: DemoBook, key: str, *, slow_seconds: float = LONGER_THAN_ANYBODY_WAITS) -> Blueprint:
    """The API's routes over a book; ``key`` is the bearer token that it asks for."""
    blueprint = Blueprint("demo_api", __name__, url_prefix="/demo-api")

    blueprint.before_request(lambda: _refused(key) or _struck(book, slow_seconds))

    @blueprint.get("/payments/<path:transaction_id>")
    def payment(transaction_id: str) -> Any:
        found = None if _fault() == "lag" else book.payment(transaction_id)
        return (jsonify(error="not_found"), 404) if found is None else jsonify(_told(found))

    @blueprint.get("/payments")
    def payments() -> Any:
        found = [] if _fault() == "lag" else book.payments_of(request.args.get("order_id", ""))
        return jsonify(payments=[_told(one) for one in found])

    @blueprint.get("/events")
    def events() -> Any:
        start, end = _time("from"), _time("to")
        if start is None or end is None:
            return jsonify(error="from and to are times with an offset"), 400
        found, following = book.events(start, end, request.args.get("after"))
        return jsonify(events=[] if _fault() == "lag" else found, next=following)

    return blueprint


def _refused(key: str) -> Any:
    said = request.headers.get("Authorization", "")
    if key and hmac.compare_digest(said.encode(), f"Bearer {key}".encode()):
        return None
    return jsonify(error="unauthorized"), 401


def _struck(book: DemoBook, slow_seconds: float) -> Any:
    """The answer of a fault that is an answer; the others are noted for the routes."""
    fault = book.fault()
    if fault == "429":
        return Response(status=429, headers={"Retry-After": "2"})
    if fault == "500":
        return Response(status=500)
    if fault == "timeout":
        time.sleep(slow_seconds)
    request.environ["demo.fault"] = fault
    return None


def _time(name: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(request.args[name])
    except (KeyError, ValueError):
        return None
    return instant if instant.tzinfo is not None else None


def _fault() -> str | None:
    fault: str | None = request.environ.get("demo.fault")
    return fault


def _told(payment: dict[str, Any]) -> dict[str, Any]:
    """A payment as the API tells it: with the fault `wrong-amount` one minor unit more."""
    if _fault() == "wrong-amount" and isinstance(payment.get("amount"), int):
        return {**payment, "amount": payment["amount"] + 1}
    return payment
