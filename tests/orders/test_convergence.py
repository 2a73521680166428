"""Whatever the order, number and delay of a payment's events, the order ends the same."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receiver.orders.ledger import captured_of, paying_key, refunded_of

from .improvised_stories import improvise
from .memory_inbox import MemoryInbox
from .payment_stories import CANCELLED, STORIES, Story, story

REGISTER, CANCEL = "register", "cancel"


def steps_of(told: Story) -> list[object]:
    """Everything that happens in a story, in its true order."""
    return [REGISTER, *told.events, *([CANCEL] if told.cancels else [])]


def play(told: Story, steps: list[object]) -> None:
    """Let the steps happen in this order and check the end against the provider's books."""
    inbox, cancelled = MemoryInbox(), False
    for step in steps:
        if step == REGISTER:
            inbox.register(told)
        elif step == CANCEL:
            cancelled = inbox.cancel(told.reference)
        else:
            inbox.receive(step)

    assert inbox.end_of(told.reference) in ({CANCELLED} if cancelled else told.ends)
    assert inbox.refused() <= ({"order_cancelled"} if cancelled else {"second_payment"})
    assert inbox.parked() == []
    assert_surplus_is_marked(inbox, told, cancelled)


def assert_surplus_is_marked(inbox: MemoryInbox, told: Story, cancelled: bool) -> None:
    """Every transaction that captured money which the order does not need is marked, and no other."""
    order = inbox.orders[told.reference]
    paying = paying_key(order)
    captured = {
        (event.source, event.transaction_id)
        for event in told.events
        if event.kind in ("captured", "succeeded")
    }
    for key, transaction in order.transactions.items():
        if key == paying:
            assert not transaction.refused
        elif cancelled:
            assert transaction.refused == (key in captured)
        elif transaction.refused:
            assert paying is not None
            assert key in captured
            assert captured_of(order, paying) > refunded_of(order, paying)
        else:
            assert captured_of(order, key) == refunded_of(order, key)


@pytest.mark.parametrize("name", STORIES)
def test_a_story_told_in_order_ends_as_the_provider_says(name: str) -> None:
    """Each story, told as it happened, ends as the provider's books say."""
    told = story(name)

    play(told, steps_of(told))


@pytest.mark.parametrize("name", [name for name in STORIES if len(steps_of(story(name))) <= 6])
def test_every_permutation_of_a_short_story_ends_the_same(name: str) -> None:
    """Each short story ends the same in every order of its events, its registration and its cancel."""
    told = story(name)

    for steps in permutations(steps_of(told)):
        play(told, list(steps))


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_a_story_ends_the_same_in_any_order_and_number(data: st.DataObject) -> None:
    """Any permutation, duplication and delay of a written story ends as the provider says."""
    told = story(data.draw(st.sampled_from(sorted(STORIES))))

    play(told, shuffled(data, told))


@given(st.data())
@settings(max_examples=600, deadline=None)
def test_an_improvised_story_ends_the_same_in_any_order_and_number(data: st.DataObject) -> None:
    """Whatever a provider could truly do ends as its books say, in any order and number of events."""
    told = improvise(lambda options: data.draw(st.sampled_from(options)), data.draw(st.integers(1, 9)))

    play(told, shuffled(data, told))


def shuffled(data: st.DataObject, told: Story) -> list[object]:
    """The steps in any order, some events twice; the order is registered once, at any time."""
    again = data.draw(st.lists(st.sampled_from(told.events), max_size=3))
    return data.draw(st.permutations([*steps_of(told), *again]))
