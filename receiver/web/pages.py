"""All doors for people and for the merchant's systems, registered on one application.

`create_app` calls `register`; the intake's door is its own (webhooks.py).
"""

from __future__ import annotations

from flask import Blueprint, Flask, redirect, request, url_for
from werkzeug.exceptions import BadRequest
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.wrappers import Response

from receiver.deps import Deps
from receiver.web import (
    access,
    account_pages,
    alert_pages,
    audit_page,
    conflict_pages,
    errors,
    event_pages,
    events_csv,
    failure_pages,
    headers,
    metrics,
    oidc,
    order_pages,
    probes,
    reconciliation_api,
    reconciliation_pages,
    rejection_pages,
    replay_pages,
    retention_pages,
    sign_in,
    source_pages,
    status_page,
    token_pages,
    user_pages,
    wording,
)
from receiver.web.throttle import SignInThrottle

layout = Blueprint(
    "layout", __name__, template_folder="templates", static_folder="static", static_url_path="/assets"
)

BLUEPRINTS = (
    layout,
    sign_in.blueprint,
    status_page.blueprint,
    event_pages.blueprint,
    events_csv.blueprint,
    failure_pages.blueprint,
    replay_pages.blueprint,
    conflict_pages.blueprint,
    rejection_pages.blueprint,
    alert_pages.blueprint,
    reconciliation_pages.blueprint,
    order_pages.blueprint,
    source_pages.blueprint,
    retention_pages.blueprint,
    audit_page.blueprint,
    account_pages.blueprint,
    user_pages.blueprint,
    token_pages.blueprint,
    oidc.blueprint,
    reconciliation_api.blueprint,  # the order API, with its own routes added
    probes.blueprint,
    metrics.blueprint,
)

MAX_FORM_BYTES = 64 * 1024
"""A form or an API body; the intake reads its own bodies under its own limit."""


@layout.get("/")
def index() -> Response:
    """The status page is the front page."""
    return redirect(url_for("status.page"))


def register(app: Flask, deps: Deps) -> None:
    """Register pages, order API, probes and metrics, and protect them."""
    app.extensions.setdefault("receiver", deps)
    app.extensions["sign_in_throttle"] = SignInThrottle()
    app.extensions["settled_totals"] = metrics.SettledTotals()
    app.url_map.merge_slashes = False
    app.config.update(MAX_CONTENT_LENGTH=MAX_FORM_BYTES, MAX_FORM_MEMORY_SIZE=MAX_FORM_BYTES)
    _trust(app, deps)
    errors.answer_errors(app)
    access.protect(app)
    oidc.set_up(app, deps.settings)
    headers.send_headers(app)
    wording.teach(app)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)


def _trust(app: Flask, deps: Deps) -> None:
    """Believe as many proxies as there are, and answer to no other host than ours."""
    proxies, hosts = deps.settings.trusted_proxies, set(deps.settings.trusted_hosts)
    if proxies:
        app.wsgi_app = ProxyFix(  # type: ignore[method-assign]
            app.wsgi_app, x_for=proxies, x_proto=proxies, x_host=proxies, x_port=proxies
        )
    if not hosts:
        return

    @app.before_request
    def known_host() -> None:
        name = request.host.rsplit(":", 1)[0] if not request.host.endswith("]") else request.host
        if request.host not in hosts and name not in hosts:
            raise BadRequest("This host is not served here.")
