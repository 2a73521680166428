"""The record of what people did, written in the transaction of the act itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from receiver.accounts.models import OperatorAction
from receiver.db import at

PAGE_MAX = 500


def record(
    session: Session,
    *,
    actor: str,
    action: str,
    target: str,
    criteria: dict[str, Any] | None = None,
    count: int = 1,
    reason: str | None = None,
    now: datetime | None = None,
) -> None:
    """Note one act. ``actor`` is a user's name, ``cli:<os user>`` or ``system``; ``target`` names a row.

    ``criteria`` is the filter of an act on many rows, ``count`` how many it changed.
    """
    session.execute(
        insert(OperatorAction).values(
            at=at(now),
            actor=actor,
            action=action,
            target=target,
            criteria=criteria,
            count=count,
            reason=reason,
        )
    )


def list_actions(
    session: Session,
    before_id: int | None = None,
    limit: int = 50,
    *,
    actor: str | None = None,
    action: str | None = None,
    target: str | None = None,
) -> Sequence[OperatorAction]:
    """The newest acts first; ``before_id`` continues after the last row of a page. The others are exact."""
    statement = select(OperatorAction).order_by(OperatorAction.id.desc()).limit(min(limit, PAGE_MAX))
    if before_id is not None:
        statement = statement.where(OperatorAction.id < before_id)
    asked = {OperatorAction.actor: actor, OperatorAction.action: action, OperatorAction.target: target}
    statement = statement.where(*(column == value for column, value in asked.items() if value is not None))
    return session.scalars(statement).all()
