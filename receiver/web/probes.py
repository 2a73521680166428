"""`/healthz` (this process answers) and `/readyz` (what it rests on is sound)."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from receiver.queue.workers import alive
from receiver.schema import current_revision, head_revision
from receiver.web.current import current_deps, statement_time, transaction

blueprint = Blueprint("probes", __name__)

PROMISED = ("fsync", "synchronous_commit", "full_page_writes")
"""Settings that a 2xx rests on: without them a commit is not on disk."""


@blueprint.get("/healthz")
def healthz() -> Response:
    """The process answers; nothing else is asked."""
    return jsonify(status="ok")


@blueprint.get("/readyz")
def readyz() -> tuple[Response, int]:
    """200 when every check holds, else 503; each check says whether it holds, and why not."""
    try:
        with transaction() as session:
            checks = {"database": _check(True), **_checks(session)}
    except (DBAPIError, PoolTimeout) as error:
        checks = {"database": _check(False, f"the database does not answer ({type(error).__name__})")}
    ready = all(check["ok"] for check in checks.values())
    return jsonify(status="ready" if ready else "not ready", checks=checks), 200 if ready else 503


def _checks(session: Session) -> dict[str, Any]:
    checks = {}
    for name in PROMISED:
        value = session.execute(text(f"SHOW {name}")).scalar_one()
        checks[name] = _check(value != "off", None if value != "off" else f"{name} is off")
    revision, head = current_revision(session.connection()), head_revision()
    current = None if revision == head else f"the schema is at {revision}, this code wants {head}"
    checks["migrations"] = _check(revision == head, current)
    stale = current_deps().settings.worker_stale
    if revision is None:
        checks["worker"] = _check(False, "nothing was migrated")
    else:
        seen = alive(session, stale=stale, now=statement_time())
        silent = None if seen else f"no worker was seen for {stale.total_seconds():g} s"
        checks["worker"] = _check(bool(seen), silent)
    return checks


def _check(ok: bool, detail: str | None = None) -> dict[str, Any]:
    return {"ok": ok, "detail": detail}
