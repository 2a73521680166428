"""Signing in: password, one-time link, throttle, session life, and where it leads afterwards."""

from __future__ import annotations

from datetime import timedelta

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.accounts.users import create_user, disable_user, issue_sign_in_link, set_password
from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.web.access import SESSION_LIFETIME
from receiver.web.throttle import MAX_PER_ACCOUNT, MAX_PER_ADDRESS, WINDOW_SECONDS, SignInThrottle
from tests.conftest import NOW, MakeDeps
from tests.factories import new_id
from tests.web.conftest import SignIn, csrf_of, post

PASSWORD = "correct horse battery"


@pytest.fixture
def olga(deps: Deps) -> str:
    """A viewer with a password."""
    with deps.sessions.begin() as session:
        create_user(session, user_id=new_id(), name="olga", role="viewer", password=PASSWORD, now=NOW)
    return "olga"


def _enter(client: FlaskClient, password: str = PASSWORD, name: str = "olga", **fields: str) -> object:
    token = csrf_of(client, "/login")
    return client.post("/login", data={"csrf_token": token, "name": name, "password": password, **fields})


def test_a_password_lets_in_and_leads_on(client: FlaskClient, olga: str) -> None:
    """After signing in the page that was wanted is shown."""
    response = client.get("/events?state=failed")
    assert response.headers["Location"] == "/login?next=/events?state%3Dfailed"
    response = _enter(client, next="/events?state=failed")
    assert (response.status_code, response.headers["Location"]) == (303, "/events?state=failed")
    assert client.get("/status").status_code == 200


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x", "\n/x", ""]
)
def test_signing_in_never_leads_elsewhere(client: FlaskClient, olga: str, wanted: str) -> None:
    """An address outside this site is not followed."""
    assert _enter(client, next=wanted).headers["Location"] == "/status"


def test_a_wrong_password_and_an_unknown_name_get_the_same_answer(client: FlaskClient, olga: str) -> None:
    """Nobody learns which names exist."""
    wrong = _enter(client, password="wrong")
    unknown = _enter(client, name="nobody")
    assert wrong.status_code == unknown.status_code == 401
    assert "The name or the password is wrong." in wrong.get_data(as_text=True)
    assert "The name or the password is wrong." in unknown.get_data(as_text=True)


def test_guessing_is_slowed_down(client: FlaskClient, olga: str, clock: FixedClock) -> None:
    """After ten failures even the right password waits, for a quarter of an hour."""
    for _ in range(MAX_PER_ACCOUNT):
        assert _enter(client, password="wrong").status_code == 401
    assert _enter(client).status_code == 429
    clock.move(timedelta(seconds=WINDOW_SECONDS + 1))
    assert _enter(client).status_code == 303


def test_an_address_is_slowed_over_all_accounts() -> None:
    """Spraying one password over many names ends too; memory stays bounded."""
    throttle = SignInThrottle()
    for number in range(MAX_PER_ADDRESS):
        assert not throttle.is_slowed(f"user-{number}", "203.0.113.9", 100.0)
        throttle.failed(f"user-{number}", "203.0.113.9", 100.0)
    assert throttle.is_slowed("fresh", "203.0.113.9", 101.0)
    assert not throttle.is_slowed("fresh", "203.0.113.10", 101.0)


def test_a_link_signs_in_once(client: FlaskClient, app: Flask, deps: Deps, olga: str) -> None:
    """Opening it a second time, or looking with HEAD, lets nobody in."""
    with deps.sessions.begin() as session:
        issue_sign_in_link(session, olga, timedelta(minutes=5), "once", now=NOW)
    assert client.head("/sign-in/once").status_code == 405
    assert client.get("/sign-in/once").status_code == 303
    assert client.get("/status").status_code == 200
    other = app.test_client()
    assert other.get("/sign-in/once").status_code == 401
    assert other.get("/status").status_code == 302


def test_a_session_ends_after_twelve_hours(sign_in: SignIn, clock: FixedClock) -> None:
    """From the sign-in, also when it was used all the time."""
    client = sign_in()
    clock.move(SESSION_LIFETIME - timedelta(minutes=1))
    assert client.get("/status").status_code == 200
    clock.move(timedelta(minutes=2))
    assert client.get("/status").status_code == 302


@pytest.mark.parametrize("act", ["disable", "password"])
def test_a_shut_out_person_is_out_at_once(sign_in: SignIn, deps: Deps, act: str) -> None:
    """Disabling a user or changing the password ends open sessions."""
    client = sign_in("admin", name="ines")
    with deps.sessions.begin() as session:
        if act == "disable":
            disable_user(session, "ines", now=NOW)
        else:
            set_password(session, "ines", "another good password")
    assert client.get("/status").status_code == 302


def test_signing_out_ends_the_session(sign_in: SignIn, session: Session) -> None:
    """By POST alone; all of it stands in the record."""
    client = sign_in("viewer", name="vera")
    assert client.get("/logout").status_code == 405
    assert post(client, "/logout").status_code == 303
    assert client.get("/status").status_code == 302
    acts = [(row.actor, row.action) for row in list_actions(session)]
    assert acts == [("vera", "user.sign_out"), ("vera", "user.sign_in_link")]


@pytest.mark.parametrize("secure", [True, False])
def test_the_cookie_is_guarded(make_deps: MakeDeps, secure: bool) -> None:
    """HttpOnly and SameSite always; Secure as the settings say."""
    from receiver.app import create_app

    client = create_app(make_deps(cookie_secure=secure)).test_client()
    cookie = client.get("/login").headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert ("Secure" in cookie) == secure
