"""Keeps the alerts by the verdicts: opens, makes worse, reminds, closes, and writes what is to be told.

Rows and notices are written in one transaction; telling comes after its commit. Any number of processes
may do this at once: open alerts are locked, and a new one is inserted by one of them alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from receiver.alert_settings import AlertSettings
from receiver.alerts.examples import ends_since, examples
from receiver.alerts.models import Alert, AlertNotice
from receiver.alerts.turns import TOLD, Standing, Turn, turn
from receiver.alerts.verdicts import Verdict
from receiver.alerts.words import About, compose
from receiver.db import at

SUMMED_UP = frozenset({"dead_letters", "source_failing", "expiring", "silence"})
"""Kinds whose recovery says what became of the source's events meanwhile."""

KEPT = timedelta(days=90)
"""How long an alert that is over can be looked up."""

FORGOTTEN_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Turned:
    """What became of one alert in this look; ``since`` is when what is wrong began."""

    alert_id: int
    kind: str
    key: str
    turn: Turn
    since: datetime


def keep(
    session: Session,
    verdicts: Sequence[Verdict],
    looked_at: Collection[str],
    *,
    limits: AlertSettings,
    give_up: timedelta,
    now: datetime | None = None,
) -> list[Turned]:
    """Bring the alerts of the kinds that were looked at to what the verdicts say; what was told of them.

    ``give_up`` is how long events are tried, for the texts. Never commits.
    """
    instant: datetime = session.execute(select(at(now))).scalar_one()
    holding = {(verdict.kind, verdict.key): verdict for verdict in verdicts if verdict.kind in looked_at}
    open_ones = session.scalars(
        select(Alert)
        .where(Alert.closed_at.is_(None), Alert.kind.in_(sorted(looked_at)))
        .order_by(Alert.id)
        .with_for_update()
    ).all()
    known = {(alert.kind, alert.key): alert for alert in open_ones}
    turned = []
    # In one order, so that two processes that open alerts wait for and never block each other.
    for name in sorted({*known, *holding}):
        verdict, alert = holding.get(name), known.get(name)
        standing = _standing(alert) if alert is not None else None
        due = turn(standing, verdict, instant, remind=limits.remind, recovery=limits.recovery)
        row = _apply(session, due, alert, verdict, instant)
        if row is None or due not in TOLD:
            continue
        _write_notices(session, row, due, limits, give_up, instant)
        turned.append(Turned(row.id, row.kind, row.key, due, row.since))
    return turned


def forget(session: Session, *, now: datetime | None = None) -> int:
    """Delete the oldest alerts that are over for KEPT, with their notices; returns their number."""
    oldest = (
        select(Alert.id)
        .where(Alert.closed_at < at(now) - KEPT)
        .order_by(Alert.closed_at)
        .limit(FORGOTTEN_AT_ONCE)
    )
    # By their ids, fetched first: a statement that deletes by a limited sub-select may be planned as a scan.
    ids = session.scalars(oldest).all()
    if ids:
        session.execute(delete(Alert).where(Alert.id.in_(ids)))
    return len(ids)


def _standing(alert: Alert) -> Standing:
    return Standing(
        step=alert.step,
        seen_at=alert.seen_at,
        opened_at=alert.opened_at,
        absent_since=alert.absent_since,
        noticed_at=alert.noticed_at,
        acknowledged=alert.acknowledged_at is not None,
    )


def _apply(
    session: Session, due: Turn, alert: Alert | None, verdict: Verdict | None, now: datetime
) -> Alert | None:
    """Write a turn; the alert as it stands then, None where there is none (any more)."""
    if alert is None:
        return _begin(session, due, verdict, now) if verdict is not None else None
    changes: dict[str, Any] = {}
    match due:
        case Turn.FORGOTTEN:
            session.execute(delete(Alert).where(Alert.id == alert.id))
            return None
        case Turn.FADING:
            changes = {"absent_since": now}
        case Turn.BACK:
            changes = {"absent_since": None}
        case Turn.RECOVERED:
            changes = {"closed_at": now, "noticed_at": now}
        case Turn.OPENED | Turn.WORSE | Turn.REMINDER if verdict is not None:
            changes = {
                "absent_since": None,
                "noticed_at": now,
                "opened_at": alert.opened_at or now,
                "step": max(alert.step, verdict.step),
                "level": verdict.level,
                "facts": dict(verdict.facts),
            }
            if due is Turn.WORSE:
                changes |= {"acknowledged_at": None, "acknowledged_by": None}
    if changes:
        session.execute(update(Alert).where(Alert.id == alert.id).values(changes))
        session.refresh(alert)
    return alert


def _begin(session: Session, due: Turn, verdict: Verdict, now: datetime) -> Alert | None:
    opened = due is Turn.OPENED
    statement = (
        upsert(Alert)
        .values(
            kind=verdict.kind,
            key=verdict.key,
            level=verdict.level,
            step=verdict.step,
            facts=dict(verdict.facts),
            since=min(verdict.since or now, now),
            seen_at=now,
            opened_at=now if opened else None,
            noticed_at=now if opened else None,
        )
        .on_conflict_do_nothing(index_elements=["kind", "key"], index_where=text("closed_at IS NULL"))
        .returning(Alert.id)
    )
    alert_id = session.execute(statement).scalar_one_or_none()
    # None: another process opened it in this very moment, and tells it.
    return session.get(Alert, alert_id) if alert_id is not None else None


def _write_notices(
    session: Session, alert: Alert, due: Turn, limits: AlertSettings, give_up: timedelta, now: datetime
) -> None:
    channels = [
        channel
        for channel in limits.told_of(alert.level)
        # A channel that is down is not told of its own fall over itself.
        if (alert.kind, alert.key) != ("channel_down", channel.name)
    ]
    if not channels:
        return
    summed_up = due is Turn.RECOVERED and alert.kind in SUMMED_UP
    about = About(
        kind=alert.kind,
        key=alert.key,
        level=alert.level,
        step=alert.step,
        turn=due,
        since=alert.since,
        now=now,
        facts=alert.facts,
        give_up=give_up,
        examples=examples(session, alert.kind, alert.key),
        ends=ends_since(session, alert.key, alert.since, now) if summed_up else None,
    )
    subject, body = compose(about, limits.public_url)
    # A channel that was down for days wants the last reminder, not all of them.
    session.execute(
        update(AlertNotice)
        .where(
            AlertNotice.alert_id == alert.id,
            AlertNotice.turn == Turn.REMINDER.value,
            AlertNotice.state == "due",
        )
        .values(state="dropped")
    )
    session.execute(
        insert(AlertNotice),
        [
            {
                "alert_id": alert.id,
                "turn": due.value,
                "level": alert.level,
                "channel": channel.name,
                "subject": subject,
                "body": body,
                "created_at": now,
                "due_at": now,
            }
            for channel in channels
        ],
    )
