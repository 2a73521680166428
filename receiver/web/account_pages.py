"""`/account`: who one is, and a new password, for which the present one is asked."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, abort, current_app, flash, redirect, render_template, request, url_for
from flask_login import current_user

from receiver.accounts.actions import record
from receiver.accounts.models import User
from receiver.accounts.users import PASSWORD_MIN, WeakPassword, find_user, holds_password, set_password
from receiver.web.access import SESSION_LIFETIME, begin_session
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.throttle import SignInThrottle

blueprint = Blueprint("account", __name__)


@blueprint.get("/account")
def page() -> Any:
    """The account of whoever is signed in."""
    return render_template(
        "account.html", user=_me(), shortest=PASSWORD_MIN, hours=int(SESSION_LIFETIME.total_seconds() // 3600)
    )


@blueprint.post("/account/password")
def change() -> Any:
    """Set a new password: every other session of this account ends, this one goes on."""
    user = _me()
    present, new = request.form.get("present", ""), request.form.get("new", "")
    throttle: SignInThrottle = current_app.extensions["sign_in_throttle"]
    address, unix = request.remote_addr or "", current_deps().clock.unix()
    key = f"(password){user.name}"
    if throttle.is_slowed(key, address, unix):
        return _back("Not changed: too many attempts. Wait a quarter of an hour.")
    if user.oidc_subject is not None:
        return _back("Not changed: this account signs in at the OpenID Connect issuer.")
    # One who came by a link and has no password yet gives the first one.
    if user.password_hash is not None and not holds_password(user, present):
        throttle.failed(key, address, unix)
        return _back("Not changed: the present password is wrong.")
    if new != request.form.get("again", ""):
        return _back("Not changed: the two new passwords are not the same.")
    try:
        with transaction() as session:
            changed = set_password(session, user.name, new)
            record(
                session,
                actor=actor(),
                action="user.password",
                target=f"user:{user.name}",
                now=statement_time(),
            )
    except WeakPassword as error:
        return _back(f"Not changed: {error}.")
    begin_session(changed)
    flash("Changed. Every other session of this account has ended.", "good")
    return redirect(url_for("account.page"), 303)


def _me() -> User:
    with transaction() as session:
        user = find_user(session, current_user.id)
    if user is None:
        abort(401)
    return user


def _back(sentence: str) -> Any:
    flash(sentence, "bad")
    return redirect(url_for("account.page"), 303)
