"""Lanes: a backlog is worked by two batches at once in one process, each event once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from receiver.deps import Deps
from receiver.inbox import lane as lane_module
from receiver.inbox.process import Processor
from tests.conftest import MakeDeps

from .gestures import event, ledger, outcome, register, row, store

EVENTS = 60
BATCH = 5


def _backlog(deps: Deps) -> list[Any]:
    for number in range(EVENTS):
        register(deps, f"o_{number}")
    facts = ({"order_reference": f"o_{n}", "transaction_id": f"tx_{n}"} for n in range(EVENTS))
    return store(deps, *(event("succeeded", **own) for own in facts))


def test_a_backlog_is_worked_by_two_threads_and_each_event_once(
    make_deps: MakeDeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more due than a batch holds, a second thread works beside the first; each order is paid once."""
    deps = make_deps(batch_size=BATCH)
    ids = _backlog(deps)
    real, batches, second = lane_module.work_batch, [], threading.Event()

    def seen(*more: Any, **named: Any) -> Any:
        batches.append(threading.get_ident())
        if len(set(batches)) == 2:
            second.set()
        elif len(batches) == 2:
            # The first thread's second batch waits until another thread has one in hand.
            assert second.wait(10)
        return real(*more, **named)

    monkeypatch.setattr(lane_module, "work_batch", seen)

    assert Processor(deps, "w1").tick() == EVENTS
    assert len(set(batches)) == 2
    assert {outcome(deps, one) for one in ids} == {("processed", "applied", None)}
    assert [ledger(deps, f"o_{n}") for n in range(EVENTS)] == [[("capture", 2500)]] * EVENTS


def test_a_stop_hands_back_what_each_lane_had_not_started(
    make_deps: MakeDeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked to stop in the midst of a backlog, no lane leaves a row in flight, and none counts an attempt
    of a row that it did not work.
    """
    deps = make_deps(batch_size=BATCH)
    ids = _backlog(deps)
    processor = Processor(deps, "w1")
    real, batches = lane_module.work_batch, []

    def stop_midway(*more: Any, **named: Any) -> Any:
        batches.append(len(more[3]))
        if len(batches) == 4:
            processor.stop()
        return real(*more, **named)

    monkeypatch.setattr(lane_module, "work_batch", stop_midway)
    processor.tick()

    states = [row(deps, one).state for one in ids]
    assert "in_flight" not in states
    assert states.count("processed") == sum(batches) < EVENTS
    assert all(row(deps, one).attempts == (row(deps, one).state == "processed") for one in ids)


def test_what_a_lane_raises_is_not_swallowed(make_deps: MakeDeps, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the second lane's reaches the tick's caller, who logs it; its rows are taken back later."""
    deps = make_deps(batch_size=BATCH)
    _backlog(deps)
    first = threading.get_ident()
    real = lane_module.claim

    def gone(*more: Any, **named: Any) -> Any:
        if threading.get_ident() != first:
            raise ConnectionError("the database is away")
        return real(*more, **named)

    monkeypatch.setattr(lane_module, "claim", gone)
    with pytest.raises(ConnectionError, match="away"):
        Processor(deps, "w1").tick()
