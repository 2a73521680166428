"""The operator's desk in a real browser, over the shipped web server and a real worker.

* from the status page to the cause, the order corrected, the one event replayed and applied
* a cause tried dry, replayed in bulk, cancelled midway, and sent again at once
* a source paused and resumed; a payment below the order's amount released
* a viewer sees all of it and may do none of it
* the status page refreshes itself and keeps the place; the local time stands on hover
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from receiver.accounts.users import issue_sign_in_link
from receiver.db import make_engine, make_sessions
from receiver.embedded import EmbeddedPostgres
from receiver.inbox.correct_order import correct_order
from receiver.inbox.models import WebhookEvent
from receiver.orders.find_orders import find_order
from tests.browsing import needs_browser, run_browser
from tests.factories import make_event, make_order, make_user
from tests.running import Web, new_database, run_web, run_worker, wait_for

pytestmark = [pytest.mark.slow, needs_browser]

_numbers = itertools.count(1)


class Desk:
    """A running service, its database, and a browser before it."""

    def __init__(self, web: Web, browser: Any, sessions: sessionmaker[Session]) -> None:
        self.url, self.browser, self.sessions = web.url, browser, sessions

    def enter(self, role: str, **context: Any) -> Any:
        """A page of somebody who signed in by a one-time link."""
        name = f"{role}-{next(_numbers)}"
        with self.sessions.begin() as session:
            make_user(session, name=name, role=role)
            issue_sign_in_link(session, name, timedelta(minutes=10), f"link-of-{name}")
        page = self.browser.new_context(**context).new_page()
        page.set_default_timeout(15_000)
        page.goto(f"{self.url}/sign-in/link-of-{name}")
        assert page.url == f"{self.url}/status"
        return page

    def refused(self, reference: str, **columns: Any) -> WebhookEvent:
        """An event that was refused a minute ago."""
        at = datetime.now(UTC) - timedelta(minutes=1)
        with self.sessions.begin() as session:
            return make_event(session, state="failed", order_reference=reference, at=at, **columns)

    def order(self, reference: str, **columns: Any) -> None:
        """A registered order."""
        with self.sessions.begin() as session:
            make_order(session, reference=reference, at=datetime.now(UTC), **columns)

    def states(self, events: list[WebhookEvent]) -> list[str]:
        """The events' states now."""
        with self.sessions() as session:
            return [session.get_one(WebhookEvent, event.id).state for event in events]

    def order_state(self, reference: str) -> str:
        """An order's state now."""
        with self.sessions() as session:
            order = find_order(session, reference)
            assert order is not None
            return order.state


@pytest.fixture(scope="module")
def desk(server: EmbeddedPostgres) -> Iterator[Desk]:
    """Web, worker and browser of this file."""
    with ExitStack() as stack:
        url = stack.enter_context(new_database(server))
        web = stack.enter_context(run_web(url, environment={"COOKIE_SECURE": "0"}))
        stack.enter_context(run_worker(url, environment={}))
        browser = stack.enter_context(run_browser())
        engine = make_engine(url)
        stack.callback(engine.dispose)
        yield Desk(web, browser, make_sessions(engine))


def test_find_correct_and_replay_one(desk: Desk) -> None:
    """Filter, open, correct the order, replay: the event is applied and the order paid."""
    desk.order("ord_one")
    event = desk.refused("ord_one", amount_minor=2600, last_error="order 25.00 EUR, event 26.00 EUR")
    page = desk.enter("admin")

    page.click("nav >> text=Events")
    page.select_option("select[name=state]", "failed")
    page.fill("input[name=order_reference]", "ord_one")
    page.click("button:has-text('Filter')")
    assert "order_reference=ord_one" in page.url
    page.click(f"text={event.provider_event_id}")
    against = page.text_content("#against")
    assert re.search(r"Amount\s+differs\s+26.00 EUR\s+25.00 EUR", against)

    page.click("main >> text=ord_one >> nth=0")
    page.fill("input[name=amount]", "26.00")
    page.fill("form:has(input[name=amount]) input[name=reason]", "registered too low")
    page.click("text=Correct the order")
    assert "1 refused event may be replayed" in page.text_content("main")
    page.goto(f"{desk.url}/events/{event.id}")
    assert "pending → paid" in page.text_content("#replay")
    page.fill("#replay input[name=reason]", "the order was corrected")
    page.click("#replay button")
    assert "Sent round again" in page.text_content("main")

    wait_for(lambda: desk.order_state("ord_one") == "paid", 20)
    page.goto(f"{desk.url}/audit?target=event:{event.id}")
    assert "the order was corrected" in page.text_content("main")


def test_a_cause_is_replayed_in_bulk_and_cancelled(desk: Desk) -> None:
    """Dry it is refused again, after the repair applied; slow it is cancelled, at once it ends done."""
    references = [f"bulk_{number}" for number in range(40)]
    events = []
    for reference in references:
        desk.order(reference, currency="USD")
        events.append(desk.refused(reference, reason="currency"))
    page = desk.enter("admin")
    page.click("nav >> text=Failures")
    page.click("#groups >> text=currency")
    assert "Was the order registered in the right currency?" in page.text_content("main")
    page.select_option("select[name=state]", "acknowledged")
    page.fill("textarea[name=note]", "the shop's setting said USD")
    page.fill("input[name=reason]", "seen")
    page.click("text=Save")
    assert "The cause is acknowledged." in page.text_content("main")

    page.click("text=Replay this group")
    assert "40 dead letters match now" in page.text_content("main")
    page.click("text=Try it dry")
    assert re.search(r"40\s+failed\s+currency", page.text_content("#dry"))
    with desk.sessions.begin() as session:
        for reference in references:
            correct_order(session, reference, currency="EUR", actor="journey", reason="repaired")
    page.reload()
    assert re.search(r"40\s+applied", page.text_content("#dry"))

    page.fill("input[name=reason]", "the setting was repaired")
    page.fill("input[name=spread]", "60")
    page.click("text=Start the replay")
    assert "Running" in page.text_content("#progress")
    page.fill("#act-running input[name=reason]", "at once instead")
    page.click("text=Cancel the replay")
    assert "Cancelled" in page.text_content("#progress")
    assert desk.states(events).count("failed") >= 38

    page.click("text=What is still dead under this filter")
    page.click("text=Replay all under this filter")
    page.fill("input[name=reason]", "the rest at once")
    page.fill("input[name=spread]", "0")
    page.click("text=Start the replay")
    page.wait_for_selector("#progress h2:has-text('Done')", timeout=20_000)
    wait_for(lambda: set(desk.states(events)) == {"processed"}, 60, "every event is worked")
    assert {desk.order_state(reference) for reference in references} == {"paid"}


def test_a_source_is_paused_and_resumed(desk: Desk) -> None:
    """What comes meanwhile is held, and seen; resumed it is worked."""
    page = desk.enter("operator")
    page.click("nav >> text=Sources")
    page.click("main >> text=beta")
    page.fill("form.act input[name=reason]", "their maintenance")
    page.click("text=Pause beta")
    desk.order("ord_held")
    with desk.sessions.begin() as session:
        event = make_event(session, source="beta", order_reference="ord_held", at=datetime.now(UTC))
    page.goto(f"{desk.url}/status")
    assert re.search(r"beta\s*look\s*paused for .*1 held", page.text_content("#lights"))
    assert desk.states([event]) == ["pending"]

    page.goto(f"{desk.url}/sources/beta")
    page.fill("form.act input[name=reason]", "they are back")
    page.click("text=Resume beta")
    assert "Resumed; 1 held event released" in page.text_content("main")
    wait_for(lambda: desk.states([event]) == ["processed"], 45)


def test_a_mismatch_is_released(desk: Desk) -> None:
    """An agreed deposit: the admin waives the amount, and the order is partially paid."""
    desk.order("ord_deposit")
    event = desk.refused("ord_deposit", amount_minor=1000)
    page = desk.enter("admin")
    page.goto(f"{desk.url}/events/{event.id}")
    page.fill("#settle form:has-text('releasing') input[name=reason]", "a deposit was agreed")
    page.click("#settle button:has-text('Release')")
    assert "Released:" in page.text_content("main")
    wait_for(lambda: desk.order_state("ord_deposit") == "partially_paid", 20)


def test_a_viewer_sees_and_may_not(desk: Desk) -> None:
    """No act is offered, and one that is sent anyway is refused."""
    desk.order("ord_seen")
    event = desk.refused("ord_seen", amount_minor=1)
    page = desk.enter("viewer")
    page.goto(f"{desk.url}/events/{event.id}")
    assert "Needs the role operator" in page.text_content("#replay")
    assert page.query_selector("main form") is None
    token = page.get_attribute("input[name=csrf_token]", "value")
    for path in (f"/events/{event.id}/release", f"/events/{event.id}/replay", "/replays?source=demo"):
        fields = {"csrf_token": token, "reason": "x", "row_version": "1", "spread": "0"}
        answer = page.request.post(f"{desk.url}{path}", form=fields, headers={"Referer": desk.url})
        assert answer.status == 403, path
    for path in ("/users", "/tokens", "/replays/new"):
        assert page.request.get(f"{desk.url}{path}").status == 403
    assert desk.states([event]) == ["failed"]


def test_the_status_page_refreshes_and_keeps_the_place(desk: Desk) -> None:
    """A new dead letter appears by itself; focus, scroll and what was opened stay; a hidden tab rests."""
    page = desk.enter("viewer", viewport={"width": 900, "height": 500}, timezone_id="Asia/Dhaka")
    page.clock.install()
    page.reload()
    page.focus("nav[aria-label='How far back'] >> text=7d")
    before = page.evaluate("scrollY")
    event = desk.refused("ord_sudden", amount_minor=1, provider_event_id="evt_sudden")
    page.clock.run_for(16_000)
    page.wait_for_selector(f"#dead >> text={event.provider_event_id}")
    assert page.evaluate("document.activeElement.textContent") == "7d"
    assert abs(page.evaluate("scrollY") - before) < 5

    page.hover("#verdict time")
    assert "local" in page.get_attribute("#verdict time", "title")

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true})")
    page.evaluate("window.away = true")
    page.clock.run_for(120_000)
    assert asked == []
    with page.expect_request("**/status"):
        page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
