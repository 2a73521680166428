"""An application on the test's database, and clients signed in as each role."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from receiver.accounts.tokens import create_token
from receiver.accounts.users import issue_sign_in_link
from receiver.app import create_app
from receiver.deps import Deps
from tests.conftest import NOW
from tests.factories import make_user, new_id

SignIn = Callable[[str], FlaskClient]
Token = Callable[..., dict[str, str]]

_numbers = itertools.count(1)


@pytest.fixture
def app(deps: Deps) -> Flask:
    """The whole application of one process."""
    app = create_app(deps)
    app.testing = False
    return app


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """Somebody who is not signed in."""
    return app.test_client()


@pytest.fixture
def sign_in(app: Flask, deps: Deps) -> SignIn:
    """A client signed in as a role, through a one-time link as people are."""

    def enter(role: str = "viewer", name: str | None = None) -> FlaskClient:
        name = name or f"{role}-{next(_numbers)}"
        with deps.sessions.begin() as session:
            make_user(session, name=name, role=role)
            issue_sign_in_link(session, name, timedelta(minutes=10), f"link-of-{name}", now=NOW)
        client = app.test_client()
        assert client.get(f"/sign-in/link-of-{name}").status_code == 303
        return client

    return enter


@pytest.fixture
def token(deps: Deps) -> Token:
    """Headers with a bearer token of the given scopes."""

    def make(*scopes: str) -> dict[str, str]:
        token_id = new_id()
        with deps.sessions.begin() as session:
            text = create_token(
                session, token_id=token_id, name=f"t-{next(_numbers)}", scopes=scopes, now=NOW
            )
        return {"Authorization": f"Bearer {text}"}

    return make


def csrf_of(client: FlaskClient, path: str) -> str:
    """The form token of a page."""
    page = client.get(path).get_data(as_text=True)
    match = re.search(r'name="csrf_token" value="([^"]+)"', page)
    assert match, f"{path} has no form"
    return match[1]


def post(client: FlaskClient, path: str, page: str = "/status", **fields: Any) -> Any:
    """Post a form as a browser would, with the token of ``page``."""
    return client.post(path, data={"csrf_token": csrf_of(client, page), **fields})


def fresh(session: Session, row: Any) -> Any:
    """The row as it is in the database now."""
    session.rollback()
    session.expire_all()
    session.refresh(row)
    return row
