"""`receiver inbox release|reject`, `conflicts`, `rejections`, `audit` at the shell."""

from __future__ import annotations

import json

from receiver.deps import Deps
from receiver.inbox.models import WebhookEvent
from tests.cli.conftest import Shell, answered
from tests.factories import make_conflict, make_event, make_order, make_rejection

WHY = ("--reason", "the bank confirmed it")


def test_a_refused_event_is_released_and_another_rejected(shell: Shell, deps: Deps) -> None:
    """Asked for a yes; what is never released is code 1 with a sentence."""
    with deps.sessions.begin() as session:
        make_order(session, reference="o_1")
        low = make_event(session, state="failed", order_reference="o_1", amount_minor=100).id
        other = make_event(session, state="failed", reason="currency", provider_event_id="evt_usd").id

    assert shell("inbox", "release", str(low), *WHY, input="n\n").exit_code == 1
    released = answered(shell("inbox", "release", str(low), "--yes", *WHY, "--json"))
    assert (released["state"], released["waived"]) == ("pending", ["amount"])
    refused = shell("inbox", "release", "evt_usd", "--yes", *WHY)
    assert refused.exit_code == 1
    assert "never released" in refused.output
    assert "out of the list" in shell("inbox", "reject", "evt_usd", *WHY).stdout
    with deps.sessions() as session:
        assert session.get_one(WebhookEvent, other).acknowledged_at is not None
    acts = answered(shell("audit", "--json"))
    assert [(act["action"], act["reason"]) for act in acts] == [
        ("event.reject", WHY[1]),
        ("event.release", WHY[1]),
    ]


def test_conflicts_are_shown_released_and_rejected(shell: Shell, deps: Deps) -> None:
    """What differs is named; a release prints the new receipt; settled ones leave the list."""
    with deps.sessions.begin() as session:
        event = make_event(session, provider_event_id="evt_1", state="processed")
        bodies = [
            json.dumps(
                {"id": "evt_1", "type": "payment.succeeded", "data": {"order_id": "o", "amount": amount}}
            ).encode()
            for amount in (7, 8)
        ]
        first, second = (make_conflict(session, event, payload=body).id for body in bodies)

    listed = answered(shell("conflicts", "list", "--json"))
    assert [each["id"] for each in listed] == [second, first]
    shown = answered(shell("conflicts", "show", str(first), "--json"))
    assert shown["differing"]["amount_minor"] == {"event": 2500, "conflict": 7}
    assert "amount_minor" in shell("conflicts", "show", str(first)).stdout
    released = answered(shell("conflicts", "release", str(first), "--yes", *WHY, "--json"))
    assert released["provider_event_id"].startswith("evt_1#")
    assert shell("conflicts", "release", str(first), "--yes", *WHY).exit_code == 1
    assert answered(shell("conflicts", "reject", str(second), *WHY, "--json"))["state"] == "rejected"
    assert "no such conflicts" in shell("conflicts", "list").stdout
    assert "evt_1" in shell("conflicts", "list", "--state", "any").stdout
    assert shell("conflicts", "show", "4711").exit_code == 1


def test_rejections_are_shown_with_the_kept_body(shell: Shell, deps: Deps) -> None:
    """By source and reason with the measured skew; an authentic body comes out byte for byte."""
    body = b'{"id": broken \x1b[2J'
    with deps.sessions.begin() as session:
        late = make_rejection(session, reason="timestamp_too_old", skew_seconds=-900).id
        kept = make_rejection(
            session, reason="not_json", payload=body, body_key="ab", headers=[["A", "b"]]
        ).id

    assert [each["id"] for each in answered(shell("rejections", "list", "--json"))] == [kept, late]
    (one,) = answered(shell("rejections", "list", "--code", "timestamp_too_old", "--json"))
    assert one["skew_seconds"] == -900
    assert "-900 s" in shell("rejections", "list").stdout
    assert [each["id"] for each in answered(shell("rejections", "list", "--body", "--json"))] == [kept]
    assert shell("rejections", "show", str(kept), "--payload").stdout_bytes == body
    assert answered(shell("rejections", "show", str(kept), "--json"))["headers"] == [["A", "b"]]
    assert shell("rejections", "show", str(late), "--payload").exit_code == 1
    assert "yes" in shell("rejections", "show", str(kept)).stdout
    assert shell("rejections", "show", "4711").exit_code == 1


def test_the_record_is_filtered_and_paged(shell: Shell, deps: Deps) -> None:
    """By actor, action and target, and on from a number."""
    with deps.sessions.begin() as session:
        make_event(session, state="failed", provider_event_id="evt_1")
    for state in ("acknowledged", "resolved"):
        shell("inbox", "mark", "demo/amount/payment.succeeded/-", state, *WHY)
    acts = answered(shell("audit", "--json"))
    assert [act["criteria"]["state"] for act in acts] == ["resolved", "acknowledged"]
    before = answered(shell("audit", "--before", str(acts[0]["id"]), "--json"))
    assert [act["id"] for act in before] == [acts[1]["id"]]
    assert answered(shell("audit", "--actor", "nobody", "--json")) == []
    assert (
        len(answered(shell("audit", "--action", "group.set", "--target", acts[0]["target"], "--json"))) == 2
    )
    assert "group.set" in shell("audit").stdout
    assert shell("audit", "--actor", "a\x1bb").exit_code == 2
