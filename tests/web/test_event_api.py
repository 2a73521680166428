"""Replay by the API: a program may send dead letters round again, and not too many."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.inbox import replay as replays
from tests.factories import make_event
from tests.web.conftest import Token

REASON = {"reason": "the shop registered the order"}


def test_a_dead_letter_goes_round_again(client: FlaskClient, session: Session, token: Token) -> None:
    """202 with the pending event, and the record names token and reason; a second time it is not dead."""
    stored = make_event(session, state="failed")
    session.commit()
    head = token("events:replay")

    answer = client.post(f"/api/events/{stored.id}/replay", json=REASON, headers=head)
    again = client.post(f"/api/events/{stored.id}/replay", json=REASON, headers=head)

    assert answer.status_code == 202
    assert (answer.json["state"], answer.json["replays"], answer.json["receipt"]) == (
        "pending",
        1,
        str(stored.id),
    )
    assert (again.status_code, again.json["error"]["code"]) == (409, "not_failed")
    (act,) = list_actions(session)
    assert act.actor.startswith("token:")
    assert (act.action, act.reason) == ("event.replay", REASON["reason"])


@pytest.mark.parametrize("state", ["processed", "pending", "in_flight"])
def test_only_dead_letters(client: FlaskClient, session: Session, token: Token, state: str) -> None:
    """What was applied, waits or is worked is no program's to replay."""
    stored = make_event(session, state=state)
    session.commit()

    answer = client.post(f"/api/events/{stored.id}/replay", json=REASON, headers=token("events:replay"))

    assert (answer.status_code, answer.json["error"]["code"]) == (409, "not_failed")


def test_too_many_are_told_to_wait(
    client: FlaskClient, session: Session, token: Token, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the limit of a source 429 with Retry-After; another source has its own."""
    monkeypatch.setattr(replays, "take_allowance", lambda _session, _table, key, **_: key != "demo")
    first, other = make_event(session, state="failed"), make_event(session, state="failed", source="lesson")
    session.commit()
    head = token("events:replay")

    answer = client.post(f"/api/events/{first.id}/replay", json=REASON, headers=head)

    assert (answer.status_code, answer.json["error"]["code"]) == (429, "too_many_replays")
    assert answer.headers["Retry-After"] == "60"
    assert client.post(f"/api/events/{other.id}/replay", json=REASON, headers=head).status_code == 202


def test_an_unknown_receipt_and_a_missing_reason(client: FlaskClient, session: Session, token: Token) -> None:
    """404 and 422 by name."""
    stored = make_event(session, state="failed")
    session.commit()
    head = token("events:replay")
    unknown = "0196b7f6-0000-7000-8000-000000000000"

    assert client.post(f"/api/events/{unknown}/replay", json=REASON, headers=head).status_code == 404
    assert client.post(f"/api/events/{stored.id}/replay", json={}, headers=head).status_code == 422
