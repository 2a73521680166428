"""Reconciliation for programs: the drift report, and an order that is to be asked for at once."""

from __future__ import annotations

from flask import Response, jsonify, request

from receiver.inbox.correct_order import UnknownOrder
from receiver.inbox.filter import FilterError, check_text
from receiver.reconciliation.demand import ask_soon
from receiver.reconciliation.report import drift_report, report_document
from receiver.web.current import current_deps, statement_time, transaction
from receiver.web.order_api import ApiError, acting_token, bearer, blueprint, check_reference, unknown_order

__all__ = ["blueprint"]


@blueprint.get("/reconciliation")
@bearer("orders:read")
def drift() -> Response:
    """What differs between the providers' records and ours, of all sources or of one."""
    source = request.args.get("source") or None
    if source is not None:
        try:
            check_text("source", source)
        except FilterError as error:
            raise ApiError(422, "bad_source", "source must be a source's name.", "source") from error
    with transaction() as session:
        report = drift_report(session, source=source)
    return jsonify(report_document(report))


@blueprint.post("/orders/<path:reference>/reconcile")
@bearer("orders:write")
def ask(reference: str) -> tuple[Response, int]:
    """Let a worker ask the providers for the order in its next round; at how many sources."""
    check_reference(reference)
    try:
        with transaction() as session:
            asked = ask_soon(
                session,
                current_deps().settings,
                reference=reference,
                actor=acting_token(),
                now=statement_time(),
            )
    except UnknownOrder:
        unknown_order()
    return jsonify(reference=reference, asked=asked), 202
