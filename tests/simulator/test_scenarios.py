"""Plans of `receiver trigger`: what a scenario sends and what a fault does to it, as bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.providers.registry import names, provider
from receiver.simulator.dialects import DIALECTS
from receiver.simulator.scenarios import (
    ENDS,
    FAULTS,
    SEEDED_TIME,
    STEPS,
    Plan,
    PlannedOrder,
    PlannedPost,
    Run,
    plan,
    run_tag,
)


def run(kind: Kind = Kind.SUCCEEDED, *, name: str = "demo", **changes: object) -> Run:
    """A seeded run of one event at the provider ``name``."""
    plain = Run(name, kind, DIALECTS[name], run_tag(7, name, kind, None), SEEDED_TIME)
    return replace(plain, **changes)  # type: ignore[arg-type]


def facts(post: PlannedPost, name: str = "demo") -> PaymentEvent:
    """What the provider's own reader makes of a post's body."""
    (event,) = provider(name).read(name, {"webhook-id": post.event_id}, post.body)
    assert event.provider_event_id == post.event_id
    return event.facts


def facts_of(a_plan: Plan) -> list[PaymentEvent]:
    """What the reader makes of every post."""
    return [facts(post) for post in a_plan.posts]


def test_every_provider_has_a_dialect() -> None:
    """Each provider that is spoken can be played, but those that are only described or tell no payments."""
    assert set(names()) - set(DIALECTS) == {"hmac", "adyen_banking"}


def test_every_scenario_says_its_end() -> None:
    """Each event that can be asked for has its steps and its end."""
    assert set(STEPS) == set(ENDS) == {*DIALECTS["demo"].types, Kind.OTHER}


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_one_seed_is_one_plan_to_the_byte(fault: str | None) -> None:
    """The same run twice sends the same ids and bytes, so that the second sends duplicates."""
    assert plan(run(fault=fault, count=5)) == plan(run(fault=fault, count=5))


def test_more_of_a_seed_begins_with_less_of_it() -> None:
    """A larger count of a seed repeats the smaller one's orders and goes on."""
    assert plan(run(count=9)).orders[:4] == plan(run(count=4)).orders


def test_two_scenarios_of_a_seed_share_no_id() -> None:
    """Another event or fault of the same seed never reuses an id with other facts."""
    tags = {run_tag(7, source, kind, fault) for source in "ab" for kind in STEPS for fault in (None, *FAULTS)}

    assert len(tags) == 2 * len(STEPS) * (1 + len(FAULTS))


def test_parts_of_a_capture_sum_to_the_order() -> None:
    """The captures of one order have ids of their own and sum to its amount."""
    for order, chain in zip(
        *(lambda p: (p.orders, p.chains))(plan(run(Kind.CAPTURED, count=20))), strict=True
    ):
        captures = [e for e in map(facts, chain) if e.kind is Kind.CAPTURED]

        assert sum(e.amount_minor or 0 for e in captures) == order.amount_minor
        assert len({e.effect_id for e in captures}) == len(captures) == 2


def test_duplicate_posts_each_event_twice() -> None:
    """The second post of an event has the same bytes, and both are answered 200."""
    posts = plan(run(Kind.REFUNDED, fault="duplicate")).posts

    assert [p.event_type for p in posts] == ["payment.succeeded"] * 2 + ["payment.refunded"] * 2
    assert posts[0] == posts[1]


def test_reorder_shuffles_the_same_posts() -> None:
    """The posts are those of the plain run, in another order."""
    tag = "t"
    plain, shuffled = (
        plan(run(Kind.DISPUTE_WON, tag=tag, count=9)),
        plan(run(Kind.DISPUTE_WON, tag=tag, count=9, fault="reorder")),
    )

    assert plain.posts != shuffled.posts
    assert sorted(p.event_id for p in plain.posts) == sorted(p.event_id for p in shuffled.posts)


@pytest.mark.parametrize(("fault", "shift"), [("tamper", 0), ("stale", -900), ("future", 900)])
def test_a_forged_post_is_expected_to_be_refused(fault: str, shift: int) -> None:
    """Only the last event is forged; the ones before it are sound."""
    *before, last = plan(run(Kind.REFUNDED, fault=fault)).posts

    assert [p.expect for p in before] == [200]
    assert (last.expect, last.signed_shift, last.tampered) == (401, shift, fault == "tamper")


def test_conflict_repeats_an_id_with_another_amount() -> None:
    """The same id comes again with other facts; both are answered 200."""
    first, second = plan(run(fault="conflict")).posts

    assert first.event_id == second.event_id
    assert (facts(second).amount_minor or 0) - (facts(first).amount_minor or 0) == 1
    assert first.expect == second.expect == 200


def test_wrong_amount_and_currency_contradict_the_order() -> None:
    """The event says another amount, or another currency, than the registered order."""
    by_amount = plan(run(fault="wrong-amount"))
    by_currency = plan(run(fault="wrong-currency", currency="USD"))

    assert facts_of(by_amount)[0].amount_minor == by_amount.orders[0].amount_minor + 100
    assert facts_of(by_currency)[0].currency == "EUR"


def test_wrong_transaction_uses_a_second_orders_transaction() -> None:
    """First another order is paid, then its transaction is claimed for this one."""
    made = plan(run(fault="wrong-transaction"))
    paid, claimed = facts_of(made)

    assert len(made.orders) == 2
    assert paid.order_reference != claimed.order_reference
    assert paid.transaction_id == claimed.transaction_id


def test_wrong_account_says_when_nothing_is_compared() -> None:
    """A source that states no account compares none, and the plan says so."""
    stated, unstated = run(fault="wrong-account", account="acct_1"), run(fault="wrong-account")

    assert facts_of(plan(stated))[0].account == "acct_of_somebody_else"
    assert plan(stated).notes == ()
    assert "states no account" in plan(unstated).notes[0]


@pytest.mark.parametrize(
    ("kind", "sent"), [(Kind.SUCCEEDED, Kind.REFUNDED), (Kind.DISPUTE_WON, Kind.DISPUTE_WON)]
)
def test_illegal_sends_what_needs_a_capture_without_one(kind: Kind, sent: Kind) -> None:
    """A refund or dispute before any capture, alone."""
    assert [e.kind for e in facts_of(plan(run(kind, fault="illegal")))] == [sent]


def test_a_given_order_is_not_registered() -> None:
    """With an order named by the user the events take its facts, and nothing is registered."""
    given = PlannedOrder("shop/1", 1860, "KWD", given=True)
    made = plan(run(given=given))

    assert made.orders == ()
    assert (facts_of(made)[0].order_reference, facts_of(made)[0].amount_minor) == ("shop/1", 1860)
    assert facts_of(made)[0].currency == "KWD"


def test_a_given_order_that_is_paid_is_refunded_on_its_own_transaction() -> None:
    """No second payment is sent for an order whose money a transaction of the source holds already."""
    given = PlannedOrder("ord_1", 1860, "EUR", given=True, paid_by="txn_1")

    assert [(e.kind, e.transaction_id) for e in facts_of(plan(run(Kind.REFUNDED, given=given)))] == [
        (Kind.REFUNDED, "txn_1")
    ]


def test_account_and_mode_of_the_source_stand_in_the_body() -> None:
    """What the source states is what its events carry."""
    (event,) = facts_of(plan(run(account="acct_1", live=False)))

    assert (event.account, event.live) == ("acct_1", False)
