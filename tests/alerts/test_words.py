"""The text of every kind, at every turn: what, since when, until when, what to do, where; nothing foreign."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from receiver.alert_settings import AlertSettings
from receiver.alerts.examples import Example, Examples
from receiver.alerts.turns import TOLD, Turn
from receiver.alerts.verdicts import KINDS, Verdict, judge
from receiver.alerts.words import About, advice, compose, headline, page_of
from tests.alerts.test_verdicts import TABLE
from tests.factories import NOW

JUDGED = [
    *(verdict for _, readings, _ in TABLE for verdict in judge(readings, AlertSettings())),
    Verdict("drift", "acme", facts={"count": 3}),
]
EVENT = Example(
    UUID(int=7), "acme", "pending", "order_unknown", NOW - timedelta(hours=61), NOW + timedelta(hours=11)
)


def about(verdict: Verdict, turn: Turn = Turn.OPENED, examples: Examples | None = None) -> About:
    return About(
        kind=verdict.kind,
        key=verdict.key,
        level=verdict.level,
        step=verdict.step,
        turn=turn,
        since=NOW - timedelta(hours=3, minutes=5),
        now=NOW,
        facts=verdict.facts,
        give_up=timedelta(hours=72),
        examples=examples or Examples(("order_unknown", "amount"), (EVENT,)),
        ends={"applied": 4, "expired": 1} if turn is Turn.RECOVERED and verdict.key else None,
    )


def test_every_kind_is_here() -> None:
    """A kind without a text could not be told."""
    assert {verdict.kind for verdict in JUDGED} == set(KINDS)


@pytest.mark.parametrize(
    "verdict", JUDGED, ids=lambda verdict: f"{verdict.kind}-{verdict.key}-{verdict.step}"
)
@pytest.mark.parametrize("turn", sorted(TOLD))
def test_every_text_is_whole(verdict: Verdict, turn: Turn) -> None:
    """No gap where a fact should stand, one line as the subject, and links that lead somewhere."""
    subject, body = compose(about(verdict, turn), "https://pay.example")

    assert "\n" not in subject
    assert len(subject) < 200
    for gap in ("None", "{", "}", "  "):
        assert gap not in subject + body, body
    assert f"Page: https://pay.example{page_of(verdict.kind, verdict.key)}" in body
    assert headline(verdict.kind, verdict.key, verdict.facts) in subject
    assert (advice(verdict.kind) in body) == (turn is not Turn.RECOVERED)


def test_a_text_as_people_read_it() -> None:
    """The whole text of one, opened and over."""
    verdict = Verdict("expiring", "acme", facts={"count": 1, "first": "2026-03-01 23:00 UTC"})

    assert compose(about(verdict), "https://pay.example") == (
        "[Receiver] acme: 1 event will soon expire, the first at 2026-03-01 23:00 UTC",
        """\
acme: 1 event will soon expire, the first at 2026-03-01 23:00 UTC.

Since: 2026-03-01 08:55:00 UTC (3 h 5 min)
About: acme
Last reasons: order_unknown, amount
How long we go on: to the times below; then they expire, and only a replay sends them round again
What to do: give them what they wait for (register the order, repair the cause), or pause the source: nothing held expires.
Page: https://pay.example/events?state=pending&source=acme

Last events:
- acme: pending, order_unknown, received 2026-02-26 23:00:00 UTC, tried until 2026-03-01 23:00:00 UTC: https://pay.example/events/00000000-0000-0000-0000-000000000007""",  # noqa: E501
    )
    assert compose(about(verdict, Turn.RECOVERED))[1].splitlines() == [
        "Over: acme: 1 event will soon expire, the first at 2026-03-01 23:00 UTC.",
        "",
        "From 2026-03-01 08:55:00 UTC to 2026-03-01 12:00:00 UTC (3 h 5 min).",
        "Events of acme that ended in this time: 4 applied, 1 expired.",
        "Failed and expired ones wait for a person, who may replay them: /failures?source=acme",
        "Page: /events?state=pending&source=acme",
    ]


def test_urgent_and_worse_are_said() -> None:
    """The subject tells what cannot wait, what became worse and what still stands."""
    silent = Verdict("silence", "acme", "page", facts={"last": "2026-03-01 11:00 UTC"})

    assert compose(about(silent))[0].startswith("[Receiver] URGENT acme: nothing received")
    assert compose(about(silent, Turn.REMINDER))[0].startswith("[Receiver] URGENT still: acme")
    failing = Verdict("source_failing", "acme", step=2, facts={"dead": 2, "retrying": 1})
    assert compose(about(failing, Turn.WORSE))[0].startswith("[Receiver] worse: acme: nothing succeeds")
