"""Locks: an order that somebody else holds delays its own events, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox import lane as lane_module
from tests.factories import NOW

from .gestures import (
    attempts,
    event,
    outcome,
    register,
    row,
    store,
    work,
)


def orders(deps: Deps, number: int) -> list[Any]:
    """Register orders o_0, o_1, … and store a payment of each; returns the payments' row ids."""
    for n in range(number):
        register(deps, f"o_{n}")
    return store(
        deps, *[event("succeeded", order_reference=f"o_{n}", transaction_id=f"tx_{n}") for n in range(number)]
    )


@contextmanager
def locked(deps: Deps, reference: str) -> Iterator[None]:
    """Hold an order's row locked in another transaction."""
    with deps.sessions() as other:
        other.execute(text("SELECT 1 FROM orders WHERE reference = :r FOR UPDATE"), {"r": reference})
        yield
        other.rollback()


@pytest.fixture
def quick_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a locked order for less than two seconds."""
    monkeypatch.setattr(lane_module, "LOCK_TIMEOUT", "150ms")


@pytest.mark.field_case(131)
def test_a_locked_order_delays_its_own_events_only(deps: Deps, quick_locks: None) -> None:
    """An order held locked elsewhere: its own events are deferred, uncounted; the others' go on."""
    ids = orders(deps, 6)
    ids += store(
        deps,
        event("pending", order_reference="o_3", transaction_id="tx_3"),
        event("refunded", order_reference=None, transaction_id="tx_3", effect_id="rf_1"),
    )

    with locked(deps, "o_3"):
        started = time.monotonic()
        work(deps)
        took = time.monotonic() - started

    assert [outcome(deps, one)[1] for one in ids[:6]] == [*["applied"] * 3, None, *["applied"] * 2]
    for one in (ids[3], ids[6]):
        deferred = row(deps, one)
        assert (deferred.state, deferred.attempts, deferred.last_error_code) == ("pending", 0, "order_locked")
        assert deferred.next_attempt_at == NOW + timedelta(seconds=5)
        assert attempts(deps, one) == []
    assert took < 5


def test_a_deferred_event_is_worked_when_the_lock_is_gone(
    deps: Deps, clock: FixedClock, quick_locks: None
) -> None:
    """Ten minutes of lock cost ten minutes, no attempt and no outcome."""
    (row_id,) = orders(deps, 1)
    with locked(deps, "o_0"):
        for _ in range(5):
            work(deps)
            clock.move(timedelta(minutes=2))
    work(deps)

    done = row(deps, row_id)
    assert (done.outcome, done.attempts, done.last_error) == ("applied", 1, None)
    assert attempts(deps, row_id) == [(1, "applied")]


def test_one_wait_is_enough_for_all_events_of_a_locked_order(deps: Deps, quick_locks: None) -> None:
    """40 events of one locked order wait for it twice, in the batch and once alone, not 41 times."""
    register(deps)
    register(deps, "o_2")
    ids = store(deps, *[event("pending", sequence=n) for n in range(40)])
    (other,) = store(deps, event("succeeded", order_reference="o_2", transaction_id="tx_2"))

    with locked(deps, "o_1"):
        started = time.monotonic()
        work(deps)
        took = time.monotonic() - started

    assert took < 40 * 0.15
    assert outcome(deps, other)[1] == "applied"
    assert {row(deps, one).attempts for one in ids} == {0}
