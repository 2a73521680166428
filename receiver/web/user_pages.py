"""`/users`: for admins, who may sign in and as what; one-time links are shown once."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from flask import Blueprint, flash, redirect, render_template, url_for
from sqlalchemy.orm import Session

from receiver.accounts import users as accounts
from receiver.accounts.actions import record
from receiver.accounts.models import ROLES
from receiver.accounts.users import BadUser, UnknownUser, UserExists
from receiver.web.access import needs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.forms import reason_field, text_field

blueprint = Blueprint("users", __name__)

LINK_LIFETIME = timedelta(hours=24)


@blueprint.get("/users")
@needs("admin")
def index() -> Any:
    """Every user."""
    return _page()


def _page(link: tuple[str, str] | None = None) -> Any:
    with transaction() as session:
        users = accounts.list_users(session)
    return render_template(
        "users.html", users=users, roles=ROLES, link=link, hours=int(LINK_LIFETIME.total_seconds() // 3600)
    )


@blueprint.post("/users")
@needs("admin")
def add() -> Any:
    """Make a user, and the link that lets them in the first time."""
    name, role = text_field("name"), text_field("role")
    try:
        with transaction() as session:
            accounts.create_user(
                session, user_id=current_deps().dice.new_id(), name=name, role=role, now=statement_time()
            )
            _note(session, "user.add", name, None, {"role": role})
            link = _link(session, name)
    except (UserExists, BadUser) as error:
        return _back(f"Not made: {error}.")
    return _page((name, link))


@blueprint.post("/users/link")
@needs("admin")
def issue() -> Any:
    """A new one-time link; the one before it ends."""
    name = text_field("name")
    try:
        with transaction() as session:
            _note(session, "user.link", name, None)
            link = _link(session, name)
    except UnknownUser as error:
        return _back(f"No link: {error}.")
    return _page((name, link))


@blueprint.post("/users/role")
@needs("admin")
def set_role() -> Any:
    """Give somebody else another role."""
    role = text_field("role")
    return _change("user.role", lambda session, name: accounts.set_role(session, name, role), {"role": role})


@blueprint.post("/users/disable")
@needs("admin")
def disable() -> Any:
    """Shut somebody else out."""
    return _change(
        "user.disable", lambda session, name: accounts.disable_user(session, name, now=statement_time())
    )


@blueprint.post("/users/enable")
@needs("admin")
def enable() -> Any:
    """Let somebody in again."""
    return _change("user.enable", accounts.enable_user)


def _change(
    action: str, act: Callable[[Session, str], object], criteria: dict[str, Any] | None = None
) -> Any:
    name, reason = text_field("name"), reason_field()
    if name == actor():
        return _back("Not done: nobody changes the own account here, so that one admin always remains.")
    try:
        with transaction() as session:
            act(session, name)
            _note(session, action, name, reason, criteria)
    except (UnknownUser, BadUser) as error:
        return _back(f"Not done: {error}.")
    flash("Done. Their open sessions have ended.", "good")
    return redirect(url_for("users.index"), 303)


def _link(session: Session, name: str) -> str:
    token = secrets.token_urlsafe(32)
    accounts.issue_sign_in_link(session, name, LINK_LIFETIME, token, now=statement_time())
    return url_for("sign_in.redeem", token=token, _external=True)


def _note(
    session: Session, action: str, name: str, reason: str | None, criteria: dict[str, Any] | None = None
) -> None:
    record(
        session,
        actor=actor(),
        action=action,
        target=f"user:{name}",
        criteria=criteria,
        reason=reason,
        now=statement_time(),
    )


def _back(sentence: str) -> Any:
    flash(sentence, "bad")
    return redirect(url_for("users.index"), 303)
