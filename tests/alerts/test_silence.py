"""Silence is learnt from a source's own history: its rhythm, its nights, its weekends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import TextClause, insert, text
from sqlalchemy.orm import Session

from receiver.alert_settings import AlertSettings, Channel
from receiver.alerts import read
from receiver.alerts.look import look
from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox import silence
from receiver.inbox.models import InboxMinute
from receiver.inbox.silence import Silence, silent_sources
from tests.factories import NOW, make_worker

# NOW is a Sunday at noon (UTC); stories begin on the Monday before last.
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def speak(
    session: Session,
    source: str,
    until: datetime,
    *,
    every: timedelta,
    days: float = 14,
    when: Callable[[datetime], bool] = lambda _at: True,
    result: str = "new",
) -> None:
    """Let a source speak at a pace up to a time, where ``when`` says so."""
    at, rows = until - timedelta(days=days), []
    while at <= until:
        if when(at):
            rows.append({"source": source, "minute": at, "result": result, "count": 3})
        at += every
    session.execute(insert(InboxMinute), rows)


def silent(session: Session, now: datetime, *sources: str) -> list[str]:
    return [found.source for found in silent_sources(session, sources or ("acme",), now=now)]


def test_a_busy_source_gone_silent(session: Session) -> None:
    """Speaking every two minutes, silent for twenty: ten times its gap. Heard again, it is silent no more."""
    speak(session, "acme", NOW, every=2 * MINUTE)

    assert silent(session, NOW + 15 * MINUTE) == []
    assert silent_sources(session, ["acme"], now=NOW + 22 * MINUTE) == [Silence("acme", NOW, 10)]
    session.add(InboxMinute(source="acme", minute=NOW + 22 * MINUTE, result="duplicate", count=1))
    session.flush()
    assert silent(session, NOW + 24 * MINUTE) == []


def test_refused_posts_are_silence(session: Session) -> None:
    """A source whose every post is refused stores nothing: it is silent however loudly it knocks."""
    speak(session, "acme", NOW, every=2 * MINUTE)
    speak(session, "acme", NOW + HOUR, every=2 * MINUTE, days=0.04, result="rejected")

    assert silent(session, NOW + HOUR) == ["acme"]


def test_nights_and_weekends_are_no_silence(session: Session) -> None:
    """Who works on weekdays from 8 to 18 is missed on Monday morning, and not before."""

    def office(at: datetime) -> bool:
        return at.weekday() < 5 and 8 <= at.hour < 18

    friday = datetime(2026, 2, 27, 17, 55, tzinfo=NOW.tzinfo)
    speak(session, "acme", friday, every=5 * MINUTE, days=14, when=office)

    for hours in range(0, 62, 2):
        assert silent(session, friday + hours * HOUR) == [], f"{hours} h into the weekend"
    monday = datetime(2026, 3, 2, 8, 0, tzinfo=NOW.tzinfo)
    assert silent(session, monday + 30 * MINUTE) == []
    assert silent(session, monday + HOUR) == ["acme"]


def test_a_quiet_source_is_never_silent(session: Session) -> None:
    """One that speaks once a day is never told, however long it stays away."""
    speak(session, "acme", NOW, every=DAY)

    assert [hours for hours in range(0, 24 * 12, 6) if silent(session, NOW + hours * HOUR)] == []


def test_a_young_source_has_no_habits(session: Session) -> None:
    """Two days of history are asked for; then the days before are looked at, later the weeks."""
    speak(session, "acme", NOW, every=MINUTE, days=1.9)
    speak(session, "beta", NOW, every=MINUTE, days=3)

    assert silent(session, NOW + HOUR, "acme", "beta", "never-heard") == ["beta"]


def test_one_that_stays_silent_stays_in_the_list(session: Session) -> None:
    """A month later it is silent still: an alert of it must not end by itself."""
    speak(session, "acme", NOW, every=10 * MINUTE)

    assert silent(session, NOW + 30 * DAY) == ["acme"]


def test_the_rule_knows_minutes(session: Session) -> None:
    """The last minute in which it spoke may have ended just now: it counts as heard to its end."""
    speak(session, "acme", NOW, every=MINUTE, days=3)

    assert silent(session, NOW + 10 * MINUTE + timedelta(seconds=59)) == []
    assert silent(session, NOW + 11 * MINUTE) == ["acme"]


@pytest.mark.parametrize("statement", [silence._ENDS, silence._SPOKE, read._FAILING])
def test_history_is_read_by_the_sources_own_index(session: Session, statement: TextClause) -> None:
    """Never by the minutes of all sources: a look costs the same beside a hundred busy ones."""
    speak(session, "acme", NOW, every=MINUTE, days=3)
    session.execute(text("SET LOCAL enable_seqscan = off"))
    session.execute(text("ANALYZE inbox_minutes"))
    parameters = {
        "sources": ["acme"],
        "source": "acme",
        "now": NOW,
        "since": NOW - DAY,
        "until": NOW,
        "look_back": silence.LOOK_BACK,
        "times": 10,
    }
    plan = "\n".join(session.scalars(text(f"EXPLAIN {statement.text}"), parameters))

    assert "pk_inbox_minutes" in plan
    assert "ix_inbox_minutes_minute" not in plan


def test_three_weeks_with_one_outage_are_one_alert(deps: Deps, clock: FixedClock) -> None:
    """A shop that sells by day and rests at weekends, and one that never rests: an outage of five hours is
    told once for each with its recovery; nights, weekends and the week after the outage raise nothing.
    """
    monday = datetime(2026, 2, 16, tzinfo=NOW.tzinfo)
    outage = monday + 16 * DAY + 10 * HOUR
    lasts = 5 * HOUR

    def sells(at: datetime) -> bool:
        return at.weekday() < 5 and 8 <= at.hour < 20

    with deps.sessions.begin() as session:
        for source, every, when in (("demo", 4 * MINUTE, sells), ("lesson", 3 * MINUTE, lambda _at: True)):
            speak(
                session,
                source,
                monday + 28 * DAY,
                every=every,
                days=28,
                when=lambda at, when=when: when(at) and not outage <= at < outage + lasts,
            )
    alerts = AlertSettings(channels=(Channel("CHAT", ""),))
    process = replace(deps, settings=replace(deps.settings, alerts=alerts))
    clock.at = monday + 14 * DAY
    told = []
    while clock.at < monday + 26 * DAY:
        with deps.sessions.begin() as session:
            session.execute(text("DELETE FROM workers"))
            make_worker(session, last_seen_at=clock.at, last_tick_at=clock.at)
        told += [
            (one.turn.value, one.key, clock.at - outage) for one in look(process) if one.turn != "reminder"
        ]
        clock.move(30 * MINUTE if abs(clock.at - outage) < DAY else 2 * HOUR)

    assert sorted((turn, key) for turn, key, _ in told) == [
        ("opened", "demo"),
        ("opened", "lesson"),
        ("recovered", "demo"),
        ("recovered", "lesson"),
    ]
    assert all(after <= HOUR for turn, _, after in told if turn == "opened")
    assert all(lasts <= after <= lasts + HOUR for turn, _, after in told if turn == "recovered")


def test_a_silence_that_was_told_ends_by_a_word_alone(deps: Deps, clock: FixedClock) -> None:
    """Weeks later its history is forgotten: that is no recovery. Its next word is."""
    with deps.sessions.begin() as session:
        make_worker(session, last_seen_at=NOW + 99 * DAY, last_tick_at=NOW + 99 * DAY)
        speak(session, "demo", NOW, every=2 * MINUTE, days=3)
    clock.move(HOUR)
    told = [(one.turn.value, one.key) for one in look(deps)]
    for _ in range(3):
        clock.move(20 * DAY)
        with deps.sessions.begin() as session:
            session.execute(
                text("DELETE FROM inbox_minutes WHERE minute < :old"), {"old": clock.at - 35 * DAY}
            )
        told += [(one.turn.value, one.key) for one in look(deps) if one.turn != "reminder"]
    with deps.sessions.begin() as session:
        session.add(InboxMinute(source="demo", minute=clock.at, result="new", count=1))
    for _ in range(2):
        clock.move(5 * MINUTE)
        told += [(one.turn.value, one.key) for one in look(deps)]

    assert told == [("opened", "demo"), ("recovered", "demo")]
