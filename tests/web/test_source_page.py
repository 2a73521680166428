"""A source's page says how it is set up and when it last spoke, whatever its provider."""

from __future__ import annotations

from datetime import timedelta

from receiver.accounts.users import issue_sign_in_link
from receiver.app import create_app
from receiver.providers.registry import names
from receiver.settings import Secret, Source
from tests.conftest import NOW, MakeDeps
from tests.factories import make_event, make_rejection, make_user


def test_every_providers_source_has_a_page(make_deps: MakeDeps) -> None:
    """Last received, last rejected with reason and measured skew, and the active key ids; never a secret."""
    secrets = (Secret("env:NEW", "hidden-one"), Secret("env:OLD", "hidden-two"))
    deps = make_deps(sources={name: Source(name, name, secrets) for name in names()})
    with deps.sessions.begin() as session:
        make_user(session, name="vera", role="viewer")
        issue_sign_in_link(session, "vera", timedelta(minutes=10), "link", now=NOW)
        make_event(session, source="stripe", provider_event_id="evt_1", at=NOW - timedelta(minutes=3))
        for minutes, reason, skew in ((30, "signature", None), (2, "timestamp_too_old", -420)):
            minute = NOW - timedelta(minutes=minutes)
            make_rejection(session, source="stripe", reason=reason, skew_seconds=skew, minute=minute)
    client = create_app(deps).test_client()
    client.get("/sign-in/link")

    pages = {name: client.get(f"/sources/{name}") for name in names()}

    assert {name for name, page in pages.items() if page.status_code != 200} == set()
    texts = {name: page.get_data(as_text=True) for name, page in pages.items()}
    assert [name for name, text in texts.items() if "hidden-" in text] == []
    stripe = texts["stripe"]
    for shown in ("3 min ago", "2 min ago", "7 min", *(secret.key_id for secret in secrets)):
        assert shown in stripe
