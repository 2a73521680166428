"""The pages: each can be shown with anything in the database, and says what it must."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import pytest
from sqlalchemy.orm import Session

from receiver.web import status_page
from tests.conftest import MakeDeps
from tests.factories import NOW, make_event, make_minute, make_order, make_pause, make_rejection, make_worker
from tests.web.conftest import SignIn
from tests.web.showcase import HOSTILE, fill

PAGES = (
    "/status",
    "/events",
    "/failures",
    "/orders",
    "/sources",
    "/sources/demo",
    "/sources/lesson",
    "/audit",
    "/conflicts",
    "/rejections",
    "/alerts",
    "/events?expires_before=2026-03-02T12:00Z",
    "/replays",
    "/account",
    "/status?range=24h",
    "/status?range=7d",
    "/failures?state=failed&source=demo",
    "/events.csv",
)

ADMINS_PAGES = ("/users", "/tokens", "/replays/new")


@pytest.mark.parametrize("path", PAGES)
def test_each_page_can_be_shown_on_an_empty_database(sign_in: SignIn, path: str) -> None:
    """Nothing registered, nothing received: every page still says so."""
    response = sign_in("viewer").get(path)
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/")


@pytest.mark.parametrize("path", ADMINS_PAGES)
def test_pages_of_admins_are_not_everybodys(sign_in: SignIn, path: str) -> None:
    """An admin sees them on an empty database; an operator is refused."""
    assert sign_in("admin").get(path).status_code == 200
    assert sign_in("operator").get(path).status_code == 403


@pytest.mark.field_case(136)
def test_hostile_texts_are_shown_as_text(sign_in: SignIn, session: Session) -> None:
    """Ids, types, references and payloads with markup appear escaped on every page that shows them."""
    showcase = fill(session)
    client = sign_in("admin")
    for path in [*showcase.paths(), f"/orders/{quote(HOSTILE)}", f"/events?text={quote(HOSTILE)}"]:
        response = client.get(path)
        assert response.status_code in (200, 404), path
        page = response.get_data(as_text=True)
        assert "<img src=x" not in page, path
        assert "<svg onload" not in page, path
        assert "</script><" not in page, path
    assert "&lt;img src=x" in client.get(f"/events/{showcase.hostile.id}").get_data(as_text=True)


@pytest.mark.field_case(31)
@pytest.mark.parametrize(
    "path, status",
    [
        ("/status?q=%00&state=%00", 400),
        ("/events?state=%00", 400),
        ("/events?text=a%00b", 400),
        ("/events?unknown=%00", 400),
        ("/events?state=paid", 400),
        ("/events?source=" + "x" * 300, 400),
        ("/events?before=nonsense", 400),
        ("/events?from=yesterday", 400),
        ("/events?to=99999-01-01", 400),
        ("/events?parked=2", 400),
        ("/orders?state=odd", 400),
        ("/orders?reference=%00", 400),
        ("/orders/%00", 404),
        ("/orders/nowhere", 404),
        ("/order?reference=" + "x" * 300, 404),
        ("/order", 404),
        ("/events/nonsense", 404),
        ("/events/01900000-0000-7000-8000-000000000000", 404),
        ("/events/01900000-0000-7000-8000-000000000000/payload", 404),
        ("/sources/%00", 404),
        ("/sources/nobody", 404),
        ("/status?range=2h", 400),
        ("/conflicts?state=odd", 400),
        ("/conflicts?before=x", 400),
        ("/conflicts/1", 404),
        (f"/conflicts/{2**64}", 404),
        ("/conflicts/-1", 404),
        ("/rejections/1", 404),
        (f"/rejections/{2**64}", 404),
        ("/rejections/1/payload", 404),
        ("/rejections?source=%00", 400),
        ("/failures/group", 400),
        ("/failures/group?source=a&reason=b", 404),
        ("/replays/00000000-0000-0000-0000-000000000000", 404),
        ("/replays/nonsense", 404),
        ("/replays?before=nonsense", 400),
        ("/events.csv?state=odd", 400),
        ("/audit?actor=" + "x" * 300, 400),
        ("/login/oidc", 404),
        ("/login/oidc/answer?code=1&state=2", 404),
        ("/audit?before=-1", 400),
        ("/audit?before=" + "9" * 40, 400),
        ("/events?text=%ff%fe", 200),
        ("/events?text=%F0%9F%98%80", 200),
        ("/nowhere", 404),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(sign_in: SignIn, path: str, status: int) -> None:
    """400 for what cannot be asked, 404 for what is not there, never a 500."""
    assert sign_in().get(path).status_code == status


def test_the_status_page_says_what_differs(sign_in: SignIn, session: Session) -> None:
    """A refused amount stands on /status with both sides, and the lamp is red."""
    make_worker(session)
    make_event(
        session, state="failed", order_reference="ord_5", last_error="order 25.00 EUR, event 26.00 EUR"
    )
    session.commit()

    page = sign_in().get("/status").get_data(as_text=True)

    assert "order 25.00 EUR, event 26.00 EUR" in page
    assert "Money may be stuck" in page
    assert "/orders/ord_5" in page


def test_the_status_page_is_calm_when_all_is_well(sign_in: SignIn, session: Session) -> None:
    """Green, with a worker at work and nothing to do."""
    make_worker(session)
    make_event(session, state="processed")
    make_minute(session, result="applied", count=5)
    session.commit()
    page = sign_in().get("/status").get_data(as_text=True)
    assert "Money is moving" in page
    assert "something wants a look" not in page


@pytest.mark.field_case(121)
def test_the_status_page_names_rejections_and_pauses(sign_in: SignIn, session: Session) -> None:
    """Forty refused posts of one source and a pause with what it holds are sentences at the top."""
    make_worker(session)
    make_rejection(session, count=40, reason="signature")
    make_pause(session, "standard")
    make_event(session, source="standard")
    session.commit()
    page = sign_in().get("/status").get_data(as_text=True)
    assert "Source demo: 40 rejected in the last hour, signature." in page
    assert "Source standard is paused by olga: 1 held so far." in page


def test_a_source_without_a_secret_is_named(make_deps: MakeDeps, session: Session) -> None:
    """On /status and on its own page, with what happens to its callbacks."""
    from receiver.accounts.users import issue_sign_in_link
    from receiver.app import create_app
    from receiver.settings import Source
    from tests.factories import make_user

    bare = Source("bare", "demo", (), ("env:BARE_SECRET",))
    client = create_app(make_deps(sources={"bare": bare})).test_client()
    make_user(session)
    issue_sign_in_link(session, "olga", timedelta(minutes=1), "t", now=NOW)
    session.commit()
    client.get("/sign-in/t")
    for path in ("/status", "/sources/bare", "/sources"):
        assert "answered 503" in client.get(path).get_data(as_text=True)
    assert "env:BARE_SECRET" in client.get("/sources/bare").get_data(as_text=True)


def test_filters_live_in_the_query_string(sign_in: SignIn, session: Session) -> None:
    """The list shows what is asked, and its paging links carry the filter on."""
    for number in range(60):
        make_event(session, state="failed", provider_event_id=f"evt_f{number}")
    make_event(session, state="processed", provider_event_id="evt_other")
    session.commit()
    client = sign_in()
    page = client.get("/events?state=failed").get_data(as_text=True)
    assert "evt_other" not in page
    assert "evt_f59" in page
    assert "evt_f9<" not in page
    link = page.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert "state=failed" in link
    older = client.get(link).get_data(as_text=True)
    assert "evt_f9<" in older
    assert "evt_f59" not in older
    assert "evt_f59" in client.get("/failures").get_data(as_text=True)


def test_a_payload_comes_down_byte_for_byte(sign_in: SignIn, session: Session) -> None:
    """As a download that no browser interprets, whatever the bytes are."""
    body = b'\xef\xbb\xbf{"a":  1.10,\r\n"b":"\xff\x00<script>"}\r\n'
    event = make_event(session, payload=body)
    session.commit()
    client = sign_in()
    response = client.get(f"/events/{event.id}/payload")
    assert response.data == body
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert client.get(f"/events/{event.id}").status_code == 200


@pytest.mark.field_case(3)
@pytest.mark.field_case(37)
def test_a_payload_is_shown_readable_and_raw(sign_in: SignIn, session: Session) -> None:
    """Escaped and unescaped spellings read the same; numbers stay as written; NUL is shown escaped."""
    plain = make_event(session, payload='{"note":"Zoë ☕ 😀","n":1.10,"memo":"ab\\u0000cd"}'.encode())
    escaped = make_event(session, payload=b'{"note":"Zo\\u00eb \\u2615 \\ud83d\\ude00"}')
    session.commit()
    client = sign_in()
    page = client.get(f"/events/{plain.id}").get_data(as_text=True)
    assert "&#34;note&#34;: &#34;Zoë ☕ 😀&#34;" in page
    assert "1.10" in page
    assert "ab\\u0000cd" in page
    assert "&#34;note&#34;: &#34;Zoë ☕ 😀&#34;" in client.get(f"/events/{escaped.id}").get_data(as_text=True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":1,"a":2}',
        b'"\\ud800"',
        b"1e999999",
        b"9" * 6000,
        b"x" * 300_000,
    ],
)
def test_any_payload_can_be_shown(sign_in: SignIn, session: Session, body: bytes) -> None:
    """No stored bytes make a page that cannot be shown."""
    event = make_event(session, payload=None)
    from receiver.inbox.models import WebhookPayload
    from tests.factories import new_id

    payload = WebhookPayload(id=new_id(), payload=body, headers=[["A", "b"], "odd", ["c"]], received_at=NOW)
    session.add(payload)
    session.flush()
    event.payload_id = payload.id
    session.commit()
    assert sign_in().get(f"/events/{event.id}").status_code == 200


@pytest.mark.parametrize(
    "reference", ["shop/2026/17", "/lead", "a//b", "..", "a/../b", "q?x=1#y", "Zoë 100%", "trail/"]
)
def test_any_reference_has_its_page(sign_in: SignIn, session: Session, reference: str) -> None:
    """Slashes, dots and signs of URLs in a reference still lead to its order, by the page's own link."""
    make_order(session, reference=reference)
    session.commit()
    client = sign_in()
    listed = client.get("/orders").get_data(as_text=True)
    link = listed.split('class="mono ref" href="')[1].split('"')[0].replace("&amp;", "&")
    response = client.get(link)
    assert response.status_code == 200
    assert "registered" in response.get_data(as_text=True)


@pytest.mark.field_case(53)
def test_amounts_have_their_currencys_decimals(sign_in: SignIn, session: Session) -> None:
    """Three for dinar, none for yen."""
    make_order(session, reference="kwd", amount_minor=18600, currency="KWD")
    make_order(session, reference="jpy", amount_minor=500, currency="JPY")
    session.commit()
    page = sign_in().get("/orders").get_data(as_text=True)
    assert "18.600 KWD" in page
    assert "500 JPY" in page


def test_a_lesson_source_says_what_stops_replays(sign_in: SignIn) -> None:
    """Its timestamp is optional, so only de-duplication does."""
    assert "only de-duplication" in sign_in().get("/sources/lesson").get_data(as_text=True)
    assert "only de-duplication" not in sign_in().get("/sources/demo").get_data(as_text=True)


def test_secrets_stand_on_no_page(sign_in: SignIn, session: Session) -> None:
    """Key ids do; the secrets themselves never."""
    from tests.conftest import DEMO_SECRET, LESSON_SECRET, STANDARD_SECRET, sources

    fill(session)
    client = sign_in("admin")
    for name, secret in (("demo", DEMO_SECRET), ("lesson", LESSON_SECRET), ("standard", STANDARD_SECRET)):
        page = client.get(f"/sources/{name}").get_data(as_text=True)
        assert secret not in page
        assert sources()[name].secrets[0].key_id in page


def test_an_away_database_is_a_503_page(sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence and Retry-After, not a traceback."""
    from sqlalchemy.exc import OperationalError

    client = sign_in()

    def away(*_: object, **__: object) -> None:
        raise OperationalError("select 1", {}, Exception("connection lost"))

    monkeypatch.setattr(status_page, "read_status", away)
    response = client.get("/status")
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "5"
    assert "connection lost" not in response.get_data(as_text=True)
