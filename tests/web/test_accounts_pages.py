"""Accounts on the pages: one's own password, and for admins the users and the tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from receiver.accounts import users as accounts
from receiver.accounts.actions import list_actions
from receiver.web.throttle import MAX_PER_ACCOUNT
from tests.factories import make_user
from tests.web.conftest import SignIn, post

OLD, NEW = "an-old-enough-password", "a-new-enough-password"


def _text(response: object) -> str:
    return response.get_data(as_text=True)  # type: ignore[attr-defined]


def _with_password(session: Session, app: Flask) -> tuple[FlaskClient, FlaskClient]:
    make_user(session, name="olga", password_hash=accounts._hash("olga", OLD))
    session.commit()
    clients = (app.test_client(), app.test_client())
    for client in clients:
        assert post(client, "/login", "/login", name="olga", password=OLD).status_code == 303
    return clients


def _change(client: FlaskClient, **fields: str) -> str:
    post(client, "/account/password", "/account", **fields)
    return _text(client.get("/account"))


def test_a_password_is_changed_by_the_present_one(app: Flask, session: Session) -> None:
    """The new one works, every other session ends, this one goes on, and it is on the record."""
    mine, other = _with_password(session, app)

    assert "Changed." in _change(mine, present=OLD, new=NEW, again=NEW)

    assert mine.get("/status").status_code == 200
    assert other.get("/status").status_code == 302
    assert accounts.sign_in(session, "olga", NEW) is not None
    assert list_actions(session)[0].action == "user.password"


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"present": "wrong", "new": NEW, "again": NEW}, "present password is wrong"),
        ({"new": NEW, "again": NEW}, "present password is wrong"),
        ({"present": OLD, "new": NEW, "again": NEW + "x"}, "not the same"),
        ({"present": OLD, "new": "short", "again": "short"}, "12 to 1024"),
        ({"present": OLD, "new": "a" * 20, "again": "a" * 20}, "too easy"),
    ],
)
def test_a_password_that_cannot_be_changed_stays(
    app: Flask, session: Session, fields: dict[str, str], sentence: str
) -> None:
    """With a sentence, and nothing changed."""
    mine, _ = _with_password(session, app)
    assert sentence in _change(mine, **fields)
    assert accounts.sign_in(session, "olga", OLD) is not None


def test_guesses_of_the_present_password_are_slowed(app: Flask, session: Session) -> None:
    """After ten wrong ones even the right one has to wait."""
    mine, _ = _with_password(session, app)
    for _ in range(MAX_PER_ACCOUNT):
        _change(mine, present="wrong", new=NEW, again=NEW)
    assert "too many attempts" in _change(mine, present=OLD, new=NEW, again=NEW)


def test_one_who_came_by_a_link_gives_a_first_password(sign_in: SignIn, session: Session) -> None:
    """There is no present one to ask for."""
    client = sign_in("operator", name="newcomer")
    assert "First password" in _text(client.get("/account"))
    assert "Changed." in _change(client, new=NEW, again=NEW)
    assert accounts.sign_in(session, "newcomer", NEW) is not None


def _link(page: str) -> str:
    found = re.search(r"http://localhost(/sign-in/[\w-]+)", page)
    assert found
    return found[1]


def test_an_admin_adds_somebody_and_gives_them_a_link(sign_in: SignIn, app: Flask, session: Session) -> None:
    """Shown on that page alone, it signs in once."""
    admin = sign_in("admin")
    made = post(admin, "/users", "/users", name="new-person", role="viewer")
    path = _link(_text(made))
    assert "/sign-in/" not in _text(admin.get("/users"))
    newcomer = app.test_client()
    assert newcomer.get(path).status_code == 303
    assert newcomer.get("/status").status_code == 200
    assert app.test_client().get(path).status_code == 401
    again = _link(_text(post(admin, "/users/link", "/users", name="new-person")))
    assert app.test_client().get(again).status_code == 303
    post(admin, "/users", "/users", name="new-person", role="viewer")
    assert "there is a user" in _text(admin.get("/users"))


@pytest.mark.parametrize("fields", [{"name": "", "role": "viewer"}, {"name": "x", "role": "root"}])
def test_a_user_that_cannot_be_is_a_sentence(sign_in: SignIn, fields: dict[str, str]) -> None:
    """303 and why."""
    admin = sign_in("admin")
    assert post(admin, "/users", "/users", **fields).status_code == 303
    assert "Not made:" in _text(admin.get("/users"))


def test_roles_and_shutting_out_end_open_sessions(sign_in: SignIn, session: Session) -> None:
    """Another role, out, and in again: each ends what is open, with a reason on the record."""
    admin = sign_in("admin")
    person = sign_in("operator", name="ola")
    fields: dict[str, Any] = {"name": "ola", "reason": "moved on"}
    post(admin, "/users/role", "/users", role="viewer", **fields)
    assert person.get("/status").status_code == 302
    assert accounts.find_user_named(session, "ola").role == "viewer"
    post(admin, "/users/disable", "/users", **fields)
    assert "disabled" in _text(admin.get("/users"))
    post(admin, "/users/enable", "/users", **fields)
    session.expire_all()
    assert accounts.find_user_named(session, "ola").disabled_at is None
    assert [act.action for act in list_actions(session)[:3]] == ["user.enable", "user.disable", "user.role"]
    post(admin, "/users/disable", "/users", name="nobody", reason="x")
    assert "Not done: there is no user" in _text(admin.get("/users"))


def test_nobody_shuts_themselves_out(sign_in: SignIn, session: Session) -> None:
    """So that one admin always remains."""
    admin = sign_in("admin", name="ada")
    post(admin, "/users/disable", "/users", name="ada", reason="x")
    assert "nobody changes the own account" in _text(admin.get("/users"))
    assert accounts.find_user_named(session, "ada").disabled_at is None


def test_a_token_is_shown_once_and_revoked(sign_in: SignIn, app: Flask) -> None:
    """It works until then; its text stands on no later page."""
    admin = sign_in("admin")
    page = _text(post(admin, "/tokens", "/tokens", name="shop", scopes=["orders:read"]))
    found = re.search(r"rcv_[\w-]+", page)
    assert found
    headers = {"Authorization": f"Bearer {found[0]}"}
    assert app.test_client().get("/api/orders/x", headers=headers).status_code == 404
    assert "rcv_" not in _text(admin.get("/tokens"))

    post(admin, "/tokens/revoke", "/tokens", name="shop", reason="rotated")

    assert app.test_client().get("/api/orders/x", headers=headers).status_code == 401
    assert "revoked" in _text(admin.get("/tokens"))


@pytest.mark.parametrize(
    "fields", [{"name": "x"}, {"name": "", "scopes": ["metrics"]}, {"name": "x", "scopes": ["*"]}]
)
def test_a_token_that_cannot_be_is_a_sentence(sign_in: SignIn, fields: dict[str, Any]) -> None:
    """303 and why."""
    admin = sign_in("admin")
    assert post(admin, "/tokens", "/tokens", **fields).status_code == 303
    assert "Not made:" in _text(admin.get("/tokens"))
