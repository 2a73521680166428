"""Bulk replay: what it takes, at what pace, and what stops it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

from receiver.accounts.models import OperatorAction
from receiver.deps import Deps
from receiver.inbox import bulk_replay, dead_letters
from receiver.inbox.bulk_replay import (
    BulkReplayEnded,
    BulkReplayRefused,
    UnknownBulkReplay,
    advance,
    cancel_bulk_replay,
    find_bulk_replay,
    list_bulk_replays,
    resume_bulk_replay,
    start_bulk_replay,
    who_notices,
)
from receiver.inbox.counts import Count
from receiver.inbox.dead_letters import count_matching
from receiver.inbox.filter import Filter, FilterError
from receiver.inbox.models import WebhookEvent
from receiver.inbox.replay import replay_event
from receiver.queue import bulk_replays
from receiver.queue.bulk_replays import SLICE
from receiver.queue.models import BulkReplay
from tests.factories import NOW, make_event, make_pause
from tests.inbox.gestures import row

FIVE_THOUSAND = text(
    """\
INSERT INTO webhook_events (id, source, provider_event_id, event_type, kind, facts_sha256, payload_sha256,
  state, outcome, reason, attempts, next_attempt_at, give_up_at, received_at, last_received_at, created_at,
  updated_at, finished_at)
SELECT gen_random_uuid(), 'demo', 'dead_' || n, 'payment.succeeded', 'succeeded', sha256('f'), sha256('p'),
  'failed', 'amount', 'amount', 1, t, t + interval '72 hours', t, t, t, t, t
FROM generate_series(1, 5000) AS n, (SELECT CAST(:now AS timestamptz) AS t) AS at"""
)

WORKED_OFF = text(
    "UPDATE webhook_events SET state = 'processed', outcome = 'repeat', finished_at = updated_at"
    " WHERE state = 'pending'"
)


def dead(deps: Deps, number: int, **columns: Any) -> list[UUID]:
    """Dead letters, the oldest first; failed because of the amount unless told otherwise."""
    with deps.sessions.begin() as session:
        return [
            make_event(session, **{"state": "failed", "payload": None, **columns}).id for _ in range(number)
        ]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine changes no number of these tests."""
    monkeypatch.setattr(bulk_replay, "TURN_SECONDS", 60.0)


@pytest.fixture
def start(deps: Deps) -> Callable[..., UUID]:
    """Start a bulk replay, two seconds after the rows died."""

    def begin(filter: Filter | None = None, **more: Any) -> UUID:  # noqa: A002
        deps.clock.move(timedelta(seconds=2))  # type: ignore[attr-defined]
        values: dict[str, Any] = {"actor": "ada", "reason": "repaired", "admin": True, **more}
        with deps.sessions.begin() as session:
            return start_bulk_replay(
                session,
                replay_id=deps.dice.new_id(),
                filter=filter or Filter(),
                now=deps.clock.now(),
                **values,
            ).id

    return begin


def states(deps: Deps, ids: list[UUID]) -> list[str]:
    """The states of events."""
    return [row(deps, each).state for each in ids]


def replay_of(deps: Deps, replay_id: UUID) -> BulkReplay:
    """A bulk replay as it stands."""
    with deps.sessions() as session:
        return find_bulk_replay(session, replay_id)


def acts(deps: Deps) -> list[tuple[str, str, int]]:
    """(actor, action, count) of the record, the oldest first."""
    with deps.sessions() as session:
        rows = session.scalars(select(OperatorAction).order_by(OperatorAction.id))
        return [(each.actor, each.action, each.count) for each in rows]


def test_every_dead_letter_goes_round_with_fresh_attempts(deps: Deps, start: Callable[..., UUID]) -> None:
    """Without a spread all go at once: attempts 0, a fresh deadline, the replay counted, the end noted."""
    ids = [*dead(deps, 3), *dead(deps, 2, state="expired")]
    resting = [*dead(deps, 1, state="processed"), *dead(deps, 1, acknowledged_at=NOW)]
    replay_id = start(spread=timedelta(0))

    assert advance(deps) == 5

    assert states(deps, ids) == ["pending"] * 5
    assert states(deps, resting) == ["processed", "failed"]
    stored = row(deps, ids[0])
    assert (stored.attempts, stored.replays, stored.outcome, stored.reason) == (0, 1, None, None)
    assert stored.give_up_at == deps.clock.now() + deps.settings.give_up  # type: ignore[operator]
    replay = replay_of(deps, replay_id)
    assert (replay.state, replay.counted, replay.done, replay.skipped) == ("done", 5, 5, 0)
    assert acts(deps) == [("ada", "bulk_replay.start", 5), ("system", "bulk_replay.done", 5)]
    assert advance(deps) == 0


def test_only_what_the_filter_asks_for_and_was_dead_at_the_start(
    deps: Deps, start: Callable[..., UUID]
) -> None:
    """The filter's rows of [from, to), and none that died after the start."""
    day = timedelta(days=1)
    before = dead(deps, 1, at=NOW - day, finished_at=NOW)
    first = dead(deps, 1, at=NOW - day / 2, finished_at=NOW)
    last = dead(deps, 1, at=NOW, reason="currency")
    other = dead(deps, 1, at=NOW - day / 2, finished_at=NOW, source="lesson")
    start(Filter(source="demo", from_=NOW - day / 2, to=NOW), spread=timedelta(0))
    late = dead(deps, 1, at=NOW - day / 2, finished_at=NOW + timedelta(seconds=9))

    assert advance(deps) == 1

    assert states(deps, [*before, *first, *last, *other, *late]) == [
        "failed",
        "pending",
        "failed",
        "failed",
        "failed",
    ]


def test_the_pace_fills_the_spread_and_the_oldest_go_first(deps: Deps, start: Callable[..., UUID]) -> None:
    """Two seconds' rows at once, then so many a second as fill five minutes; a hash says when each is due."""
    ids = dead(deps, 600)
    replay_id = start()

    sent = [advance(deps)]
    assert states(deps, ids[:4]) == ["pending"] * 4
    assert states(deps, ids[4:8]) == ["failed"] * 4
    for _ in range(30):
        deps.clock.move(SLICE)  # type: ignore[attr-defined]
        sent.append(advance(deps))
        waits = {row(deps, each).next_attempt_at - deps.clock.now() for each in ids[4:24]}  # type: ignore[operator]
        if len(sent) == 2:
            assert len(waits) > 10
            assert all(timedelta(0) <= wait <= SLICE for wait in waits)

    assert sent == [4] + [20] * 29 + [16]
    deps.clock.move(timedelta(seconds=1))  # type: ignore[attr-defined]
    advance(deps)
    assert replay_of(deps, replay_id).state == "done"


@pytest.mark.field_case(139)
def test_a_replay_goes_on_beyond_every_page_with_true_numbers(deps: Deps, start: Callable[..., UUID]) -> None:
    """5,000 failed rows all go round, at the pace; what is stored and what the log says is true."""
    with deps.sessions.begin() as session:
        session.execute(FIVE_THOUSAND, {"now": NOW})
    replay_id = start(Filter(reason="amount"), announcement="told the shop")
    sent = [advance(deps)]
    with capture_logs() as logged:
        for _ in range(35):
            deps.clock.move(SLICE)  # type: ignore[attr-defined]
            with deps.sessions.begin() as session:
                session.execute(WORKED_OFF)
            sent.append(advance(deps))

    replay = replay_of(deps, replay_id)
    assert (replay.state, replay.counted, replay.done, replay.skipped) == ("done", 5000, 5000, 0)
    assert sum(sent) == 5000
    # Ten of three hundred seconds are a thirtieth.
    assert max(sent) <= 5000 // 30 + 1
    with deps.sessions() as session:
        once = session.scalar(select(func.count()).where(WebhookEvent.replays == 1))
    assert once == 5000
    (line,) = logged
    assert (line["event"], line["done"], line["skipped"]) == ("bulk_replay.done", 5000, 0)


def test_few_rows_come_one_by_one(deps: Deps, start: Callable[..., UUID]) -> None:
    """A pace below one row a second loses no time to rounding."""
    dead(deps, 5)
    start(spread=timedelta(seconds=50))
    sent = []
    for _ in range(50):
        sent.append(advance(deps))
        deps.clock.move(timedelta(seconds=1))  # type: ignore[attr-defined]

    assert sum(sent) == 5
    assert [second for second, rows in enumerate(sent) if rows] == [0, 10, 20, 30, 40]


def test_after_an_outage_only_a_slice_is_caught_up(deps: Deps, start: Callable[..., UUID]) -> None:
    """A worker that was away for an hour does not send everything at once."""
    dead(deps, 300)
    start()
    advance(deps)
    deps.clock.move(timedelta(hours=1))  # type: ignore[attr-defined]

    assert advance(deps) == 10


@pytest.mark.parametrize("behind", ["a live row is late", "very many are late"])
def test_a_replay_steps_back_while_the_workers_are_behind(
    deps: Deps, start: Callable[..., UUID], monkeypatch: pytest.MonkeyPatch, behind: str
) -> None:
    """While live rows wait longer than five seconds a quarter of the pace is left, then the whole again."""
    dead(deps, 300)
    replay_id = start()
    assert advance(deps) == 2
    if behind == "a live row is late":
        with deps.sessions.begin() as session:
            make_event(session, payload=None, next_attempt_at=deps.clock.now() - timedelta(seconds=6))  # type: ignore[operator]
    else:
        monkeypatch.setattr(bulk_replays, "_LOOK_AT", 2)
    sent = []
    for _ in range(8):
        deps.clock.move(SLICE)  # type: ignore[attr-defined]
        sent.append(advance(deps))
    assert sum(sent) == 20
    with deps.sessions.begin() as session:
        session.execute(WORKED_OFF)
    deps.clock.move(SLICE)  # type: ignore[attr-defined]
    assert advance(deps) == 10
    assert replay_of(deps, replay_id).skipped == 0


def test_a_slow_database_makes_a_replay_slower(
    deps: Deps, start: Callable[..., UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that has used up its time ends after a batch, and what the pace still owes comes later."""
    monkeypatch.setattr(bulk_replay, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(bulk_replay, "BATCH", 4)
    dead(deps, 10)
    replay_id = start(spread=timedelta(0))

    assert [advance(deps) for _ in range(4)] == [4, 4, 2, 0]
    assert replay_of(deps, replay_id).state == "done"


def test_a_paused_source_does_not_slow_a_replay(deps: Deps, start: Callable[..., UUID]) -> None:
    """What is held is not late: it waits because somebody wants it to."""
    dead(deps, 300)
    with deps.sessions.begin() as session:
        make_event(session, payload=None, source="lesson", at=NOW - timedelta(hours=1))
        make_pause(session, "lesson")
    start()

    assert advance(deps) == 2
    deps.clock.move(SLICE)  # type: ignore[attr-defined]
    assert advance(deps) == 10


def test_cancelled_midway_and_taken_up_again(deps: Deps, start: Callable[..., UUID]) -> None:
    """What was not sent stays dead with its reason; resumed, it goes on where it stopped, nothing twice."""
    ids = dead(deps, 60)
    replay_id = start(spread=6 * SLICE)
    assert advance(deps) == 2
    with deps.sessions.begin() as session:
        cancel_bulk_replay(session, replay_id, actor="ada", reason="wrong rows", now=deps.clock.now())

    deps.clock.move(timedelta(minutes=2))  # type: ignore[attr-defined]
    assert advance(deps) == 0
    assert states(deps, ids) == ["pending"] * 2 + ["failed"] * 58
    assert row(deps, ids[-1]).reason == "amount"
    with deps.sessions.begin() as session:
        resume_bulk_replay(session, replay_id, actor="ada", reason="the right ones", now=deps.clock.now())
    for _ in range(6):
        deps.clock.move(SLICE)  # type: ignore[attr-defined]
        advance(deps)

    assert {row(deps, each).replays for each in ids} == {1}
    replay = replay_of(deps, replay_id)
    assert (replay.state, replay.done, replay.skipped) == ("done", 60, 0)
    assert [action for _, action, _ in acts(deps)] == [
        "bulk_replay.start",
        "bulk_replay.cancel",
        "bulk_replay.resume",
        "bulk_replay.done",
    ]


def test_rows_that_recovered_meanwhile_are_skipped(deps: Deps, start: Callable[..., UUID]) -> None:
    """A row that somebody replayed, or forgot, between the count and its turn is left alone and counted."""
    ids = dead(deps, 20)
    replay_id = start(spread=2 * SLICE)
    assert advance(deps) == 2
    with deps.sessions.begin() as session:
        version = session.get_one(WebhookEvent, ids[-1]).row_version
        replay_event(
            session, ids[-1], row_version=version, actor="bob", reason="by hand", now=deps.clock.now()
        )
    for _ in range(3):
        deps.clock.move(SLICE)  # type: ignore[attr-defined]
        advance(deps)

    assert row(deps, ids[-1]).replays == 1
    replay = replay_of(deps, replay_id)
    assert (replay.state, replay.counted, replay.done, replay.skipped) == ("done", 20, 19, 1)


def test_a_limit_of_rows(deps: Deps, start: Callable[..., UUID]) -> None:
    """Of seven rows the oldest three go, and the replay is done."""
    ids = dead(deps, 7)
    replay_id = start(spread=timedelta(0), row_limit=3)

    assert advance(deps) == 3

    advance(deps)
    assert states(deps, ids) == ["pending"] * 3 + ["failed"] * 4
    replay = replay_of(deps, replay_id)
    assert (replay.state, replay.counted, replay.done, replay.skipped) == ("done", 3, 3, 0)


def test_rare_rows_among_many_are_found_step_by_step(
    deps: Deps, start: Callable[..., UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step looks at a bounded number of dead letters and goes on from there."""
    monkeypatch.setattr(dead_letters, "LOOK_AT", 4)
    dead(deps, 10)
    rare = dead(deps, 1, order_reference="rare")
    dead(deps, 6)
    with deps.sessions() as session:
        assert str(count_matching(session, Filter(order_reference="rare"))) == "1"
    replay_id = start(Filter(text="evt_*", order_reference="rare"), spread=timedelta(0))

    assert advance(deps) == 1
    assert states(deps, rare) == ["pending"]
    advance(deps)
    assert replay_of(deps, replay_id).state == "done"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"admin": False}, "needs_admin"),
        ({"reason": " "}, "no_reason"),
        ({"spread": timedelta(days=2)}, "bad_spread"),
        ({"row_limit": 0}, "bad_limit"),
        ({"filter": Filter(source="nobody")}, "nothing_matches"),
    ],
)
def test_a_start_is_refused_by_name(
    deps: Deps, start: Callable[..., UUID], more: dict[str, Any], code: str
) -> None:
    """Each refusal has a code, writes nothing and leaves no audit row."""
    dead(deps, 1)
    with pytest.raises(BulkReplayRefused) as refused:
        start(**more)

    assert refused.value.code == code
    assert acts(deps) == []


@pytest.mark.parametrize("asked", [Filter(state="processed"), Filter(state="pending"), Filter(parked=True)])
def test_only_dead_letters_are_replayed_in_bulk(session: Session, asked: Filter) -> None:
    """A filter over other states is refused with a sentence, at the count already."""
    with pytest.raises(FilterError, match="only failed and expired"):
        count_matching(session, asked)


def test_many_rows_need_an_announcement(
    deps: Deps, start: Callable[..., UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the bound who was told must be said, and is kept in row and record; a limit below needs none."""
    monkeypatch.setattr(bulk_replay, "ANNOUNCE_ABOVE", 3)
    dead(deps, 4)
    with pytest.raises(BulkReplayRefused) as refused:
        start(announcement="  ")
    assert refused.value.code == "announcement_needed"
    start(row_limit=3)
    replay_id = start(announcement="told the shop's team in #payments")

    assert replay_of(deps, replay_id).announcement == "told the shop's team in #payments"
    with deps.sessions() as session:
        newest = session.scalars(select(OperatorAction).order_by(OperatorAction.id.desc())).first()
        assert newest is not None
        assert newest.criteria is not None
        assert newest.criteria["announcement"] == "told the shop's team in #payments"
        assert [each.id for each in list_bulk_replays(session, limit=1)] == [replay_id]
        assert len(list_bulk_replays(session, before=replay_id)) == 1
    assert "10,000+ orders" in who_notices(Count(10_000, True), timedelta(minutes=5))[0]


def test_what_ended_is_not_cancelled(deps: Deps, start: Callable[..., UUID]) -> None:
    """Done stays done, a running one is not taken up, and an unknown one is unknown."""
    dead(deps, 1)
    replay_id = start(spread=timedelta(0))
    with deps.sessions.begin() as session, pytest.raises(BulkReplayEnded):
        resume_bulk_replay(session, replay_id, actor="ada", reason="?")
    advance(deps)
    with deps.sessions.begin() as session, pytest.raises(BulkReplayEnded):
        cancel_bulk_replay(session, replay_id, actor="ada", reason="?")
    with deps.sessions.begin() as session, pytest.raises(UnknownBulkReplay):
        cancel_bulk_replay(session, deps.dice.new_id(), actor="ada", reason="?")


def test_two_workers_send_no_row_twice(deps: Deps, start: Callable[..., UUID]) -> None:
    """While one worker takes a step, another leaves that replay alone."""
    dead(deps, 4)
    replay_id = start(spread=timedelta(0))
    with deps.sessions.begin() as session:
        session.get_one(BulkReplay, replay_id, with_for_update=True)
        assert advance(deps) == 0

    assert advance(deps) == 4
