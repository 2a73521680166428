"""Signing in, by password or by a one-time link, and signing out."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from flask import (
    Blueprint,
    current_app,
    flash,
    redirect,
    render_template,
    request,
    url_for,
)
from flask import (
    session as cookie,
)
from flask_login import current_user, logout_user

from receiver.accounts import actions, users
from receiver.web.access import begin_session
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.throttle import SignInThrottle

blueprint = Blueprint("sign_in", __name__)

REFUSED = "The name or the password is wrong."
SLOWED = "Too many attempts for this account or from this address. Wait a quarter of an hour."


@blueprint.get("/login")
def page() -> Any:
    """The form."""
    if current_user.is_authenticated:
        return redirect(_next())
    return render_template("sign_in.html", next=_next(), refused=None)


@blueprint.post("/login")
def enter() -> Any:
    """Check name and password; the same answer for an unknown name and a wrong password."""
    name, password = request.form.get("name", ""), request.form.get("password", "")
    throttle: SignInThrottle = current_app.extensions["sign_in_throttle"]
    address, unix = request.remote_addr or "", current_deps().clock.unix()
    if throttle.is_slowed(name, address, unix):
        return render_template("sign_in.html", next=_next(), refused=SLOWED), 429
    with transaction() as session:
        user = users.sign_in(session, name, password, now=statement_time())
        if user is not None:
            _record(session, user.name, "user.sign_in")
    if user is None:
        throttle.failed(name, address, unix)
        return render_template("sign_in.html", next=_next(), refused=REFUSED), 401
    throttle.succeeded(name)
    begin_session(user)
    return redirect(_next(), 303)


@blueprint.get("/sign-in/<token>")
def redeem(token: str) -> Any:
    """Open a one-time link: it works once, and for people who open it, not for a HEAD."""
    if request.method != "GET":
        return "", 405
    throttle: SignInThrottle = current_app.extensions["sign_in_throttle"]
    address, unix = request.remote_addr or "", current_deps().clock.unix()
    if throttle.is_slowed("(link)" + address, address, unix):
        return render_template("sign_in.html", next="/status", refused=SLOWED), 429
    with transaction() as session:
        user = users.redeem_sign_in_link(session, token, now=statement_time())
        if user is not None:
            _record(session, user.name, "user.sign_in_link")
    if user is None:
        throttle.failed("(link)" + address, address, unix)
        refused = "This sign-in link was used already, or its time is over."
        return render_template("sign_in.html", next="/status", refused=refused), 401
    begin_session(user)
    return redirect("/status", 303)


@blueprint.post("/logout")
def leave() -> Any:
    """End the session."""
    with transaction() as session:
        _record(session, actor(), "user.sign_out")
    logout_user()
    cookie.clear()
    flash("You are signed out.")
    return redirect(url_for("sign_in.page"), 303)


def _record(session: Any, name: str, action: str) -> None:
    actions.record(session, actor=name, action=action, target=f"user:{name}", now=statement_time())


def _next() -> str:
    """Where to go after signing in: a path of this site, never another host's."""
    wanted = request.values.get("next", "")
    parts = urlsplit(wanted)
    ours = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and not parts.netloc
    return wanted if ours and "\\" not in wanted and wanted.isprintable() else "/status"
