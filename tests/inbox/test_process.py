"""Processing: every decision becomes its row, its attempt, its count, and its order's history."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, text

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox.minutes import minute_of
from receiver.inbox.models import InboxMinute
from receiver.orders.models import LedgerEntry, OrderTransaction, OrderTransition
from receiver.settings import Source
from tests.conftest import MakeDeps
from tests.factories import NOW

from .gestures import (
    attempts,
    event,
    ledger,
    order,
    outcome,
    receive,
    register,
    row,
    stands,
    store,
    transitions,
    work,
)

PROCESSED, FAILED, PENDING = "processed", "failed", "pending"


def test_a_payment_pays_its_order(deps: Deps) -> None:
    """Apply: processed and applied; the ledger, the transaction, the transition and the order agree."""
    register(deps)
    (paid,) = receive(deps, event("succeeded"))

    assert (paid.state, paid.outcome, paid.reason, paid.attempts) == (PROCESSED, "applied", None, 1)
    assert attempts(deps, paid.id) == [(1, "applied")]
    assert stands(deps) == ("paid", 2500, 0)
    with deps.sessions() as session:
        line = session.scalars(select(LedgerEntry)).one()
        move = session.scalars(select(OrderTransition)).one()
        transaction = session.scalars(select(OrderTransaction)).one()
    assert (line.kind, line.effect_id, line.amount_minor, line.currency) == ("capture", "tx_1", 2500, "EUR")
    assert (line.event_id, line.provider_event_id, line.by) == (paid.id, paid.provider_event_id, "event")
    assert (move.from_state, move.to_state, move.event_id, move.by) == ("pending", "paid", paid.id, "event")
    assert (transaction.order_id, transaction.paying, transaction.refused) == (line.order_id, True, False)


def test_a_repeat_changes_nothing(deps: Deps) -> None:
    """The same effect under another event id: processed, repeat; the order stands as it was."""
    register(deps)
    _, again = receive(deps, event("succeeded"), event("succeeded"))

    assert (again.state, again.outcome) == (PROCESSED, "repeat")
    assert ledger(deps) == [("capture", 2500)]
    assert order(deps).row_version == 2


@pytest.mark.field_case(69)
def test_a_late_failure_never_undoes_money(deps: Deps) -> None:
    """Succeeded with sequence 5, then failed with sequence 3: paid, the second one stale."""
    register(deps)
    _, late = receive(deps, event("succeeded", sequence=5), event("failed", sequence=3))

    assert stands(deps) == ("paid", 2500, 0)
    assert (late.state, late.outcome, late.reason) == (PROCESSED, "stale", "older_than_known")


@pytest.mark.field_case(71)
def test_pending_after_paid_is_stale(deps: Deps) -> None:
    """Succeeded (2), then pending (1): paid, and pending changes nothing."""
    register(deps)
    _, late = receive(deps, event("succeeded", sequence=2), event("pending", sequence=1))

    assert stands(deps)[0] == "paid"
    assert late.outcome == "stale"


@pytest.mark.field_case(85)
def test_nothing_overwrites_a_refunded_order(deps: Deps) -> None:
    """Refunded, then a status without a sequence and with a later time: unchanged."""
    register(deps)
    *_, late = receive(
        deps,
        event("succeeded"),
        event("refunded", effect_id="rf_1"),
        event("pending", occurred_at=NOW + timedelta(days=1)),
    )

    assert stands(deps) == ("refunded", 2500, 2500)
    assert late.outcome == "stale"


@pytest.mark.field_case(86)
def test_a_payment_may_fail_and_then_succeed(deps: Deps) -> None:
    """Failed (1), failed (2), succeeded (3) of one transaction: paid."""
    register(deps)
    receive(deps, event("failed", sequence=1), event("failed", sequence=2), event("succeeded", sequence=3))

    assert stands(deps)[0] == "paid"
    assert transitions(deps) == ["failed", "paid"]


@pytest.mark.field_case(76)
@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (event("other", order_reference=None, transaction_id=None), "no_money_meaning"),
        (event("other"), "no_money_meaning"),
        (event("succeeded", order_reference=None), "not_ours"),
        (event("pending", order_reference=None), "not_ours"),
        (event("failed", order_reference=None), "not_ours"),
        (event("authorized", order_reference=None), "not_ours"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.kind),
)
def test_what_is_not_ours_is_ignored(deps: Deps, facts: object, reason: str) -> None:
    """Ignore: processed with its reason on the first attempt; no order moves and nothing is retried."""
    register(deps)
    (ignored,) = receive(deps, facts)  # type: ignore[arg-type]

    assert (ignored.state, ignored.outcome, ignored.reason) == (PROCESSED, "ignored", reason)
    assert attempts(deps, ignored.id) == [(1, "ignored")]
    assert stands(deps) == ("pending", 0, 0)
    assert work(deps) == 0


REFUSALS = {
    "amount": (event("succeeded", amount_minor=2400), "order 25.00 EUR, event 24.00 EUR"),
    "currency": (event("succeeded", currency="USD"), "order 25.00 EUR, event 25.00 USD"),
    "effect": (event("captured", amount_minor=100), "a captured event without an id of its own (1.00 EUR)"),
    "unreadable_amount": (event("succeeded", facts_error="unreadable_amount"), "the event's amount"),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_a_contradiction_fails_and_moves_nothing(deps: Deps, reason: str) -> None:
    """Refuse: failed with the reason and both sides in a sentence; the order stands as it was."""
    facts, sentence = REFUSALS[reason]
    register(deps)
    (refused,) = receive(deps, facts)

    assert (refused.state, refused.outcome, refused.reason) == (FAILED, reason, reason)
    assert refused.last_error_code == reason
    assert refused.last_error is not None
    assert refused.last_error.startswith(sentence)
    assert attempts(deps, refused.id) == [(1, "failed")]
    assert (stands(deps), ledger(deps), order(deps).row_version) == (("pending", 0, 0), [], 1)


@pytest.mark.field_case(78)
def test_another_account_pays_nothing(make_deps: MakeDeps) -> None:
    """An event of another merchant account fails `account`, one of the test mode `mode`; the order stays."""
    deps = make_deps(sources={"demo": Source("demo", "demo", account="acct_ours", live=True)})
    register(deps)
    other, test, nameless, right = receive(
        deps,
        event("succeeded", account="acct_other", live=True),
        event("succeeded", account="acct_ours", live=False),
        event("succeeded"),
        event("succeeded", account="acct_ours", live=True),
    )

    assert [one.reason for one in (other, test, nameless)] == ["account", "mode", "account"]
    assert order(deps).state == "paid"
    assert right.outcome == "applied"


def test_a_source_that_this_worker_does_not_know_moves_nothing(make_deps: MakeDeps) -> None:
    """Without the source's account and mode nothing can be compared: the event waits for its settings."""
    deps = make_deps(sources={})
    register(deps)
    (waiting,) = receive(deps, event("succeeded"))

    assert (waiting.state, waiting.parked_reason) == (PENDING, "source_unknown")
    assert stands(deps) == ("pending", 0, 0)


@pytest.mark.field_case(107)
@pytest.mark.parametrize("first", [7, 8])
def test_the_higher_sequence_stands(deps: Deps, first: int) -> None:
    """Failed (8) and pending (7) of one transaction in either order: failed stands."""
    register(deps)
    both = {7: event("pending", sequence=7), 8: event("failed", sequence=8)}
    receive(deps, both[first], both[15 - first])

    assert order(deps).state == "failed"


def test_one_batch_is_worked_as_one(deps: Deps) -> None:
    """Events of one order in one batch are decided one after the other, each seeing the one before."""
    register(deps)
    ids = store(
        deps,
        event("authorized"),
        event("captured", effect_id="cap_1", amount_minor=1000),
        event("captured", effect_id="cap_2", amount_minor=1500),
        event("captured", effect_id="cap_3", amount_minor=1),
        event("refunded", effect_id="rf_1", amount_minor=500),
        event("refunded", effect_id="rf_1", amount_minor=500),
        event("dispute_opened", effect_id="dp_1"),
    )

    assert work(deps) == 7

    assert [outcome(deps, one)[1] for one in ids] == [
        "applied", "applied", "applied", "amount", "applied", "repeat", "applied",
    ]  # fmt: skip
    assert transitions(deps) == [
        "authorized", "partially_paid", "paid", "partially_refunded", "disputed",
    ]  # fmt: skip
    found = order(deps)
    assert (found.authorized_minor, found.captured_minor, found.refunded_minor) == (2500, 2500, 500)


def test_events_of_many_orders_in_one_batch(deps: Deps) -> None:
    """A batch over many orders moves each by its own events alone."""
    for number in range(30):
        register(deps, f"o_{number}")
        store(deps, event("succeeded", order_reference=f"o_{number}", transaction_id=f"tx_{number}"))
        if number % 2:
            store(deps, event("refunded", order_reference=None, transaction_id=f"tx_{number}"))

    work(deps)

    assert [stands(deps, f"o_{number}")[0] for number in range(30)] == ["paid", "refunded"] * 15


def test_the_minutes_count_what_became_of_each(deps: Deps, clock: FixedClock) -> None:
    """Each result is counted in its source's minute, with the time from receipt where the event ended."""
    register(deps)
    store(deps, event("succeeded"), event("succeeded"), event("succeeded", amount_minor=1),
          event("refunded", order_reference="o_2", transaction_id="tx_2"))  # fmt: skip
    clock.move(timedelta(seconds=3))
    work(deps)

    with deps.sessions() as session:
        counted = {one.result: one for one in session.scalars(select(InboxMinute))}
    assert {result: one.count for result, one in counted.items()} == {
        "applied": 1,
        "repeat": 1,
        "failed": 1,
        "parked": 1,
    }
    assert counted["applied"].minute == minute_of(NOW)
    assert counted["applied"].buckets is not None
    assert 3000 <= counted["applied"].total_ms < 10_000
    assert sum(counted["applied"].buckets) == 1
    assert sum(counted["parked"].buckets or []) == 0


def test_the_end_of_a_wait_is_counted_by_what_it_became(deps: Deps, clock: FixedClock) -> None:
    """A refund of a payment that never was ours is counted as ignored at its deadline."""
    (refund,) = store(deps, event("refunded", order_reference=None, effect_id="rf_1"))
    work(deps)
    clock.move(timedelta(hours=72))
    work(deps)

    assert outcome(deps, refund) == (PROCESSED, "ignored", "not_ours")
    assert row(deps, refund).last_error is None
    with deps.sessions() as session:
        counted = session.execute(text("SELECT result, count FROM inbox_minutes ORDER BY minute")).all()
    assert [tuple(one) for one in counted] == [("parked", 1), ("ignored", 1)]
