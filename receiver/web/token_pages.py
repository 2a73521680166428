"""`/tokens`: for admins, the bearer tokens of the merchant's systems; a token's text is shown once."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, url_for

from receiver.accounts.actions import record
from receiver.accounts.tokens import (
    SCOPES,
    BadToken,
    TokenExists,
    UnknownToken,
    create_token,
    list_tokens,
    revoke_token,
)
from receiver.web.access import needs
from receiver.web.current import actor, current_deps, statement_time, transaction
from receiver.web.forms import reason_field, text_field

blueprint = Blueprint("tokens", __name__)


@blueprint.get("/tokens")
@needs("admin")
def index() -> Any:
    """Every token."""
    return _page()


def _page(made: tuple[str, str] | None = None) -> Any:
    with transaction() as session:
        tokens = list_tokens(session)
    return render_template("tokens.html", tokens=tokens, scopes=SCOPES, made=made)


@blueprint.post("/tokens")
@needs("admin")
def add() -> Any:
    """Make a token; the answer is the only page that ever shows its text."""
    name, scopes = text_field("name"), request.form.getlist("scopes")
    try:
        with transaction() as session:
            text = create_token(
                session,
                token_id=current_deps().dice.new_id(),
                name=name,
                scopes=scopes,
                now=statement_time(),
            )
            record(
                session,
                actor=actor(),
                action="token.add",
                target=f"token:{name}",
                criteria={"scopes": scopes},
                now=statement_time(),
            )
    except (TokenExists, BadToken) as error:
        flash(f"Not made: {error}.", "bad")
        return redirect(url_for("tokens.index"), 303)
    return _page((name, text))


@blueprint.post("/tokens/revoke")
@needs("admin")
def revoke() -> Any:
    """End a token for good."""
    name, reason = text_field("name"), reason_field()
    try:
        with transaction() as session:
            revoke_token(session, name, now=statement_time())
            record(
                session,
                actor=actor(),
                action="token.revoke",
                target=f"token:{name}",
                reason=reason,
                now=statement_time(),
            )
    except UnknownToken as error:
        flash(f"Not revoked: {error}.", "bad")
    else:
        flash("Revoked. Whoever uses it is answered 401 from now on.", "good")
    return redirect(url_for("tokens.index"), 303)
