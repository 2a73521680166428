"""The duty: enrol what is due, ask, close what is settled, and go on with catch-ups."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.reconciliation.ask import Asker, askable
from receiver.reconciliation.catch_up import advance_catch_ups
from receiver.reconciliation.check import check_due
from receiver.reconciliation.demand import check_source_now
from receiver.reconciliation.findings import settle_findings
from receiver.reconciliation.subjects import enrol


class Reconciler:
    """Reconciliation in one worker process: its APIs, access tokens and circuits."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._asker = Asker(deps)

    def use(self, deps: Deps) -> None:
        """Work by other settings from now on."""
        self._deps = deps
        self._asker = Asker(deps)

    def tick(self, seconds: float = 20.0) -> int:
        """One round; returns how many orders were asked for."""
        deps, settings = self._deps, self._deps.settings
        sources = askable(settings)
        with deps.sessions.begin() as session:
            settle_findings(session, now=deps.clock.now())
        if not sources or not settings.reconcile:
            return 0
        with deps.sessions.begin() as session:
            enrol(
                session,
                sources,
                after=settings.reconcile_after,
                longest=settings.reconcile_longest,
                now=deps.clock.now(),
            )
        advance_catch_ups(deps, self._asker, seconds=seconds)
        return check_due(deps, self._asker, seconds=seconds)

    def look_after_silent(self, session: Session, source: str, since: datetime) -> int:
        """Ask at once what a source that fell silent did not send; returns how many orders are asked for."""
        if not self._deps.settings.reconcile:
            return 0
        return check_source_now(
            session,
            self._asker,
            self._deps.settings,
            source,
            since=since,
            catch_up_id=self._deps.dice.new_id(),
            now=self._deps.clock.now(),
        )
