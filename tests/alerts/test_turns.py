"""One alert stands open for a kind and key, whatever the sequence of verdicts; each turn is told once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from receiver.alerts.turns import TOLD, Standing, Turn, turn
from receiver.alerts.verdicts import Verdict
from tests.factories import NOW

REMIND, RECOVERY = timedelta(hours=4), timedelta(minutes=2)


@dataclass
class Book:
    """Plays turns as the acts write them."""

    standing: Standing | None = None
    told: list[tuple[Turn, datetime]] = field(default_factory=list)

    def look(self, verdict: Verdict | None, now: datetime) -> Turn:
        due = turn(self.standing, verdict, now, remind=REMIND, recovery=RECOVERY)
        if due in TOLD:
            self.told.append((due, now))
        before = self.standing
        match due:
            case Turn.BEGUN:
                self.standing = Standing(verdict.step if verdict else 1, now)
            case Turn.OPENED | Turn.WORSE | Turn.REMINDER:
                assert verdict is not None
                self.standing = Standing(
                    max(verdict.step, before.step if before else 0),
                    before.seen_at if before else now,
                    before.opened_at if before and before.opened_at else now,
                    None,
                    now,
                )
            case Turn.FADING | Turn.BACK:
                assert before is not None
                absent = now if due is Turn.FADING else None
                self.standing = Standing(
                    before.step, before.seen_at, before.opened_at, absent, before.noticed_at
                )
            case Turn.RECOVERED | Turn.FORGOTTEN:
                self.standing = None
        return due


looks = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([20, 60, 130, 3600, 5 * 3600]), st.booleans()), max_size=60
)


@given(looks)
def test_one_open_alert_whatever_the_sequence(sequence: list[tuple[int, int, bool]]) -> None:
    """Opening and recovery alternate; steps grow while it is open; reminders keep their distance."""
    book, now = Book(), NOW
    for step, seconds, held in sequence:
        now += timedelta(seconds=seconds)
        hold = timedelta(seconds=30 if held else 0)
        book.look(Verdict("silence", "acme", step=step, hold=hold) if step else None, now)

    ends = [due for due, _ in book.told if due in (Turn.OPENED, Turn.RECOVERED)]
    assert ends == [Turn.OPENED, Turn.RECOVERED] * (len(ends) // 2) + [Turn.OPENED] * (len(ends) % 2)
    last = None
    for due, at in book.told:
        if due is Turn.REMINDER:
            assert last is not None
            assert at - last >= REMIND
        last = at
    opened = [due for due, _ in book.told if due is Turn.OPENED]
    worse = [due for due, _ in book.told if due is Turn.WORSE]
    assert len(worse) <= 2 * len(opened)


def test_a_flicker_is_one_alert() -> None:
    """A verdict that comes and goes within the recovery time opens once and recovers once."""
    book = Book()
    for minute in range(30):
        book.look(Verdict("backlog") if minute % 2 == 0 else None, NOW + timedelta(minutes=minute))
    book.look(None, NOW + timedelta(minutes=40))

    assert [due for due, _ in book.told] == [Turn.OPENED, Turn.RECOVERED]


def test_what_does_not_hold_is_not_told() -> None:
    """A verdict that must hold is forgotten when it goes before its time."""
    book = Book()
    wanted = Verdict("no_worker", hold=timedelta(seconds=30))

    assert book.look(wanted, NOW) is Turn.BEGUN
    assert book.look(wanted, NOW + timedelta(seconds=29)) is Turn.NOTHING
    assert book.look(None, NOW + timedelta(seconds=29)) is Turn.FORGOTTEN
    assert book.look(wanted, NOW + timedelta(seconds=40)) is Turn.BEGUN
    assert book.look(wanted, NOW + timedelta(seconds=70)) is Turn.OPENED
    assert [due for due, _ in book.told] == [Turn.OPENED]


def test_an_acknowledged_alert_is_quiet_until_it_is_worse() -> None:
    """No reminder of what somebody is on; a step is told, and so is the end."""
    known = Standing(1, NOW, NOW, None, NOW, acknowledged=True)
    later = NOW + timedelta(days=2)

    def due(verdict: Verdict | None) -> Turn:
        return turn(known, verdict, later, remind=REMIND, recovery=timedelta(0))

    assert due(Verdict("source_failing", "acme")) is Turn.NOTHING
    assert due(Verdict("source_failing", "acme", step=2)) is Turn.WORSE
    assert due(None) is Turn.RECOVERED
