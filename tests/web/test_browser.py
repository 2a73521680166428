"""The pages in a real browser: no scroll sideways on a phone, and every act without JavaScript.

Skipped where there is no Chromium. With SCREENSHOTS=<folder> each page is kept as a picture.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from sqlalchemy.orm import Session
from werkzeug.serving import make_server

from receiver.accounts.users import issue_sign_in_link
from receiver.deps import Deps
from receiver.inbox.models import WebhookEvent
from receiver.orders.find_orders import find_order
from receiver.queue.pauses import list_pauses
from tests.browsing import barriers, focus_unseen, keep, needs_browser, only_pictures, run_browser
from tests.factories import NOW, make_user
from tests.web.showcase import Showcase, fill

pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for this file."""
    with run_browser() as running:
        yield running


@pytest.fixture
def showcase(session: Session) -> Showcase:
    """Everything that a page can show."""
    return fill(session)


@pytest.fixture
def url(app: Flask) -> Iterator[str]:
    """The application behind a real socket."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(5)
    server.server_close()


def _enter(browser: Any, deps: Deps, url: str, *, role: str = "admin", **context: Any) -> Any:
    """A page signed in by a one-time link, with JavaScript off."""
    with deps.sessions.begin() as session:
        make_user(session, name=f"{role}-person", role=role)
        issue_sign_in_link(session, f"{role}-person", timedelta(minutes=5), "one-time", now=NOW)
    page = browser.new_context(**{"java_script_enabled": False, **context}).new_page()
    page.goto(f"{url}/sign-in/one-time")
    assert page.url == f"{url}/status"
    return page


@pytest.mark.parametrize(
    "width, scheme",
    [
        (360, "light"),
        (900, "light"),
        (1280, "light"),
        pytest.param(360, "dark", marks=only_pictures),
        pytest.param(1280, "dark", marks=only_pictures),
    ],
)
def test_no_page_scrolls_sideways(
    browser: Any, deps: Deps, url: str, showcase: Showcase, width: int, scheme: str
) -> None:
    """At the width of a phone and of a desk, each page with long and hostile texts stays inside it."""
    page = _enter(
        browser,
        deps,
        url,
        viewport={"width": width, "height": 800},
        color_scheme=scheme,
        java_script_enabled=True,
    )
    alerts: list[str] = []
    refused: list[str] = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: refused.append(message.text) if message.type == "error" else None)
    for path in [*showcase.paths(), "/login"]:
        if path == "/login":
            page.context.clear_cookies()
        page.goto(url + path)
        keep(page, f"{scheme}-{width}-{path}")
        for details in page.query_selector_all("details"):
            details.evaluate("element => element.open = true")
        inside = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert inside, f"{path} scrolls sideways at {width} px"
    assert alerts == [], "a stored text ran as script"
    assert [text for text in refused if "Content Security Policy" in text] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_come_in_both_schemes(
    browser: Any, deps: Deps, url: str, showcase: Showcase, scheme: str
) -> None:
    """A dark desk gets a dark page; in both every text stands out, every field and act has a name."""
    page = _enter(browser, deps, url, color_scheme=scheme, java_script_enabled=True)
    for path in showcase.paths():
        page.goto(url + path)
        assert barriers(page) == [], path
    page.goto(f"{url}/status")
    keep(page, f"{scheme}-status")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in colour[4:-1].split(",")) < 3 * 128) == (scheme == "dark")


def test_the_keyboard_alone_finds_and_replays(browser: Any, deps: Deps, url: str, showcase: Showcase) -> None:
    """From the first Tab, which offers the content, to the replayed event: the focus is always seen."""
    page = _enter(browser, deps, url, role="operator")
    page.goto(f"{url}/failures")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#content"
    assert focus_unseen(page, 40) == []
    page.goto(f"{url}/events/{showcase.refused.id}")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('form[action$=replay]') !== null"):
            break
    page.keyboard.type("repaired")
    page.keyboard.press("Enter")
    page.wait_for_selector(".flash.good")
    with deps.sessions() as session:
        assert session.get_one(WebhookEvent, showcase.refused.id).replays == 2


def test_an_operator_replays_without_javascript(
    browser: Any, deps: Deps, url: str, showcase: Showcase, session: Session
) -> None:
    """From the status page to the refused event, a reason, a click: it goes round again."""
    page = _enter(browser, deps, url, role="operator")
    page.click("text=evt_2001")
    page.fill("form.act input[name=reason]", "the order was corrected")
    page.click("form.act button")
    assert "Sent round again" in page.text_content("main")
    session.rollback()
    event = session.get(WebhookEvent, showcase.refused.id, populate_existing=True)
    assert event is not None
    assert (event.state, event.replays) == ("pending", 2)


def test_an_admin_corrects_cancels_and_pauses_without_javascript(
    browser: Any, deps: Deps, url: str, showcase: Showcase, session: Session
) -> None:
    """Each act is a plain form that ends in a sentence."""
    page = _enter(browser, deps, url)
    page.goto(f"{url}/orders/ord_2001")
    page.fill("input[name=amount]", "26.00")
    page.fill("form:has(input[name=amount]) input[name=reason]", "registered too low")
    page.click("text=Correct the order")
    assert "Corrected." in page.text_content("main")
    page.fill("form:has(button.danger) input[name=reason]", "the customer changed their mind")
    page.click("button.danger")
    assert "Cancelled." in page.text_content("main")
    page.goto(f"{url}/sources/demo")
    page.fill("form.act input[name=reason]", "maintenance at the provider")
    page.click("text=Pause demo")
    assert "Paused." in page.text_content("main")
    page.fill("form.act input[name=reason]", "they are back")
    page.click("text=Resume demo")
    assert "Resumed;" in page.text_content("main")
    page.click("text=Sign out")
    assert "signed out" in page.text_content("main")

    session.rollback()
    order = find_order(session, "ord_2001")
    assert order is not None
    assert (order.amount_minor, order.state) == (2600, "cancelled")
    assert [pause.key for pause in list_pauses(session)] == ["standard"]
