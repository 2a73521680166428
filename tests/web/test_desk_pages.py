"""The desk's pages: causes, bulk replays, release and rejection, conflicts, rejections, lights, CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.deps import Deps
from receiver.inbox import bulk_replay
from receiver.inbox.bulk_replay import advance
from receiver.inbox.models import FailureGroup, WebhookEvent, WebhookFetch
from receiver.queue.models import BulkReplay
from receiver.web import replay_pages
from receiver.web.facts import compare_bodies
from tests.factories import (
    NOW,
    make_bulk_replay,
    make_conflict,
    make_event,
    make_order,
    make_pause,
    make_rejection,
    make_worker,
)
from tests.web.conftest import SignIn, fresh, post

GROUP = "/failures/group?source=demo&reason=amount&event_type=payment.succeeded&place=-"
OURS = "/replays/new?state=dead&source=demo&reason=amount"


def _text(response: object) -> str:
    return response.get_data(as_text=True)  # type: ignore[attr-defined]


def _dead(session: Session, count: int = 1, **columns: object) -> list[WebhookEvent]:
    events = [
        make_event(
            session,
            state="failed",
            order_reference="ord_r",
            amount_minor=2600,
            at=NOW - timedelta(minutes=10),
            **columns,
        )
        for _ in range(count)
    ]
    session.commit()
    return events


def test_failures_stand_by_cause(sign_in: SignIn, session: Session) -> None:
    """One line a cause with its count, and the events below; a narrower filter shows events alone."""
    _dead(session, 3)
    _dead(session, 2, reason="internal_error", failed_in="receiver.inbox.process:work")
    client = sign_in()

    page = _text(client.get("/failures"))

    assert "By cause" in page
    assert "receiver.inbox.process:work" in page
    assert "By cause" not in _text(client.get("/failures?reason=amount"))
    assert "By cause" in _text(client.get("/failures?source=demo&state=failed"))


def test_a_cause_is_explained_noted_and_resolved(sign_in: SignIn, session: Session) -> None:
    """What it means, what a replay would do; a note and a state, with the audit row."""
    _dead(session, 2)
    client = sign_in("operator", name="olga")
    page = _text(client.get(GROUP))
    assert "The event&#39;s amount is not the order&#39;s." in page
    assert "Nobody said anything yet" in page

    response = post(client, GROUP, GROUP, state="resolved", note="<b>wrong unit</b>", reason="repaired")

    assert response.status_code == 303
    page = _text(client.get(GROUP))
    assert "The cause is resolved. It opens again by itself" in page
    assert "&lt;b&gt;wrong unit&lt;/b&gt;" in page
    assert session.scalars(select(FailureGroup.state)).all() == ["resolved"]
    act = list_actions(session)[0]
    assert (act.actor, act.action, act.reason) == ("olga", "group.set", "repaired")


def test_a_resolved_cause_that_comes_back_says_so(sign_in: SignIn, session: Session) -> None:
    """It is open again on the page, by itself."""
    _dead(session)
    post(sign_in("operator"), GROUP, GROUP, state="resolved", note="", reason="x")
    make_event(session, state="failed", updated_at=NOW + timedelta(minutes=1))
    session.commit()
    assert "came back after it was resolved" in _text(sign_in().get(GROUP))


def test_a_viewer_reads_a_cause_and_says_nothing(sign_in: SignIn, session: Session) -> None:
    """No form, no link to a replay."""
    _dead(session)
    page = _text(sign_in("viewer").get(GROUP))
    assert "Needs the role operator" in page
    assert "Replay this group" not in page


def test_a_bulk_replay_counts_first_then_tries_dry(sign_in: SignIn, session: Session) -> None:
    """How many, what would become of them by outcome, and nothing written."""
    make_order(session, reference="ord_r")
    events = _dead(session, 3)
    make_event(session, state="failed", order_reference="ord_k", amount_minor=2500)
    make_order(session, reference="ord_k")
    session.commit()
    client = sign_in("admin")

    page = _text(client.get(OURS))
    assert "<b>4</b> dead letters match now" in page
    assert "Try it dry" in page
    dry = _text(client.get(f"{OURS}&dry=1"))

    assert "order 25.00 EUR, event 26.00 EUR" in dry
    assert "pending → paid" in dry
    assert f"/events/{events[0].id}" in dry
    assert {fresh(session, event).state for event in events} == {"failed"}
    assert session.scalars(select(BulkReplay)).all() == []


def test_a_bulk_replay_is_started_watched_cancelled_and_taken_up(
    sign_in: SignIn, session: Session, deps: Deps
) -> None:
    """Each a form and a sentence; the record tells the story."""
    events = _dead(session, 3)
    client = sign_in("admin", name="ada")

    response = post(
        client,
        "/replays?state=dead&source=demo&reason=amount",
        OURS,
        spread="0",
        limit="2",
        reason="the unit was repaired",
    )
    path = response.headers["Location"]
    assert "Started." in _text(client.get(path))
    post(client, f"{path}/cancel", path, reason="look first")
    assert "Cancelled. 0 went round again" in _text(client.get(path))
    advance(deps)
    assert {fresh(session, event).state for event in events} == {"failed"}
    post(client, f"{path}/resume", path, reason="go on")
    assert "Taken up again" in _text(client.get(path))
    advance(deps)
    advance(deps)

    page = _text(client.get(path))
    assert ">Done<" in page
    assert sorted(fresh(session, event).state for event in events) == ["failed", "pending", "pending"]
    assert path.rsplit("/", 1)[1] in _text(client.get("/replays"))
    acts = [act.action for act in list_actions(session)][:4]
    assert acts == ["bulk_replay.done", "bulk_replay.resume", "bulk_replay.cancel", "bulk_replay.start"]
    post(client, f"{path}/cancel", "/account", reason="late")
    assert "Not cancelled: the bulk replay is done" in _text(client.get(path))


def test_many_rows_want_an_announcement(
    sign_in: SignIn, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the limit the page says who will notice and asks who was told; without it nothing starts."""
    monkeypatch.setattr(bulk_replay, "ANNOUNCE_ABOVE", 2)
    monkeypatch.setattr(replay_pages, "ANNOUNCE_ABOVE", 2)
    _dead(session, 3)
    client = sign_in("admin")
    assert "others will notice" in _text(client.get(OURS))
    action = "/replays?source=demo&reason=amount"

    refused = post(client, action, OURS, spread="5", reason="x")
    assert "say who was told" in _text(client.get(refused.headers["Location"]))
    post(client, action, OURS, spread="5", reason="x", announcement="the shop's team, by chat")

    assert session.scalars(select(BulkReplay.announcement)).all() == ["the shop's team, by chat"]


@pytest.mark.parametrize(
    "query, fields, status",
    [
        ("state=processed", {"spread": "5"}, 400),
        ("state=dead", {"spread": "soon"}, 400),
        ("state=dead", {"spread": "5", "limit": "-1"}, 400),
        ("state=dead", {"spread": "99999"}, 303),
        ("state=dead&source=nobody", {"spread": "5"}, 303),
    ],
)
def test_a_bulk_replay_that_cannot_be_is_a_sentence(
    sign_in: SignIn, session: Session, query: str, fields: dict[str, str], status: int
) -> None:
    """Nothing starts."""
    _dead(session)
    client = sign_in("admin")
    assert post(client, f"/replays?{query}", "/account", reason="x", **fields).status_code == status
    assert session.scalars(select(BulkReplay)).all() == []


def test_a_running_replay_refreshes_and_a_done_one_does_not(sign_in: SignIn, session: Session) -> None:
    """The page tells the script how often to look."""
    running = make_bulk_replay(session)
    done = make_bulk_replay(session, state="done", finished_at=NOW, done=3000)
    session.commit()
    client = sign_in()
    page = _text(client.get(f"/replays/{running.id}"))
    assert 'data-refresh="2"' in page
    assert "To go, about" in page
    assert "Needs the role admin" in page
    assert 'data-refresh="0"' in _text(client.get(f"/replays/{done.id}"))


def test_an_admin_releases_what_one_check_refused(sign_in: SignIn, session: Session) -> None:
    """An amount below the order's: facts side by side, the check named, sent round with it waived."""
    make_order(session, reference="ord_low")
    event = make_event(session, state="failed", order_reference="ord_low", amount_minor=2000)
    session.commit()
    client, path = sign_in("admin"), f"/events/{event.id}"
    page = _text(client.get(path))
    assert "Event against order" in page
    assert "20.00 EUR" in page
    assert "skip one check" in page

    post(client, f"{path}/release", path, row_version="1", reason="a deposit was agreed")

    assert "Released:" in _text(client.get(path))
    assert (fresh(session, event).state, event.waived) == ("pending", ["amount"])


def test_what_no_release_may_skip_is_only_rejected(sign_in: SignIn, session: Session) -> None:
    """A currency is never released; a rejection takes the event out of the open ones."""
    make_order(session, reference="ord_x", currency="USD")
    event = make_event(session, state="failed", reason="currency", order_reference="ord_x")
    session.commit()
    client, path = sign_in("admin"), f"/events/{event.id}"
    assert "is never released" in _text(client.get(path))
    post(client, f"{path}/release", path, row_version="1", reason="x")
    assert "Not done: an event refused for currency is never released" in _text(client.get(path))

    post(client, f"{path}/reject", path, row_version="1", reason="the customer pays anew")

    assert "Rejected: the refusal stands" in _text(client.get(path))
    assert fresh(session, event).acknowledged_at is not None
    assert list_actions(session)[0].action == "event.reject"


def test_only_facts_that_refuse_are_marked(sign_in: SignIn, session: Session) -> None:
    """Amount and source differ here; the currency does not."""
    make_order(session, reference="ord_s", sources=["lesson"])
    event = make_event(session, state="failed", order_reference="ord_s", amount_minor=1)
    session.commit()
    page = _text(sign_in().get(f"/events/{event.id}"))
    marked = [part.split("<")[0].strip() for part in page.split('class="apart">')[1:]]
    rows = [part.split('<th scope="row">')[1].split(" <")[0] for part in page.split('class="apart"')[1:]]
    assert marked
    assert rows == ["Amount", "Source"]


def _conflict(session: Session, amount: int = 999) -> tuple[WebhookEvent, int]:
    data = {"order_id": "ord_1", "transaction_id": "tx_c", "amount": 2500, "currency": "EUR"}
    first = {"id": "evt_c", "type": "payment.succeeded", "data": data}
    second = {**first, "data": {**data, "amount": amount}}
    event = make_event(
        session,
        state="processed",
        provider_event_id="evt_c",
        transaction_id="tx_c",
        payload=json.dumps(first).encode(),
    )
    conflict = make_conflict(session, event, payload=json.dumps(second).encode())
    session.commit()
    return event, conflict.id


def test_a_conflict_shows_what_differs(sign_in: SignIn, session: Session) -> None:
    """Facts against facts and line against line; on the list and on /status."""
    make_worker(session)
    _, number = _conflict(session)
    client = sign_in()
    page = _text(client.get(f"/conflicts/{number}"))
    assert "9.99 EUR" in page
    assert '<span class="gone">-     &#34;amount&#34;: 2500' in page
    assert '<span class="come">+     &#34;amount&#34;: 999' in page
    assert "Needs the role admin" in page
    for path in ("/status", "/conflicts", "/conflicts?state=all&source=demo"):
        assert f"/conflicts/{number}" in _text(client.get(path))
    assert f"/conflicts/{number}" not in _text(client.get("/conflicts?state=released"))


def test_a_conflict_is_released_as_an_event_of_its_own(sign_in: SignIn, session: Session) -> None:
    """With the id of the first and eight digits of its hash; a second time is refused."""
    event, number = _conflict(session)
    client, path = sign_in("admin"), f"/conflicts/{number}"

    response = post(client, f"{path}/release", path, reason="the provider says the second is true")

    assert response.headers["Location"].startswith("/events/")
    assert "Released as an event of its own" in _text(client.get(response.headers["Location"]))
    ids = session.scalars(select(WebhookEvent.provider_event_id)).all()
    assert len([each for each in ids if each.startswith(f"{event.provider_event_id}#")]) == 1
    post(client, f"{path}/reject", "/account", reason="x")
    assert "Not rejected: the conflict is released already" in _text(client.get(path))


def test_a_conflict_is_rejected(sign_in: SignIn, session: Session) -> None:
    """It leaves the open ones, with who and why."""
    _, number = _conflict(session)
    client, path = sign_in("admin", name="ada"), f"/conflicts/{number}"
    post(client, f"{path}/reject", path, reason="a test of theirs")
    page = _text(client.get(path))
    assert "by ada: a test of theirs" in page
    assert "Decide" not in page
    assert "No open conflict" in _text(client.get("/conflicts"))


@pytest.mark.parametrize("body", [None, b"", b"\xff\xfe\x00", b"a=1&b=2", b"[" * 50_000, b"x\n" * 5_000])
def test_any_conflict_can_be_shown(sign_in: SignIn, session: Session, body: bytes | None) -> None:
    """No body, no text, forms, nested or long ones."""
    event = make_event(session, state="processed")
    digest = hashlib.sha256(body or b"").digest()
    conflict = make_conflict(session, event, payload=body, payload_sha256=digest)
    session.commit()
    assert sign_in().get(f"/conflicts/{conflict.id}").status_code == 200


def test_forms_are_compared_field_by_field() -> None:
    """A body on one line is no single difference."""
    lines = compare_bodies(b"a=1&b=2&c=3", b"a=1&b=9&c=3")
    assert lines is not None
    assert [(line.sign, line.text) for line in lines] == [
        (" ", "a=1"),
        ("-", "&b=2"),
        ("+", "&b=9"),
        (" ", "&c=3"),
    ]


def test_rejections_stand_with_their_skew(sign_in: SignIn, session: Session) -> None:
    """Counted by source and reason, with the middle of the measured skew and its bounds."""
    for skew, count in ((-420, 30), (-400, 9), (-380, 1)):
        make_rejection(
            session,
            reason="timestamp_too_old",
            count=count,
            skew_seconds=skew,
            remote_address=f"203.0.113.{count}",
        )
    make_rejection(session, count=5, minute=NOW - timedelta(days=2))
    session.commit()
    page = _text(sign_in().get("/rejections"))
    assert "<b>40</b>" in page
    assert "6 min behind" in page
    assert "from 7 min behind to 6 min behind" in page
    assert "<b>5</b>" not in page


@pytest.mark.field_case(136)
def test_an_authentic_unreadable_body_is_shown_as_text(sign_in: SignIn, session: Session) -> None:
    """The kept body escaped, its bytes as a download that no browser interprets."""
    body = b"</script><svg onload=alert(1)>\xff"
    kept = make_rejection(
        session, reason="not_json", payload=body, body_key="k", headers=[["A<b>", "<i>"]], length=len(body)
    )
    bare = make_rejection(session)
    session.commit()
    client = sign_in()
    page = _text(client.get(f"/rejections/{kept.id}"))
    assert "&lt;/script&gt;&lt;svg onload=alert(1)&gt;\\xff" in page
    assert "A&lt;b&gt;" in page
    download = client.get(f"/rejections/{kept.id}/payload")
    assert (download.data, download.mimetype) == (body, "application/octet-stream")
    assert client.get(f"/rejections/{bare.id}/payload").status_code == 404
    assert "Not kept" in _text(client.get(f"/rejections/{bare.id}"))
    assert f"/rejections/{kept.id}" in _text(client.get("/rejections?kept=1"))
    assert f"/rejections/{bare.id}" not in _text(client.get("/rejections?kept=1"))


def test_each_source_and_worker_has_its_light(sign_in: SignIn, session: Session) -> None:
    """Stuck, to be looked at, well: as words too, the worst first."""
    make_worker(session, name="deaf", last_seen_at=NOW - timedelta(minutes=7))
    make_worker(session, name="awake")
    _dead(session)
    make_pause(session, "standard")
    session.commit()
    page = _text(sign_in().get("/status"))
    lights = page.split('id="lights"')[1].split('id="pictures"')[0]
    levels = [part.split('"')[0] for part in lights.split('<li class="')[1:]]
    assert levels[:3] == ["red", "amber", "green"]
    assert "1 dead letter" in lights
    assert "paused for 0 s, nothing held" in lights
    assert "silent: seen 7 min ago" in lights


def test_changes_name_who_did_what(sign_in: SignIn, session: Session) -> None:
    """A pause of a minute ago stands among them; coming and going does not."""
    client = sign_in("operator", name="olga")
    post(client, "/sources/demo/pause", "/sources/demo", reason="x")
    changed = _text(client.get("/status")).split("What changed in the last hour")[1].split("</section>")[0]
    assert "olga: source pause, source:demo" in changed
    assert "sign in" not in changed


@pytest.mark.field_case(136)
def test_cells_of_an_export_are_neutral(sign_in: SignIn, session: Session) -> None:
    """Formulas get an apostrophe, markup is text of a file that is saved, never shown."""
    hostile = "=cmd|' /C calc'!A0"
    make_event(
        session,
        state="failed",
        provider_event_id=hostile,
        event_type="<img src=x onerror=alert(1)>",
        order_reference="+1",
        transaction_id=' @SUM(1)"',
        last_error="\t=1",
    )
    make_event(session, state="processed", provider_event_id="evt_ok")
    session.commit()
    response = sign_in().get("/events.csv?state=failed")

    assert response.mimetype == "text/csv"
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    (row,) = csv.DictReader(io.StringIO(_text(response), newline=""))
    assert row["provider_event_id"] == "'" + hostile
    assert row["event_type"] == "<img src=x onerror=alert(1)>"
    assert (row["order_reference"], row["transaction_id"]) == ("'+1", "' @SUM(1)\"")
    assert row["detail"] == "'\t=1"
    assert (row["amount"], row["amount_minor"]) == ("25.00 EUR", "2500")


def test_an_export_takes_every_page_of_a_list(sign_in: SignIn, session: Session) -> None:
    """More rows than a page of the list."""
    for _ in range(230):
        make_event(session, state="failed", payload=None)
    session.commit()
    assert len(_text(sign_in().get("/events.csv?state=dead")).splitlines()) == 231


def test_the_record_is_filtered(sign_in: SignIn, session: Session) -> None:
    """By who, by act, by what it was done on; the links lead there."""
    client = sign_in("operator", name="olga")
    post(client, "/sources/demo/pause", "/sources/demo", reason="one reason")
    post(client, "/sources/lesson/pause", "/sources/lesson", reason="another reason")
    for query in ("target=source:demo", "actor=olga&action=source.pause&target=source:demo"):
        page = _text(client.get(f"/audit?{query}"))
        assert "one reason" in page
        assert "another reason" not in page
    assert "No act matches" in _text(client.get("/audit?actor=nobody"))
    assert 'href="/sources/demo"' in _text(client.get("/audit"))


def test_what_the_provider_answered_is_shown_and_downloaded(sign_in: SignIn, session: Session) -> None:
    """The body that confirmed an event stands on its page, escaped, and comes down byte for byte."""
    event = make_event(session, state="processed")
    other = make_event(session, state="processed")
    body = b'{"status": "<script>alert(1)</script>", "bytes": "\xff"}'
    for kept in (body, None):
        session.add(WebhookFetch(event_id=event.id, fetched_at=NOW, status=200, body=kept))
    session.commit()
    client = sign_in()

    page = _text(client.get(f"/events/{event.id}"))
    assert "Read back from the provider" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "Erased with the payload." in page
    (path,) = re.findall(rf"/events/{event.id}/read-back/\d+", page)
    answer = client.get(path)
    assert answer.get_data() == body
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert client.get(path.replace(str(event.id), str(other.id))).status_code == 404
    assert "Read back from the provider" not in _text(client.get(f"/events/{other.id}"))
