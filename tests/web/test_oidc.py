"""Signing in at an OpenID Connect issuer: who may enter, as whom, in which role; and who may not."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import requests
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.accounts.users import disable_user, find_user_named
from receiver.app import create_app
from receiver.settings import Settings, SettingsError
from tests.conftest import MakeDeps
from tests.factories import make_user
from tests.web.issuer import Issuer, run_issuer

pytest.importorskip("authlib", reason="the extra `oidc` brings Authlib")


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An issuer that knows ada, an operator."""
    with run_issuer() as running:
        running.claims = {"sub": "s-1", "preferred_username": "ada", "roles": ["staff", "operator"]}
        yield running


@pytest.fixture
def client(make_deps: MakeDeps, issuer: Issuer) -> FlaskClient:
    """A browser before an application that trusts the issuer."""
    deps = make_deps(oidc_issuer=issuer.url, oidc_client_id="receiver", oidc_client_secret="hush")
    return create_app(deps).test_client()


def _walk(client: FlaskClient) -> str:
    """To the issuer and back: the path and query with which the browser comes back."""
    away = client.get("/login/oidc")
    assert away.status_code == 302
    back = requests.get(away.headers["Location"], allow_redirects=False, timeout=5)
    parts = urlsplit(back.headers["Location"])
    return f"{parts.path}?{parts.query}"


def test_a_person_of_the_issuer_enters(client: FlaskClient, issuer: Issuer, session: Session) -> None:
    """With the role of the claim, under their name, bound to the subject, and on the record."""
    assert issuer.url.split("//")[1] in client.get("/login").get_data(as_text=True)

    response = client.get(_walk(client))

    assert (response.status_code, response.headers["Location"]) == (303, "/status")
    assert "ada" in client.get("/status").get_data(as_text=True)
    user = find_user_named(session, "ada")
    assert (user.role, user.oidc_subject, user.password_hash) == ("operator", f"{issuer.url} s-1", None)
    assert list_actions(session)[0].action == "user.sign_in_oidc"


def test_the_role_follows_the_claim(client: FlaskClient, issuer: Issuer, session: Session) -> None:
    """A later sign-in with another role sets it; without a role nobody enters."""
    client.get(_walk(client))
    issuer.claims["roles"] = "viewer"
    client.get(_walk(client))
    assert find_user_named(session, "ada").role == "viewer"

    issuer.claims["roles"] = ["staff", "customer"]
    refused = client.get(_walk(client))
    assert refused.status_code == 401
    assert "names no role" in refused.get_data(as_text=True)


def test_a_local_name_is_never_taken_over(client: FlaskClient, session: Session) -> None:
    """The issuer's ada is not the local ada."""
    make_user(session, name="ada", role="admin")
    session.commit()

    refused = client.get(_walk(client))

    assert refused.status_code == 401
    assert "local user has this name" in refused.get_data(as_text=True)
    assert client.get("/status").status_code == 302


def test_a_disabled_user_stays_out(client: FlaskClient, session: Session) -> None:
    """Whatever the issuer says."""
    client.get(_walk(client))
    disable_user(session, "ada")
    session.commit()
    refused = client.get(_walk(client))
    assert refused.status_code == 401
    assert "disabled" in refused.get_data(as_text=True)


@pytest.mark.parametrize("fault", ["forge", "audience", "state", "code", "nothing"])
def test_a_wrong_answer_is_refused(client: FlaskClient, issuer: Issuer, fault: str) -> None:
    """Another key, another audience, another session's state, a used code, no answer at all: 401."""
    if fault == "forge":
        issuer.forge = True
    if fault == "audience":
        issuer.audience = "somebody-else"
    back = _walk(client)
    if fault == "state":
        back = back.replace("state=", "state=x")
    if fault == "code":
        issuer.codes.clear()
    if fault == "nothing":
        back = "/login/oidc/answer"

    assert client.get(back).status_code == 401
    assert client.get("/status").status_code == 302


def test_an_issuer_that_is_away_is_a_sentence(make_deps: MakeDeps) -> None:
    """503, and the password form beside it."""
    deps = make_deps(oidc_issuer="http://127.0.0.1:9", oidc_client_id="receiver", oidc_client_secret="hush")
    response = create_app(deps).test_client().get("/login/oidc")
    assert response.status_code == 503
    assert "issuer does not answer" in response.get_data(as_text=True)


def test_settings_of_an_issuer_are_whole(tmp_path: object) -> None:
    """An issuer over plain http, or without id and secret, is a fault of the start."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"DATABASE_URL": "postgresql:///x", "OIDC_ISSUER": "http://id.example"})
    assert [fault[:11] for fault in caught.value.faults] == ["OIDC_ISSUER", "OIDC_ISSUER"]
