"""`/alerts`: what is wrong and how it was told; somebody is on it."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.alert_settings import AlertSettings, Channel
from receiver.alerts.models import Alert, AlertNotice
from receiver.app import create_app
from receiver.web.gunicorn import post_worker_init, worker_exit
from tests.conftest import MakeDeps
from tests.factories import NOW, make_alert
from tests.running import wait_for
from tests.web.conftest import SignIn, fresh, post


def _notice(alert_id: int, **columns: object) -> AlertNotice:
    values = {
        "alert_id": alert_id,
        "turn": "opened",
        "level": "page",
        "channel": "CHAT_URL",
        "subject": "s",
        "body": "b",
        "created_at": NOW,
        "due_at": NOW,
        **columns,
    }
    return AlertNotice(**values)


def test_the_page_says_what_is_wrong_and_who_was_told(sign_in: SignIn, session: Session) -> None:
    """Open ones with what to do, how each was told, and those that are over; the status page leads there."""
    alert = make_alert(session)
    session.add(_notice(alert.id, state="told", told_at=NOW))
    session.add(_notice(alert.id, channel="MAIL_URL", attempts=3, last_error="error=503"))
    make_alert(session, kind="conflict", facts={"count": 2}, closed_at=NOW)
    session.commit()
    viewer = sign_in("viewer")

    page = viewer.get("/alerts").get_data(as_text=True)
    assert "demo: nothing received since 2026-03-01 11:00 UTC" in page
    assert "look at the provider" in page
    assert "opened, CHAT_URL: told" in page
    assert "waits, tried 3 times: error=503" in page
    assert "demo: 2 open conflicts" in page
    assert "I am on it" not in page
    status = viewer.get("/status").get_data(as_text=True)
    assert 'href="/alerts">Demo: nothing received' in status
    assert 'demo</a> <span class="level">stuck</span>' in status


def test_somebody_is_on_it(sign_in: SignIn, session: Session) -> None:
    """An operator says so with a reason; a viewer may not; what is over or unknown is 404."""
    alert = make_alert(session)
    over = make_alert(session, kind="drift", facts={"count": 1}, closed_at=NOW)
    session.commit()
    path = f"/alerts/{alert.id}/acknowledge"

    assert post(sign_in("viewer"), path, reason="x").status_code == 403
    operator = sign_in("operator", "olga")
    assert post(operator, path, reason="").status_code == 400
    assert post(operator, path, reason="asked the provider").status_code == 303
    assert fresh(session, alert).acknowledged_by == "olga"
    assert "alert.acknowledge" in operator.get("/audit").get_data(as_text=True)
    for number in (over.id, 2**63 - 1, 2**70):
        assert post(operator, f"/alerts/{number}/acknowledge", reason="x").status_code == 404


def test_channels_are_named_and_their_urls_are_not(make_deps: MakeDeps, sign_in: SignIn) -> None:
    """The page shows each channel's name alone."""
    chat = Channel("CHAT_URL", "json://127.0.0.1/hooks/t0ken")
    deps = make_deps(alerts=AlertSettings(channels=(chat, Channel("PAGER", "", pages=True))))
    client = sign_in("viewer")
    client.application.extensions["receiver"] = deps  # type: ignore[attr-defined]

    page = client.get("/alerts").get_data(as_text=True)
    assert ("CHAT_URL" in page, "PAGER" in page, "t0ken" in page) == (True, True, False)


def test_each_web_process_looks_at_the_workers(make_deps: MakeDeps) -> None:
    """gunicorn begins the look after the fork, and ends it with the process."""
    deps = make_deps(alerts=AlertSettings(look=timedelta(seconds=0.02)))
    process = SimpleNamespace(wsgi=create_app(deps))
    post_worker_init(process)

    def seen() -> list[str]:
        with deps.sessions() as session:
            return list(session.scalars(select(Alert.kind)))

    try:
        wait_for(lambda: seen() == ["no_worker"], 10, "the look saw that no worker is there")
    finally:
        worker_exit(None, process)
    thread = process.wsgi.extensions["worker_watch"]._thread
    wait_for(lambda: not thread.is_alive(), 10, "the look ended")
