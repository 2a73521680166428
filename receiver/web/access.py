"""Who may see and do what on the pages: sign-in sessions, roles, form protection.

Everything is refused unless it is named open here: a new page is private before anybody thinks of
it. The intake and the order API have their own protection, the signature and the bearer token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from flask import Flask, abort, redirect, request, url_for
from flask import session as cookie
from flask_login import LoginManager, UserMixin, current_user, login_user
from flask_wtf.csrf import CSRFProtect

from receiver.accounts.models import User
from receiver.accounts.users import find_user
from receiver.web.current import current_deps, transaction

SESSION_LIFETIME = timedelta(hours=12)
"""From the sign-in, whatever happens in between."""

OWN_PROTECTION = frozenset({"webhooks", "order_api", "metrics", "demo_api"})
"""Blueprints without session and form protection: signature and bearer token protect them. ``demo_api`` is
there under `receiver up` alone."""

OPEN = frozenset(
    {"sign_in.page", "sign_in.enter", "sign_in.redeem", "oidc.begin", "oidc.answer", "layout.static"}
)
OPEN_BLUEPRINTS = OWN_PROTECTION | {"probes"}

RANKS = {"viewer": 1, "operator": 2, "admin": 3}
"""A role may do what those below it may; a customer sees none of these pages."""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Person(UserMixin):
    """The person of a session."""

    id: UUID
    name: str
    role: str
    epoch: int

    def get_id(self) -> str:
        """What the session keeps: a new epoch (password changed, user disabled) ends it."""
        return f"{self.id}:{self.epoch}"

    def may(self, role: str) -> bool:
        """Whether the person's role is at least ``role``."""
        return RANKS.get(self.role, 0) >= RANKS[role]


def protect(app: Flask) -> None:
    """Give the application sessions, the sign-in wall and form protection."""
    settings = app.extensions["receiver"].settings
    app.config.update(
        SECRET_KEY=settings.secret_key,
        SESSION_COOKIE_NAME="receiver_session",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SECURE=settings.cookie_secure,
        SESSION_COOKIE_SAMESITE="Lax",
        PERMANENT_SESSION_LIFETIME=SESSION_LIFETIME,
        SESSION_REFRESH_EACH_REQUEST=False,
        # The form's token lives as long as the session; the wall below asks for it by default.
        WTF_CSRF_TIME_LIMIT=None,
        WTF_CSRF_CHECK_DEFAULT=False,
    )
    manager = LoginManager(app)
    manager.user_loader(_load)
    csrf = CSRFProtect(app)

    @app.before_request
    def wall() -> Any:
        if request.endpoint is None or request.blueprint in OWN_PROTECTION:
            return None
        if request.endpoint not in OPEN and request.blueprint not in OPEN_BLUEPRINTS:
            if not current_user.is_authenticated:
                if request.method == "GET":
                    return redirect(url_for("sign_in.page", next=_here()))
                abort(401)
            if not current_user.may("viewer"):
                abort(403)
        csrf.protect()
        return None


def begin_session(user: User) -> None:
    """Sign a user in, in a fresh session."""
    cookie.clear()
    login_user(Person(user.id, user.name, user.role, user.session_epoch))
    cookie.permanent = True
    cookie["signed_in_at"] = current_deps().clock.unix()


def needs(role: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let only people of at least this role in (403 otherwise)."""

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            if not current_user.may(role):
                abort(403, f"This needs the role {role}.")
            return view(*args, **kwargs)

        return guarded

    return decorate


def _load(text: str) -> Person | None:
    signed_in_at = cookie.get("signed_in_at", 0)
    if current_deps().clock.unix() - signed_in_at > SESSION_LIFETIME.total_seconds():
        return None
    user_id, _, epoch = text.partition(":")
    with transaction() as session:
        user = find_user(session, UUID(user_id))
        if user is None or user.disabled_at is not None or str(user.session_epoch) != epoch:
            return None
        return Person(user.id, user.name, user.role, user.session_epoch)


def _here() -> str:
    return request.full_path.rstrip("?")
