"""The dry run: what a bulk replay would do, event by event, without doing it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox import dead_letters, dry_run
from receiver.inbox.dry_run import dry_run as run
from receiver.inbox.filter import Filter, FilterError
from receiver.settings import Secret, Source
from tests.conftest import MakeDeps
from tests.factories import NOW
from tests.inbox.gestures import event, register, store

KEYS = {"state": "failed", "outcome": "amount", "reason": "amount"}


@pytest.fixture
def three(deps: Deps) -> Iterator[Session]:
    """A capture and its refund of a known order, dead, and a payment of an unknown one."""
    register(deps)
    dead = {**KEYS, "finished_at": NOW}
    store(deps, event("succeeded"), event("refunded", effect_id="rf_1", amount_minor=500), **dead)
    store(deps, event("succeeded", order_reference="o_2", transaction_id="tx_2"), **dead)
    with deps.sessions() as session:
        yield session


def test_events_of_one_order_see_one_another(deps: Deps, three: Session) -> None:
    """A refund behind its capture is said to be applied, as the worker would; each outcome has a sentence."""
    found = run(three, deps.settings, Filter())

    assert (found.looked_at, found.more) == (3, False)
    first, second = found.outcomes
    assert (first.outcome, first.reason, first.count) == ("applied", None, 2)
    assert len(first.examples) == 2
    assert first.sentence == "It would be applied: order o_1 pending → paid."
    assert (second.outcome, second.reason, second.count) == ("parked", "order_unknown", 1)


def test_nothing_is_written_and_no_order_is_locked(deps: Deps, three: Session) -> None:
    """While the dry run's transaction is open, another one locks the orders at once, and nothing changed."""
    before = three.execute(text("SELECT array_agg(e ORDER BY e.id) FROM webhook_events e")).scalar_one()
    three.commit()
    run(three, deps.settings, Filter())
    with deps.sessions() as other:
        other.execute(text("SET LOCAL lock_timeout = '200ms'"))
        other.execute(text("SELECT * FROM orders FOR UPDATE"))
        other.execute(text("SELECT * FROM webhook_events FOR UPDATE"))
        other.rollback()
    assert three.execute(text("SELECT pg_current_xact_id_if_assigned()")).scalar_one() is None
    three.commit()

    assert (
        before == three.execute(text("SELECT array_agg(e ORDER BY e.id) FROM webhook_events e")).scalar_one()
    )
    assert three.execute(text("SELECT count(*) FROM ledger_entries")).scalar_one() == 0


def test_batches_and_the_limit(deps: Deps, three: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches judge the same events, a limit says that there are more."""
    monkeypatch.setattr(dry_run, "BATCH", 1)
    monkeypatch.setattr(dead_letters, "LOOK_AT", 2)

    alone = run(three, deps.settings, Filter())
    assert (alone.looked_at, alone.more) == (3, False)
    # Of different batches they do not see one another: the refund is said to wait.
    assert {(each.outcome, each.reason) for each in alone.outcomes} == {
        ("applied", None),
        ("parked", "before_capture"),
        ("parked", "order_unknown"),
    }
    limited = run(three, deps.settings, Filter(), limit=2)
    assert (limited.looked_at, limited.more) == (2, True)
    assert run(three, deps.settings, Filter(source="nobody")).outcomes == []


def test_it_is_asked_of_dead_letters_alone(deps: Deps, three: Session) -> None:
    """Other states are refused."""
    with pytest.raises(FilterError):
        run(three, deps.settings, Filter(state="processed"))


def test_what_must_be_read_back_is_not_guessed(make_deps: MakeDeps) -> None:
    """Of a row that the provider's API decides the dry run says just that, where the API can be asked."""
    key = {"key": Secret("env:KEY", "sk_never_shown")}
    rich = Source("rich", "xendit", (Secret("env:T", "t"),), api=key)
    poor = Source("poor", "xendit", (Secret("env:T", "t"),))
    deps = make_deps(sources={"rich": rich, "poor": poor})
    dead = {"state": "failed", "outcome": "unconfirmed", "reason": "unconfirmed", "finished_at": NOW}
    for source in ("rich", "poor"):
        store(deps, event("succeeded", source=source, facts_error="unconfirmed"), **dead)
    with deps.sessions() as session:
        found = run(session, deps.settings, Filter())

    assert {(each.outcome, each.reason, each.count) for each in found.outcomes} == {
        ("asked first", None, 1),
        ("failed", "unconfirmed", 1),
    }
    assert any("read back from the provider's API" in each.sentence for each in found.outcomes)
