"""Silence is learnt from a source's own history: its rhythm, its nights, its weekends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import TextClause, insert, text
from sqlalchemy.orm import Session

from receiver.alerts import read
from receiver.inbox import silence
from receiver.inbox.models import InboxMinute
from receiver.inbox.silence import Silence, silent_sources
from tests.factories import NOW

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
