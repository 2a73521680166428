"""The duty: look, keep the alerts by what was seen, and tell; and the web's own small look.

A worker looks at everything. That no worker is left only somebody else can see: each web process looks at
the heartbeats, and tells what nobody else would. Many may look at once; one of them opens an alert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from receiver.alerts.channels import send
from receiver.alerts.keep import Turned, forget, keep
from receiver.alerts.read import read_readings, read_workers
from receiver.alerts.tell import Send, tell_due
from receiver.alerts.turns import Turn
from receiver.alerts.verdicts import KINDS, Verdict, judge, judge_workers
from receiver.db import at
from receiver.deps import Deps
from receiver.logs import logger

Judge = Callable[[Session, datetime], Iterable[Verdict]]
"""Verdicts of another room, such as drift: read in the same transaction."""

React = Callable[[Session, Turned], None]
"""What another room does when an alert turns, such as asking the provider of a source gone silent."""

SEEN_HERE = frozenset(KINDS) - {"drift"}

log = logger("alerts")


def look(deps: Deps, others: Sequence[tuple[str, Judge]] = (), react: React | None = None) -> list[Turned]:
    """Read, judge, and keep the alerts; what opened, became worse, was reminded of or is over.

    ``others`` are kinds that other rooms judge, ``react`` what another room does about a turn.
    """
    settings = deps.settings
    with deps.sessions.begin() as session:
        readings = read_readings(session, settings, unix=deps.clock.unix(), now=deps.clock.now())
        verdicts = judge(readings, settings.alerts)
        for _kind, judged in others:
            verdicts += judged(session, readings.now)
        turned = keep(
            session,
            verdicts,
            SEEN_HERE | {kind for kind, _judged in others},
            limits=settings.alerts,
            give_up=settings.give_up,
            now=deps.clock.now(),
        )
        for one in turned:
            _react(session, one, react)
        forget(session, now=deps.clock.now())
    return _logged(turned)


def _react(session: Session, one: Turned, react: React | None) -> None:
    if react is None:
        return
    try:
        # In the alert's transaction, so that a crash undoes both; a fault of the reaction keeps the alert.
        with session.begin_nested():
            react(session, one)
    except Exception as error:
        log.warning("alert.no_reaction", kind=one.kind, key=one.key, error=type(error).__name__)


def look_for_workers(deps: Deps, *, channel_send: Send = send) -> list[Turned]:
    """The web's look: is a worker alive? With none, it also tells what is due."""
    settings = deps.settings
    with deps.sessions.begin() as session:
        now: datetime = session.execute(select(at(deps.clock.now()))).scalar_one()
        workers = read_workers(session, stale=settings.worker_stale, now=now)
        verdicts = list(judge_workers(workers, now))
        turned = keep(
            session,
            verdicts,
            {"no_worker"},
            limits=settings.alerts,
            give_up=settings.give_up,
            now=deps.clock.now(),
        )
    _logged(turned)
    if verdicts:
        tell_due(deps, channel_send=channel_send)
    return turned


def look_and_tell(
    deps: Deps,
    others: Sequence[tuple[str, Judge]] = (),
    react: React | None = None,
    *,
    channel_send: Send = send,
) -> list[Turned]:
    """What the worker does every half minute."""
    turned = look(deps, others, react)
    tell_due(deps, channel_send=channel_send)
    return turned


def _logged(turned: list[Turned]) -> list[Turned]:
    for one in turned:
        say = log.info if one.turn is Turn.RECOVERED else log.warning
        say(f"alert.{one.turn.value}", kind=one.kind, key=one.key, alert=one.alert_id)
    return turned
