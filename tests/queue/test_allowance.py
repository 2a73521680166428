"""How often programs may replay one key: any sixty seconds, whoever asks."""

from __future__ import annotations

import threading
from datetime import timedelta

from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.table import INBOX
from receiver.queue.allowance import A_MINUTE, take_allowance
from tests.factories import NOW


def test_a_minute_slides(session: Session) -> None:
    """So many in any sixty seconds, not in each minute of the clock; other keys have their own."""
    taken = [
        take_allowance(session, INBOX, "demo", most=3, now=NOW + timedelta(seconds=s))
        for s in (0, 20, 40, 50)
    ]
    assert taken == [True, True, True, False]
    assert take_allowance(session, INBOX, "lesson", most=3, now=NOW + timedelta(seconds=50))

    late = [
        take_allowance(session, INBOX, "demo", most=3, now=NOW + timedelta(seconds=s)) for s in (61, 62, 81)
    ]
    assert late == [True, False, True]


def test_a_rollback_gives_it_back(deps: Deps) -> None:
    """An act that was refused after all costs nothing."""
    for _ in range(3):
        with deps.sessions() as session:
            assert take_allowance(session, INBOX, "demo", most=1, now=NOW)
            session.rollback()


def test_racing_processes_never_take_more(deps: Deps) -> None:
    """Eight at once on one key: together they get what one alone would, not one more."""
    taken: list[bool] = []

    def take() -> None:
        for _ in range(20):
            with deps.sessions.begin() as session:
                taken.append(take_allowance(session, INBOX, "demo"))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(taken), sum(taken)) == (160, A_MINUTE)
