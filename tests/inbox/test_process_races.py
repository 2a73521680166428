"""Races: whatever two workers, operators and providers do at once, nothing is lost and nothing doubled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.inbox import work_batch as batch_module
from receiver.inbox.claimed import COLUMNS, Claimed, claimed_from
from receiver.inbox.duties import expire_events
from receiver.inbox.table import INBOX
from receiver.inbox.work_batch import ClaimLost, work_batch
from receiver.orders.record import FactsChanged
from receiver.queue.claim import claim
from tests.conftest import MakeDeps
from tests.factories import NOW

from .gestures import event, ledger, outcome, receive, register, row, stands, store, transitions, work

BARE = {"order_reference": None}


def taken(deps: Deps, claim_id: UUID, batch: int = 100) -> list[Claimed]:
    """Claim rows as a worker does."""
    with deps.sessions.begin() as session:
        rows = claim(
            session,
            INBOX,
            COLUMNS,
            claim_id=claim_id,
            worker="w",
            batch=batch,
            lease=deps.settings.lease,
            now=NOW,
        )
    return [claimed_from(one) for one in rows]


class Worker:
    """One worker's transaction, opened and committed by hand."""

    def __init__(self, deps: Deps, facts: object) -> None:
        self.deps = deps
        self.claim_id = uuid4()
        (self.row_id,) = store(deps, facts)  # type: ignore[arg-type]
        self.rows = taken(deps, self.claim_id)
        self.session = deps.sessions()

    def decide(self, now: datetime = NOW) -> None:
        """Work the row, without a commit."""
        work_batch(self.session, self.deps.settings, self.claim_id, self.rows, worker="w", now=now)

    def decide_until_free(self) -> None:
        """Work the row and commit, deciding anew as often as the facts changed."""
        for _ in range(5):
            try:
                self.decide()
                self.session.commit()
                return
            except (FactsChanged, IntegrityError):
                self.session.rollback()
        raise AssertionError("the facts never stand still")


@contextmanager
def in_thread(act: Callable[[], object]) -> Iterator[threading.Thread]:
    """Run an act beside the block; afterwards it must have come to its end."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield thread
    thread.join(30)
    assert not thread.is_alive()
    assert failed == []


def wait_until_blocked(deps: Deps) -> None:
    """Wait until some connection of this database waits for another one's lock."""
    query = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    for _ in range(3000):
        with deps.engine.connect() as connection:
            if connection.execute(query).scalar_one():
                return
    raise AssertionError("nobody waits")


@pytest.mark.parametrize("early", ["succeeded", "refunded"])
def test_unknown_was_decided_but_not_committed_when_another_binds(deps: Deps, early: str) -> None:
    """A decided `not known` and has not committed, B binds the transaction: A's event is worked again."""
    register(deps)
    a = Worker(deps, event(early, **BARE))
    b = Worker(deps, event("authorized"))
    a.decide()

    with in_thread(b.decide_until_free):
        wait_until_blocked(deps)
        a.session.commit()
    work(deps)

    assert outcome(deps, b.row_id)[1] == "applied"
    if early == "succeeded":
        assert outcome(deps, a.row_id)[1] == "applied"
        assert stands(deps)[0] == "paid"
    else:
        assert outcome(deps, a.row_id) == ("pending", None, "before_capture")


@pytest.mark.parametrize("early", ["succeeded", "refunded"])
def test_bound_but_not_committed_when_another_finds_nothing(deps: Deps, early: str) -> None:
    """B bound the transaction and has not committed, A finds it unknown: A waits and decides anew."""
    register(deps)
    a = Worker(deps, event(early, **BARE))
    b = Worker(deps, event("authorized"))
    b.decide()

    with in_thread(a.decide_until_free):
        wait_until_blocked(deps)
        b.session.commit()

    assert outcome(deps, a.row_id)[2] in (None, "before_capture")
    assert stands(deps)[0] == ("paid" if early == "succeeded" else "authorized")


def test_bound_but_not_committed_when_the_deadline_ends_what_waited(deps: Deps, clock: FixedClock) -> None:
    """B bound the transaction and has not committed, its parked refund's deadline passes: the refund is
    not ended as somebody else's but goes round again.
    """
    register(deps)
    (refund,) = receive(deps, event("refunded", **BARE))
    assert refund.parked_reason == "transaction_unknown"
    b = Worker(deps, event("succeeded"))
    b.decide(now=clock.move(timedelta(hours=73)))

    with in_thread(lambda: expire_events(deps)):
        wait_until_blocked(deps)
        b.session.commit()
    work(deps)

    assert outcome(deps, refund.id) == ("processed", "applied", None)
    assert stands(deps)[0] == "refunded"


def test_two_orders_claim_one_transaction(deps: Deps) -> None:
    """Two workers bind one transaction to two orders at once: one order gets it, the other event fails."""
    for reference in ("o_1", "o_2"):
        register(deps, reference)
    a = Worker(deps, event("succeeded"))
    b = Worker(deps, event("succeeded", order_reference="o_2"))
    a.decide()

    with in_thread(b.decide_until_free):
        wait_until_blocked(deps)
        a.session.commit()

    assert outcome(deps, a.row_id)[1] == "applied"
    assert outcome(deps, b.row_id) == ("failed", "transaction", "transaction")
    assert stands(deps, "o_2") == ("pending", 0, 0)


@pytest.mark.field_case(107)
def test_two_events_of_one_order_in_two_workers(deps: Deps) -> None:
    """Sequence 8 commits while 7 waits for the order: 7 is decided on what 8 left, and is stale."""
    register(deps)
    seven = Worker(deps, event("pending", sequence=7))
    eight = Worker(deps, event("failed", sequence=8))
    eight.decide()

    with in_thread(seven.decide_until_free):
        wait_until_blocked(deps)
        eight.session.commit()

    assert outcome(deps, seven.row_id)[1] == "stale"
    assert stands(deps)[0] == "failed"


@pytest.mark.field_case(105)
def test_one_payment_told_twice_at_once(deps: Deps) -> None:
    """Two events of one payment, as a provider and a catch-up tell it, in two workers: one transition."""
    register(deps)
    told = Worker(deps, event("succeeded"))
    found = Worker(deps, event("succeeded"))
    told.decide()

    with in_thread(found.decide_until_free):
        wait_until_blocked(deps)
        told.session.commit()

    assert (outcome(deps, told.row_id)[1], outcome(deps, found.row_id)[1]) == ("applied", "repeat")
    assert list(transitions(deps)) == ["paid"]
    assert ledger(deps) == [("capture", 2500)]


def test_a_claim_taken_over_writes_nothing(deps: Deps) -> None:
    """A worker whose rows another one has meanwhile raises, and its whole batch rolls back."""
    register(deps)
    slow = Worker(deps, event("succeeded"))
    with deps.sessions.begin() as session:
        session.execute(text("UPDATE webhook_events SET claim_id = gen_random_uuid()"))

    with pytest.raises(ClaimLost):
        slow.decide()
    slow.session.rollback()

    assert (stands(deps), ledger(deps)) == (("pending", 0, 0), [])
    assert row(deps, slow.row_id).state == "in_flight"


def test_a_batch_that_lost_a_row_works_the_others(deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of a batch was taken over: it is left to its new owner, the others are worked."""
    for number in range(3):
        register(deps, f"o_{number}")
    facts = [event("succeeded", order_reference=f"o_{n}", transaction_id=f"tx_{n}") for n in range(3)]
    ids = store(deps, *facts)
    real, stolen = batch_module.load, []

    def steal(session: Session, events: object) -> object:
        if not stolen:
            with deps.sessions.begin() as other:
                other.execute(
                    text("UPDATE webhook_events SET claim_id = gen_random_uuid() WHERE id = :id"),
                    {"id": ids[1]},
                )
            stolen.append(True)
        return real(session, events)  # type: ignore[arg-type]

    monkeypatch.setattr(batch_module, "load", steal)
    work(deps)

    assert [row(deps, one).state for one in ids] == ["processed", "in_flight", "processed"]
    assert stands(deps, "o_1") == ("pending", 0, 0)


@pytest.mark.field_case(96)
@pytest.mark.parametrize("isolation", ["serializable", "repeatable read"])
def test_a_strict_default_isolation_breaks_nothing(deps: Deps, make_deps: MakeDeps, isolation: str) -> None:
    """Two events of one order in parallel on a database whose default is serializable: both are applied."""
    with deps.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f"ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'"))
    strict = make_deps()
    with strict.sessions() as session:
        assert session.execute(text("SHOW transaction_isolation")).scalar_one() == "read committed"
    with strict.intake_engine.connect() as connection:
        assert connection.execute(text("SHOW transaction_isolation")).scalar_one() == "read committed"
    register(strict)
    first = Worker(strict, event("captured", effect_id="cap_1", amount_minor=1000))
    second = Worker(strict, event("captured", effect_id="cap_2", amount_minor=1500))
    first.decide()

    with in_thread(second.decide_until_free):
        wait_until_blocked(strict)
        first.session.commit()

    assert stands(strict) == ("paid", 2500, 0)


def test_a_deadlock_repeats_the_transaction(deps: Deps, monkeypatch: pytest.MonkeyPatch) -> None:
    """The victim of a real deadlock works its batch again with the same attempt, and says nothing failed."""
    register(deps)
    (row_id,) = store(deps, event("succeeded"))
    real, tries = batch_module.add_minutes, []
    ready, holding = threading.Event(), threading.Event()

    def cross(session: Session, counted: object) -> None:
        tries.append(True)
        if len(tries) == 1:
            session.execute(text("SET LOCAL deadlock_timeout = '10ms'"))
            ready.set()
            holding.wait(10)
            session.execute(text("SELECT * FROM pauses WHERE key = 'x' FOR UPDATE"))
        real(session, counted)  # type: ignore[arg-type]

    def rival() -> None:
        with deps.sessions.begin() as session:
            session.execute(text("SET LOCAL deadlock_timeout = '60s'"))
            session.execute(text("SELECT * FROM pauses WHERE key = 'x' FOR UPDATE"))
            ready.wait(10)
            holding.set()
            session.execute(text("SELECT * FROM orders FOR UPDATE"))

    with deps.sessions.begin() as session:
        session.execute(
            text(
                "INSERT INTO pauses (queue, key, by, reason, paused_at)"
                " VALUES ('inbox', 'x', 'o', 'r', now())"
            )
        )
    monkeypatch.setattr(batch_module, "add_minutes", cross)
    with in_thread(rival):
        work(deps)

    assert len(tries) == 2
    assert outcome(deps, row_id) == ("processed", "applied", None)
    assert row(deps, row_id).attempts == 1
    assert transitions(deps) == ["paid"]
