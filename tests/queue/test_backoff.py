"""Backoff: the schedule of retries is pure arithmetic."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from receiver.queue.backoff import GIVE_UP, JITTER, SCHEDULE, wait_after


def test_the_schedule_without_jitter() -> None:
    """5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h, then every 6 h."""
    waits = [int(wait_after(attempts, 0.0).total_seconds()) for attempts in range(1, 12)]

    assert waits == [5, 30, 120, 600, 1800, 3600, 7200, 14400, 21600, 21600, 21600]


@given(st.integers(-3, 10_000), st.floats(-1, 1))
def test_a_wait_stays_within_a_fifth_of_its_step(attempts: int, jitter: float) -> None:
    """Whatever the count, the wait is within ± 20 % of a step of the schedule, and never negative."""
    wait = wait_after(attempts, jitter)
    step = SCHEDULE[min(max(attempts, 1), len(SCHEDULE)) - 1]

    assert step * (1 - JITTER) <= wait + timedelta(microseconds=1)
    assert wait <= step * (1 + JITTER) + timedelta(microseconds=1)


def test_the_deadline_leaves_room_for_many_tries() -> None:
    """Within 72 hours a row is tried eight times by the growing steps and about ten times more."""
    passed, tries = timedelta(0), 0
    while passed < GIVE_UP:
        tries += 1
        passed += wait_after(tries, 0.0)

    assert 15 <= tries <= 25
