"""Signing in at an OpenID Connect issuer, where one is configured (the extra `oidc` brings Authlib).

The issuer says who somebody is (its subject) and, in one claim, in which role; a subject is bound to a
user of its own here, and never to a local one that happens to have its name.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, Flask, abort, current_app, redirect, render_template, request, url_for

from receiver.accounts.actions import record
from receiver.accounts.models import User
from receiver.accounts.users import BadUser, UserExists, sign_in_subject
from receiver.logs import logger
from receiver.settings import Settings, SettingsError
from receiver.web.access import RANKS, begin_session
from receiver.web.current import current_deps, statement_time, transaction

blueprint = Blueprint("oidc", __name__)

log = logger("web")


def set_up(app: Flask, settings: Settings) -> None:
    """Make the client. Raises SettingsError where Authlib is not installed."""
    app.extensions["oidc"] = None
    if not settings.oidc_issuer:
        return
    try:
        from authlib.integrations.flask_client import OAuth
    except ImportError:
        raise SettingsError(
            ["OIDC_ISSUER is set, and Authlib is not installed: pip install '.[oidc]'"]
        ) from None
    app.config["RECEIVER_OIDC"] = urlsplit(settings.oidc_issuer).netloc
    app.extensions["oidc"] = OAuth(app).register(
        "issuer",
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        server_metadata_url=f"{settings.oidc_issuer.rstrip('/')}/.well-known/openid-configuration",
        # PKCE guards the code; the state and the nonce stand in this session's signed cookie.
        client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256", "timeout": 10},
    )


@blueprint.get("/login/oidc")
def begin() -> Any:
    """Send the browser to the issuer."""
    client = _client()
    try:
        return client.authorize_redirect(url_for("oidc.answer", _external=True))
    except Exception as error:
        return _refused("The issuer does not answer.", error)


@blueprint.get("/login/oidc/answer")
def answer() -> Any:
    """Take the issuer's answer: its signature, issuer, audience, nonce and time are checked by Authlib."""
    client = _client()
    try:
        claims = client.authorize_access_token().get("userinfo") or {}
    except Exception as error:
        # Whatever is wrong with the answer (state, code, signature, an issuer that is away): nobody enters.
        return _refused("The issuer's answer was refused. Begin again.", error)
    settings = current_deps().settings
    role = role_of(claims.get(settings.oidc_role_claim))
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject or "\0" in subject:
        return _refused("The issuer names no subject.")
    if role is None:
        return _refused(f"The issuer's claim {settings.oidc_role_claim} names no role that may enter.")
    name = next((n for key in ("preferred_username", "email") if (n := claims.get(key))), subject)
    try:
        user = _enter(f"{settings.oidc_issuer} {subject}", str(name), role)
    except UserExists:
        return _refused("A local user has this name already; an admin must disable or rename one of the two.")
    except BadUser as error:
        return _refused(f"{str(error).capitalize()}.")
    if user is None:
        return _refused("This user is disabled here.")
    begin_session(user)
    return redirect(url_for("status.page"), 303)


def _enter(subject: str, name: str, role: str) -> User | None:
    with transaction() as session:
        user = sign_in_subject(
            session,
            subject,
            user_id=current_deps().dice.new_id(),
            name=name,
            role=role,
            now=statement_time(),
        )
        if user is not None:
            record(
                session,
                actor=user.name,
                action="user.sign_in_oidc",
                target=f"user:{user.name}",
                criteria={"role": role},
                now=statement_time(),
            )
        return user


def role_of(claim: object) -> str | None:
    """The highest role that a claim names: a text, or a list of texts; None where it names none.

    >>> role_of(["staff", "viewer", "operator"]), role_of("admin"), role_of("root"), role_of(None)
    ('operator', 'admin', None, None)
    """
    named = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    known = [role for role in named if isinstance(role, str) and role in RANKS]
    return max(known, key=lambda role: RANKS[role], default=None)


def _client() -> Any:
    client = current_app.extensions.get("oidc")
    if client is None:
        abort(404, "No OpenID Connect issuer is configured.")
    return client


def _refused(sentence: str, error: Exception | None = None) -> Any:
    # The kind alone: the text of an error may hold a code or a token.
    log.warning("oidc.refused", said=sentence, error=type(error).__name__ if error else None)
    status = 401 if request.endpoint == "oidc.answer" else 503
    return render_template("sign_in.html", next="/status", refused=sentence), status
