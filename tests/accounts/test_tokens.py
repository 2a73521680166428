"""Bearer tokens: shown once, checked by their hash, revoked for good."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.accounts.tokens import (
    BadToken,
    TokenExists,
    UnknownToken,
    check_token,
    create_token,
    list_tokens,
    revoke_token,
)
from receiver.deps import Deps
from tests.conftest import NOW


def test_a_token_is_known_by_its_text_alone(session: Session, deps: Deps) -> None:
    """The text shown once finds the token with its scopes; the table holds no trace of it."""
    shown = create_token(
        session, token_id=deps.dice.new_id(), name="shop", scopes={"orders:write", "orders:read"}, now=NOW
    )

    found = check_token(session, shown, NOW)
    assert found is not None
    assert (found.name, found.scopes) == ("shop", ["orders:read", "orders:write"])
    assert shown.startswith("rcv_")
    stored = session.execute(text("SELECT api_tokens::text FROM api_tokens")).scalar_one()
    assert shown not in stored
    assert shown[4:] not in stored


@pytest.mark.parametrize(
    "wrong", ["", "rcv_", "rcv_x", "bearer", "rcv_" + "x" * 10_000, "rcv_\0", "rcv_\ud800"]
)
def test_other_texts_are_nobody(session: Session, deps: Deps, wrong: str) -> None:
    """Any other text is None, never an error."""
    create_token(session, token_id=deps.dice.new_id(), name="shop", scopes=["metrics"], now=NOW)

    assert check_token(session, wrong, NOW) is None


def test_a_revoked_token_is_out_for_good(session: Session, deps: Deps) -> None:
    """Revoking ends a token, twice is once, and its name stays taken."""
    shown = create_token(session, token_id=deps.dice.new_id(), name="shop", scopes=["metrics"], now=NOW)
    first = revoke_token(session, "shop", NOW).revoked_at
    again = revoke_token(session, "shop", NOW + timedelta(hours=1)).revoked_at

    assert first == again == NOW
    assert check_token(session, shown, NOW) is None
    with pytest.raises(TokenExists):
        create_token(session, token_id=deps.dice.new_id(), name="shop", scopes=["metrics"], now=NOW)
    with pytest.raises(UnknownToken):
        revoke_token(session, "nobody", NOW)


def test_use_is_noted_at_most_once_a_minute(session: Session, deps: Deps) -> None:
    """``last_used_at`` moves after a minute, so that requests do not each write a row."""
    shown = create_token(session, token_id=deps.dice.new_id(), name="shop", scopes=["metrics"], now=NOW)
    used = []
    for seconds in (0, 30, 61):
        check_token(session, shown, NOW + timedelta(seconds=seconds))
        session.expire_all()
        used.append(list_tokens(session)[0].last_used_at)

    assert used == [NOW, NOW, NOW + timedelta(seconds=61)]


@pytest.mark.parametrize(
    ("name", "scopes"), [("", ["metrics"]), ("a\0", ["metrics"]), ("a", []), ("a", ["all"])]
)
def test_unusable_names_and_scopes_are_refused(
    session: Session, deps: Deps, name: str, scopes: list[str]
) -> None:
    """A name that cannot be shown, no scope, an unknown scope: a sentence."""
    with pytest.raises(BadToken):
        create_token(session, token_id=deps.dice.new_id(), name=name, scopes=scopes, now=NOW)
