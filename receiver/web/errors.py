"""Answers to what went wrong: a sentence on a page, or JSON on the API; never a bare 500."""

from __future__ import annotations

from typing import Any

from flask import Flask, Response, jsonify, render_template, request
from flask_login import current_user
from flask_wtf.csrf import CSRFError
from sqlalchemy.exc import DataError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException

from receiver.inbox.filter import FilterError
from receiver.logs import logger

TITLES = {
    400: "That cannot be asked",
    401: "Please sign in",
    403: "Not allowed",
    404: "Not found",
    405: "Not allowed",
    409: "It changed in between",
    422: "That cannot be done",
    503: "The database is away",
}


def answer_errors(app: Flask) -> None:
    """Register the answers."""
    app.before_request(refuse_nul)
    app.register_error_handler(FilterError, _filter_error)
    app.register_error_handler(CSRFError, _form_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(DataError, _data_error)
    for away in (PoolTimeout, InterfaceError, OperationalError):
        app.register_error_handler(away, _database_away)
    app.register_error_handler(Exception, _fault)


def refuse_nul() -> Response | None:
    """No stored text holds a NUL, and PostgreSQL refuses it: one place for every parameter."""
    if "\0" in request.path:
        return answer(404, "There is no such page.")
    if _has_nul(request.args):
        return answer(400, "A parameter holds a NUL character.")
    if request.mimetype in FORMS and _is_ours() and _has_nul(request.form):
        return answer(400, "A field holds a NUL character.")
    return None


def _has_nul(values: MultiDict[str, str]) -> bool:
    return any("\0" in text for pair in values.items(multi=True) for text in pair)


def _filter_error(error: FilterError) -> Response:
    said = str(error)
    return answer(400, f"{said[:1].upper()}{said[1:]}.", code="bad_filter", field=error.field)


def _form_error(_error: CSRFError) -> Response:
    return answer(400, "This form is too old, or came from elsewhere. Open the page again and repeat it.")


def _http_error(error: HTTPException) -> Response | HTTPException:
    if error.response is not None or error.code is None or error.code < 400:
        return error
    response = answer(error.code, error.description or "")
    for name, value in error.get_headers():
        if name.lower() in ("allow", "retry-after"):
            response.headers[name] = value
    return response


def _data_error(error: DataError) -> Response:
    logger("web").warning("web.bad_value", path=request.path, error=type(error.orig).__name__)
    return answer(400, "A parameter holds a value that no row can have.")


def _database_away(error: Exception) -> Response:
    logger("web").error("web.database_away", path=request.path, error=type(error).__name__)
    response = answer(503, "The database does not answer. Nothing was changed; try again in a moment.")
    response.headers["Retry-After"] = "5"
    return response


def _fault(error: Exception) -> Response:
    logger("web").exception("web.fault", path=request.path, error=type(error).__name__)
    return answer(500, "A fault of this service. The log of the web process has its traceback.")


FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def answer(status: int, message: str, *, code: str | None = None, field: str | None = None) -> Response:
    """The same refusal for both readers: a page, or the API's ``{"error": {…}}``."""
    if request.path.startswith("/api/") or not _is_ours() or request.blueprint == "probes":
        error = {"code": code or CODES.get(status, "error"), "message": message, "field": field}
        response = jsonify(error=error)
    else:
        title = TITLES.get(status, "Something went wrong")
        response = Response(
            render_template("error.html", title=title, message=message, person=_person()),
            mimetype="text/html",
        )
    response.status_code = status
    return response


CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "unprocessable",
    500: "internal_error",
    503: "database_away",
}


def _is_ours() -> bool:
    return not request.path.startswith("/webhooks")


def _person() -> Any:
    # While the database is away the session cannot be read either.
    try:
        return current_user if current_user.is_authenticated else None
    except Exception:
        return None
