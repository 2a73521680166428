"""Lists alerts and how they were told; acknowledges one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.alerts.models import Alert, AlertNotice
from receiver.db import at

MOST_CLOSED = 50


class AlertRefused(Exception):
    """``code``: unknown_alert, no_reason."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Alerts:
    """Those that stand open, the oldest first; those that are over, the newest first; their notices."""

    open: Sequence[Alert]
    closed: Sequence[Alert]
    notices: dict[int, Sequence[AlertNotice]]


def open_alerts(session: Session) -> Sequence[Alert]:
    """What stands open and was told, the oldest first."""
    return session.scalars(
        select(Alert)
        .where(Alert.closed_at.is_(None), Alert.opened_at.is_not(None))
        .order_by(Alert.opened_at, Alert.id)
    ).all()


def list_alerts(session: Session, *, limit: int = MOST_CLOSED) -> Alerts:
    """Open alerts, the newest that are over, and the last notices of each."""
    standing = open_alerts(session)
    over = session.scalars(
        select(Alert).where(Alert.closed_at.is_not(None)).order_by(Alert.closed_at.desc()).limit(limit)
    ).all()
    ids = [alert.id for alert in (*standing, *over)]
    notices: dict[int, list[AlertNotice]] = {alert_id: [] for alert_id in ids}
    for notice in session.scalars(
        select(AlertNotice).where(AlertNotice.alert_id.in_(ids)).order_by(AlertNotice.id)
    ):
        notices[notice.alert_id].append(notice)
    return Alerts(standing, over, dict(notices))


def acknowledge(
    session: Session, alert_id: int, *, actor: str, reason: str, now: datetime | None = None
) -> None:
    """Say that somebody is on it: no reminders until it becomes worse or is over; with the audit row.

    Raises AlertRefused.
    """
    if not reason.strip():
        raise AlertRefused("no_reason", "say why: the audit row keeps it")
    done = session.execute(
        update(Alert)
        .where(Alert.id == alert_id, Alert.closed_at.is_(None), Alert.opened_at.is_not(None))
        .values(acknowledged_at=at(now), acknowledged_by=actor)
        .returning(Alert.id)
    ).first()
    if done is None:
        raise AlertRefused("unknown_alert", f"no open alert has the number {alert_id}")
    record(
        session,
        actor=actor,
        action="alert.acknowledge",
        target=f"alert:{alert_id}",
        reason=reason.strip(),
        now=now,
    )
