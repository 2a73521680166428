"""Telling: over a real mail server and a real web hook; nothing is lost while one of them is down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from receiver.alert_settings import Channel
from receiver.alerts.channels import clean, send
from receiver.alerts.look import look, look_for_workers
from receiver.alerts.models import Alert, AlertNotice
from receiver.alerts.tell import LEASE, claim_notice, note, tell_due
from receiver.clock import FixedClock
from receiver.deps import Deps
from tests.alerts.mailbox import Hook, Mailbox, alert_settings, hook_server, mail_server
from tests.conftest import MakeDeps
from tests.factories import NOW, make_event, make_worker, new_id
from tests.running import wait_for, waiting_on_locks


@pytest.fixture
def box() -> Iterator[Mailbox]:
    """A mail server."""
    with mail_server() as box:
        yield box


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A web hook."""
    with hook_server() as hook:
        yield hook


@pytest.fixture
def told(make_deps: MakeDeps, box: Mailbox, hook: Hook) -> Deps:
    """A process whose alerts go to both, with an event that failed."""
    deps = make_deps(
        alerts=alert_settings(
            SUPPORT_EMAIL="support@shop.example",
            ALERT_FROM="receiver@shop.example",
            SMTP_URL=f"smtp://127.0.0.1:{box.port}",
            ALERT_URLS="env:CHAT_URL",
            CHAT_URL=hook.url,
            PUBLIC_URL="https://pay.example/",
            ALERT_RECOVERY_SECONDS="0",
        )
    )
    with deps.sessions.begin() as session:
        make_worker(session, last_seen_at=NOW + timedelta(days=1), last_tick_at=NOW + timedelta(days=1))
        make_event(
            session,
            state="failed",
            reason="amount",
            payload=b'{"card":"4111111111111111"}',
            provider_event_id="<img src=x>",
            last_error="pays 24.00 EUR, expected 25.00 EUR",
        )
    return deps


def notices(deps: Deps) -> list[AlertNotice]:
    with deps.sessions() as session:
        return list(session.scalars(select(AlertNotice).order_by(AlertNotice.id)))


def test_mail_and_chat_are_told(told: Deps, box: Mailbox, hook: Hook) -> None:
    """Both hear what, since when, why, what to do and where; and nothing that a stranger wrote."""
    look(told)
    assert tell_due(told) == 2
    assert tell_due(told) == 0

    assert box.subjects == ["[Receiver] demo: 1 dead letter needs a person (1 amount)"]
    (mail,) = box.mails
    assert (mail["To"], "receiver@shop.example" in mail["From"]) == ("support@shop.example", True)
    said = box.text()
    for part in (
        "Since: 2026-03-01 12:00:00 UTC",
        "Last reasons: amount",
        "What to do: find the reason",
        "https://pay.example/failures?source=demo",
        "https://pay.example/events/",
    ):
        assert part in said
    assert hook.posts[0]["title"] == box.subjects[0]
    for text in (said, str(hook.posts)):
        assert "4111" not in text
        assert "<img" not in text
        assert "24.00" not in text
    with told.sessions() as session:
        assert session.scalars(select(Alert.notified_at)).one() == NOW


@pytest.mark.field_case(135)
def test_a_channel_that_is_down_loses_nothing(
    told: Deps, box: Mailbox, hook: Hook, clock: FixedClock
) -> None:
    """The others are told; it is seen, without its token; back again, it takes all in their order."""
    hook.status = 503
    look(told)
    for _ in range(3):
        tell_due(told)
        clock.move(timedelta(minutes=1))
    waiting = [notice for notice in notices(told) if notice.state == "due"]
    assert [(notice.channel, notice.attempts) for notice in waiting] == [("CHAT_URL", 3)]
    assert "503" in (waiting[0].last_error or "")
    assert "t0ken" not in (waiting[0].last_error or "")
    assert len(box.mails) == 1

    look(told)
    tell_due(told)
    assert "alerts cannot be told over CHAT_URL: 1 waiting" in box.subjects[-1]

    with told.sessions.begin() as session:
        session.execute(AlertNotice.__table__.update().values(due_at=clock.at))
    hook.status = 200
    clock.move(timedelta(minutes=5))
    look(told)
    tell_due(told)
    clock.move(timedelta(minutes=1))
    look(told)
    clock.move(timedelta(minutes=1))
    look(told)
    tell_due(told)

    assert [post["title"] for post in hook.posts] == [box.subjects[0]]
    assert box.subjects[-1].startswith("[Receiver] over: alerts cannot be told over CHAT_URL")
    assert not [notice for notice in notices(told) if notice.state == "due"]


def test_a_channel_that_is_not_set_waits(make_deps: MakeDeps) -> None:
    """A variable that is not there is no fault of the start: its notices wait and say why."""
    deps = make_deps(alerts=alert_settings(ALERT_URLS="env:CHAT_URL"))
    look(deps)
    with deps.sessions.begin() as session:
        make_event(session, state="failed")
    look(deps)
    tell_due(deps)

    (notice,) = notices(deps)
    assert (notice.state, notice.last_error) == ("due", "the variable CHAT_URL is not set")
    silent = make_deps(alerts=alert_settings())
    tell_due(silent)
    assert [(n.state, n.last_error) for n in notices(deps)] == [
        ("dropped", "the channel is configured no more")
    ]


def test_a_notice_is_one_tellers_until_its_lease_ends(told: Deps, clock: FixedClock) -> None:
    """Two tellers never hold one; of one that vanished the next takes over."""
    look(told)

    def claim() -> str | None:
        with told.sessions.begin() as session:
            found = claim_notice(session, new_id(), ["CHAT_URL"], now=clock.now())
        return found.channel if found else None

    assert (claim(), claim()) == ("CHAT_URL", None)
    clock.move(LEASE)
    assert claim() == "CHAT_URL"


def test_telling_and_keeping_wait_in_one_order(told: Deps, database_url: str) -> None:
    """Who notes a telling waits for the alert before it touches the notice: no ring with who keeps it."""
    look(told)
    with told.sessions.begin() as session:
        notice = claim_notice(session, new_id(), ["CHAT_URL"], now=NOW)
    assert notice is not None

    def noted() -> None:
        with told.sessions.begin() as session:
            note(session, notice, None, now=NOW)

    with ThreadPoolExecutor(1) as pool:
        with told.sessions.begin() as keeper:
            keeper.execute(select(Alert).where(Alert.id == notice.alert_id).with_for_update())
            telling = pool.submit(noted)
            wait_for(lambda: waiting_on_locks(database_url) == 1, 10, "the teller waits for the alert")
            keeper.execute(AlertNotice.__table__.update().values(subject="kept"))
        telling.result(10)
    assert [row.state for row in notices(told) if row.channel == "CHAT_URL"] == ["told"]


KILLED = """\
import os, signal, sys
from datetime import UTC, datetime
from receiver.alerts.tell import tell_due
from receiver.alerts.channels import send
from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.settings import Settings
deps = Deps.build(Settings.from_env(os.environ), clock=FixedClock(datetime(2026, 3, 1, 12, 0, tzinfo=UTC)))
def sent_and_died(*arguments, **how):
    if sys.argv[1] == "after":
        assert send(*arguments, **how) is None
    os.kill(os.getpid(), signal.SIGKILL)
tell_due(deps, channel_send=sent_and_died)
"""


@pytest.mark.parametrize(("when", "mails"), [("before", 1), ("after", 2)])
def test_killed_between_commit_and_telling(
    told: Deps, box: Mailbox, clock: FixedClock, database_url: str, when: str, mails: int
) -> None:
    """A teller that is killed before it sent loses nothing; killed after, the notice is told again."""
    look(told)
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "DATABASE_URL": database_url,
        "SUPPORT_EMAIL": "support@shop.example",
        "SMTP_URL": f"smtp://127.0.0.1:{box.port}",
        "ALERT_URLS": "env:CHAT_URL",
        "RECEIVER_SOURCES": os.devnull,
    }
    # The chat's notice is the older one: its channel is not set there, so that the mail is the one killed in.
    with told.sessions.begin() as session:
        session.execute(
            AlertNotice.__table__.update().where(AlertNotice.channel == "CHAT_URL").values(state="dropped")
        )
    died = subprocess.run([sys.executable, "-c", KILLED, when], env=environ, timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL

    assert tell_due(told) == 0
    clock.move(LEASE)
    assert tell_due(told) == 1
    assert len(box.mails) == mails


def test_the_web_tells_that_no_worker_is_left(make_deps: MakeDeps, box: Mailbox, clock: FixedClock) -> None:
    """Web processes see it, one of them tells, and tells what else is due; a worker's return ends it."""
    alerts = alert_settings(
        SUPPORT_EMAIL="support@shop.example",
        SMTP_URL=f"smtp://127.0.0.1:{box.port}",
        ALERT_RECOVERY_SECONDS="0",
    )
    processes = [make_deps(alerts=alerts) for _ in range(3)]
    for seconds in (0, 20, 20, 20):
        clock.move(timedelta(seconds=seconds))
        for deps in processes:
            look_for_workers(deps)

    assert box.subjects == ["[Receiver] URGENT no worker is alive: events are stored, and nothing is applied"]
    with processes[0].sessions.begin() as session:
        make_worker(session, last_seen_at=clock.at, last_tick_at=clock.at)
    for deps in processes:
        look_for_workers(deps)
    tell_due(processes[0])
    assert box.subjects[1:] == [
        "[Receiver] over: no worker is alive: events are stored, and nothing is applied"
    ]


@pytest.mark.parametrize(
    "url",
    ["json://127.0.0.1:1/hooks/t0ken-of-ours", "mailto://someone:s3cret-word@127.0.0.1:1/?to=a@b.example"],
)
def test_errors_hold_nothing_of_the_url(url: str) -> None:
    """A channel that cannot be reached gives words without its token or password."""
    said = send(Channel("CHAT", url), "subject", "body", level="warn")

    assert said
    assert not {"t0ken", "s3cret", "someone"} & set(said.replace("-", " ").split())


def test_parts_of_a_url_are_cut() -> None:
    """What an error repeats of a channel's URL, decoded or not, is cut out; so is any other URL."""
    channel = Channel("CHAT", "slack://bot%40me:p4ssw0rd@T1JJ3T3L2/A1BRTD4JD/TIiajkdn/")
    said = clean("no T1JJ3T3L2/TIiajkdn for bot@me:p4ssw0rd, see https://x.example/?token=1", channel)

    assert said == "no [cut]/[cut] for [cut]:[cut], see [cut]"


def test_a_url_that_nobody_knows_is_said() -> None:
    """Neither an unknown scheme nor a broken URL ends in a trace."""
    assert send(Channel("CHAT", "nosuch://x"), "s", "b", level="warn") == "its URL is none that apprise knows"
    assert send(Channel("CHAT", ""), "s", "b", level="warn") == "the variable CHAT is not set"


def test_only_who_tells_loads_what_tells() -> None:
    """A web process that never tells does not pay for apprise: it is as large as the process itself."""
    code = "import sys, receiver.app, receiver.timetable; sys.exit('apprise' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
