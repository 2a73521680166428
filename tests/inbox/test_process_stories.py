"""Stories of payments through the real inbox: whatever order and delay, each order ends as it must."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox.cancel_order import NotCancellable, cancel_order
from receiver.inbox.correct_order import UnknownOrder
from receiver.inbox.process import Processor
from receiver.orders.models import LedgerEntry, Order, OrderTransition
from tests.orders.improvised_stories import improvise
from tests.orders.payment_stories import CANCELLED, STORIES, Story, story
from tests.orders.provider_books import End

from .gestures import register, store

REGISTER, CANCEL, TICK = "register", "cancel", "tick"

DELAYS = (0, 1, 7, 40, 200, 4000)
"""Seconds that pass between two steps; the longest is far below any deadline."""

ON_ONE_DATABASE = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)

numbers = itertools.count(1)


class Play:
    """One story on the real tables, under a reference of its own."""

    def __init__(self, deps: Deps, clock: FixedClock, told: Story) -> None:
        self.deps, self.clock, self.told = deps, clock, told
        self.workers = [Processor(deps, "w1"), Processor(deps, "w2")]
        self.cancelled = False

    def step(self, step: object, delay: int, worker: int) -> None:
        """Let time pass, let something happen, and let a worker look or not."""
        self.clock.move(timedelta(seconds=delay))
        if step == REGISTER:
            register(self.deps, self.told.reference, self.told.amount_minor, self.told.currency)
        elif step == CANCEL:
            self.cancel()
        elif step != TICK:
            store(self.deps, step)  # type: ignore[arg-type]
        if worker < len(self.workers):
            self.workers[worker].tick()

    def cancel(self) -> None:
        """The merchant tries to cancel."""
        with self.deps.sessions() as session:
            try:
                cancel_order(session, self.told.reference, actor="m", reason="r", now=self.clock.at)
            except (NotCancellable, UnknownOrder):
                return
            session.commit()
            self.cancelled = True

    def settle(self) -> None:
        """Work off everything that is still due or waits."""
        for _ in range(4):
            self.workers[0].tick()
            self.clock.move(timedelta(minutes=6))

    def check(self) -> None:
        """The order, its ledger and its history agree with the provider's books, and nothing waits."""
        with self.deps.sessions() as session:
            order = session.scalars(select(Order).where(Order.reference == self.told.reference)).one()
            rows = session.execute(
                text(
                    "SELECT e.state, e.reason, e.outcome FROM webhook_events e WHERE e.transaction_id"
                    " = ANY(CAST(:transactions AS text[]))"
                ),
                {"transactions": list({event.transaction_id for event in self.told.events})},
            ).all()
            moves = session.execute(
                select(OrderTransition.from_state, OrderTransition.to_state)
                .where(OrderTransition.order_id == order.id)
                .order_by(OrderTransition.id)
            ).all()
            effects = session.execute(
                select(LedgerEntry.source, LedgerEntry.kind, LedgerEntry.effect_id).where(
                    LedgerEntry.order_id == order.id
                )
            ).all()
        end = End(order.state, order.authorized_minor, order.captured_minor, order.refunded_minor)
        assert end in ({CANCELLED} if self.cancelled else self.told.ends)
        assert {state for state, _, _ in rows} <= {"processed", "failed"}
        refused = {reason for state, reason, _ in rows if state == "failed"}
        assert refused <= ({"order_cancelled"} if self.cancelled else {"second_payment"})
        assert len(effects) == len(set(effects))
        states = ["pending", *(to for _, to in moves)]
        assert [origin for origin, _ in moves] == states[:-1]
        assert states[-1] == order.state


def steps_of(told: Story) -> list[object]:
    """Everything that happens in a story, in its true order."""
    return [REGISTER, *told.events, *([CANCEL] if told.cancels else [])]


def play(deps: Deps, clock: FixedClock, told: Story, data: st.DataObject) -> None:
    """Play a story in any order, with repeats, delays and lazy workers."""
    again = data.draw(st.lists(st.sampled_from(told.events), max_size=3))
    on_stage = Play(deps, clock, told)
    for step in data.draw(st.permutations([*steps_of(told), *again])):
        on_stage.step(step, data.draw(st.sampled_from(DELAYS)), data.draw(st.integers(0, 3)))
    on_stage.settle()
    on_stage.check()


@pytest.mark.parametrize("name", STORIES)
def test_a_story_told_in_order(deps: Deps, clock: FixedClock, name: str) -> None:
    """Each story, told as it happened and worked step by step, ends as the provider says."""
    on_stage = Play(deps, clock, story(name))
    for step in steps_of(on_stage.told):
        on_stage.step(step, 1, 0)
    on_stage.settle()
    on_stage.check()


@pytest.mark.parametrize("name", STORIES)
def test_a_story_told_backwards_in_one_batch(deps: Deps, clock: FixedClock, name: str) -> None:
    """Each story, stored backwards and twice before a worker looks, ends as the provider says."""
    on_stage = Play(deps, clock, story(name))
    told = [step for step in steps_of(on_stage.told) if step != CANCEL]
    for step in [*reversed(told[1:]), *told]:
        on_stage.step(step, 0, 9)
    on_stage.settle()
    on_stage.check()


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=ON_ONE_DATABASE)
def test_a_story_in_any_order(deps: Deps, clock: FixedClock, data: st.DataObject) -> None:
    """Any permutation, duplication and delay of a story through the real tables ends as it must."""
    name = data.draw(st.sampled_from(sorted(STORIES)))

    play(deps, clock, story(name, f"o_{next(numbers)}"), data)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=ON_ONE_DATABASE)
def test_an_improvised_story_in_any_order(deps: Deps, clock: FixedClock, data: st.DataObject) -> None:
    """Whatever a provider could truly do, in any order through the real tables, ends as its books say."""
    told = improvise(
        lambda options: data.draw(st.sampled_from(options)),
        data.draw(st.integers(1, 8)),
        reference=f"o_{next(numbers)}",
    )

    play(deps, clock, told, data)
