"""The verdicts: one line a reading, no database."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from receiver.alert_settings import AlertSettings
from receiver.alerts.readings import ChannelReading, Readings, SourceReading, WorkersReading
from receiver.alerts.verdicts import KINDS, Verdict, judge
from receiver.inbox.silence import Silence
from tests.factories import NOW

LIMITS = AlertSettings()
WELL = Readings(NOW, WorkersReading(2, NOW, NOW), sources=(SourceReading("acme"),))


def ago(**length: float) -> datetime:
    return NOW - timedelta(**length)


def source(**columns: object) -> Readings:
    return replace(WELL, sources=(SourceReading("acme", **columns),))  # type: ignore[arg-type]


def named(verdicts: list[Verdict]) -> list[tuple[str, str, int, str]]:
    return [(verdict.kind, verdict.key, verdict.step, verdict.level) for verdict in verdicts]


def failing(**length: float) -> Readings:
    return source(failing_since=ago(**length), failed_since_success=2, retrying=1)


SILENT = Silence("acme", ago(hours=2), 40)

TABLE = [
    ("all is well", WELL, []),
    ("a worker was never seen", replace(WELL, workers=WorkersReading(0)), [("no_worker", "", 1, "page")]),
    (
        "a worker lives and its scheduler stands still",
        replace(WELL, workers=WorkersReading(1, NOW, ago(minutes=6))),
        [("no_worker", "", 1, "page")],
    ),
    ("a worker is in a long tick", replace(WELL, workers=WorkersReading(1, NOW, ago(minutes=4))), []),
    ("due for four minutes", replace(WELL, due_since=ago(minutes=4)), []),
    ("due for six minutes", replace(WELL, due_since=ago(minutes=6)), [("backlog", "", 1, "page")]),
    ("many die of one source", replace(WELL, recent_dead={"acme": 500}), []),
    ("few die of many sources", replace(WELL, recent_dead={"acme": 5, "beta": 5}), []),
    (
        "many die of many sources",
        replace(WELL, recent_dead={"acme": 15, "beta": 5}),
        [("dead_rate", "", 1, "page")],
    ),
    ("dead letters", source(dead={"amount": 1}), [("dead_letters", "acme", 1, "warn")]),
    (
        "money to give back",
        source(dead={"amount": 3, "second_payment": 1}),
        [("dead_letters", "acme", 2, "warn")],
    ),
    ("failing for 59 minutes", failing(minutes=59), []),
    ("failing for an hour", failing(hours=1), [("source_failing", "acme", 1, "warn")]),
    ("failing for a day", failing(hours=24), [("source_failing", "acme", 2, "page")]),
    (
        "two rows that fail are no failing source",
        source(failing_since=ago(hours=30), failed_since_success=1, retrying=1),
        [],
    ),
    (
        "rows before their deadline",
        source(expiring=3, first_expiry=NOW + timedelta(hours=2)),
        [("expiring", "acme", 1, "warn")],
    ),
    ("silence", source(silence=SILENT), [("silence", "acme", 1, "page")]),
    ("silence of a sandbox", source(silence=SILENT, live=False), [("silence", "acme", 1, "warn")]),
    ("some rejections", source(rejected={"signature": 19}), []),
    (
        "many rejections",
        source(rejected={"signature": 39, "missing_id": 1}),
        [("rejections", "acme", 1, "warn")],
    ),
    ("skewed posts", source(skewed=5, skew_seconds=-400), [("clock_skew", "acme", 1, "warn")]),
    ("the host is ahead", replace(WELL, clock_off_seconds=31), [("clock_skew", "", 1, "warn")]),
    ("the host is behind", replace(WELL, clock_off_seconds=-31), [("clock_skew", "", 1, "warn")]),
    ("the host is nearly right", replace(WELL, clock_off_seconds=29), []),
    ("a conflict", source(conflicts=1), [("conflict", "acme", 1, "warn")]),
    ("a secret ends in a month", source(rotate_by=date(2026, 4, 1)), []),
    ("a secret ends in 13 days", source(rotate_by=date(2026, 3, 14)), [("secret_ends", "acme", 1, "warn")]),
    ("a secret ends in two days", source(rotate_by=date(2026, 3, 3)), [("secret_ends", "acme", 2, "warn")]),
    ("a secret has ended", source(rotate_by=date(2026, 3, 1)), [("secret_ends", "acme", 3, "page")]),
    (
        "a channel is down",
        replace(WELL, channels=(ChannelReading("CHAT", 4, ago(hours=1), 3, "refused"),)),
        [("channel_down", "CHAT", 1, "warn")],
    ),
    (
        "a channel stumbles",
        replace(WELL, channels=(ChannelReading("CHAT", 1, ago(minutes=1), 2, "refused"),)),
        [],
    ),
]


@pytest.mark.parametrize(("readings", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_readings_and_their_verdicts(readings: Readings, expected: list[tuple[str, str, int, str]]) -> None:
    """Each reading gives these verdicts and no other."""
    assert named(judge(readings, LIMITS)) == expected


def test_every_kind_stands_in_the_table() -> None:
    """No kind is judged that the table does not show; drift is reconciliation's."""
    assert {kind for row in TABLE for kind, *_ in row[2]} == set(KINDS) - {"drift"}


def test_thresholds_are_settings() -> None:
    """A stricter setting finds what the default lets pass."""
    strict = AlertSettings(backlog=timedelta(minutes=1), rejections=2, failing_count=1, dead_sources=1)
    readings = replace(
        WELL,
        due_since=ago(minutes=2),
        recent_dead={"acme": 20},
        sources=(SourceReading("acme", rejected={"signature": 2}, failing_since=ago(hours=1), retrying=1),),
    )

    assert judge(readings, LIMITS) == []
    assert {verdict.kind for verdict in judge(readings, strict)} == {
        "backlog",
        "dead_rate",
        "source_failing",
        "rejections",
    }
