"""Failures grouped by cause: what is dead, why, since when, and what people said about it.

A cause is source, reason code, event type and, for faults of ours, the place in our code. The groups are
found by hopping over the index of causes, so that their number and not that of the rows costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.db import at
from receiver.inbox.counts import LOOK_AT, Count, bounded
from receiver.inbox.filter import DEAD, NONE, Filter, is_storable
from receiver.inbox.models import FailureGroup

STATES = ("open", "acknowledged", "resolved")

MAX_GROUPS = 200
"""Groups that one list shows."""

MAX_NOTE = 2000


class GroupRefused(Exception):
    """``code``: unknown_group, unknown_group_state, bad_note, no_reason."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A cause; ``event_type`` and ``place`` are empty where there is none."""

    source: str
    reason: str
    event_type: str = ""
    place: str = ""

    def filter(self) -> Filter:
        """The filter that selects exactly this group's rows."""
        return Filter(
            state=DEAD,
            source=self.source,
            reason=self.reason,
            event_type=self.event_type or NONE,
            place=self.place or NONE,
        )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str`` wrote. Raises GroupRefused."""
        parts = text.split("/")
        if len(parts) < 4 or "\0" in text:
            raise GroupRefused("unknown_group", "a group is named SOURCE/REASON/TYPE/PLACE, - for none")
        event_type, place = "/".join(parts[2:-1]), parts[-1]
        return cls(
            parts[0],
            parts[1],
            "" if event_type == NONE else event_type,
            "" if place == NONE else place,
        )

    def __str__(self) -> str:
        return "/".join((self.source, self.reason, self.event_type or NONE, self.place or NONE))


@dataclass(frozen=True, slots=True)
class Group:
    """Dead letters of one cause that nobody took out of the list.

    ``first_at`` and ``last_at`` are when the first and the last of them ended, ``example`` the last.
    ``reopened``: it had been resolved, and came back. ``by`` and ``at`` are those of the state.
    """

    key: GroupKey
    count: Count
    first_at: datetime
    last_at: datetime
    example: UUID
    state: str
    note: str
    by: str | None
    at: datetime | None
    reopened: bool


_CAUSE = "source, reason, coalesce(event_type, ''), coalesce(failed_in, '')"
_NAMED = "source, reason, coalesce(event_type, '') AS event_type, coalesce(failed_in, '') AS place"
# To the letter what the index of causes holds.
_DEAD = "state IN ('failed', 'expired') AND acknowledged_at IS NULL"
_IN_GROUP = (
    f"{_DEAD} AND source = c.source AND reason = c.reason"
    " AND coalesce(event_type, '') = c.event_type AND coalesce(failed_in, '') = c.place"
)

_EVERY_CAUSE = f"""\
WITH RECURSIVE causes AS (
  (SELECT {_NAMED}, 1 AS number FROM webhook_events
   WHERE {_DEAD} AND source >= CAST(:source AS text) ORDER BY {_CAUSE} LIMIT 1)
  UNION ALL
  SELECT n.source, n.reason, n.event_type, n.place, c.number + 1
  FROM causes c CROSS JOIN LATERAL (
    SELECT {_NAMED} FROM webhook_events
    WHERE {_DEAD} AND ({_CAUSE}) > (c.source, c.reason, c.event_type, c.place)
    ORDER BY {_CAUSE} LIMIT 1
  ) n
  WHERE c.number < :groups
)
"""

_ONE_CAUSE = """\
WITH causes AS (
  SELECT CAST(:source AS text) AS source, CAST(:reason AS text) AS reason,
         CAST(:event_type AS text) AS event_type, CAST(:place AS text) AS place
)
"""

_READ = f"""\
SELECT c.source, c.reason, c.event_type, c.place, counted.number, firsts.ended AS first_at,
       lasts.ended AS last_at, lasts.id AS example, g.state, g.note, g.by, g.at
FROM causes c
CROSS JOIN LATERAL (
  SELECT count(*) AS number FROM (SELECT 1 FROM webhook_events WHERE {_IN_GROUP} LIMIT :look_at) d
) counted
CROSS JOIN LATERAL (
  SELECT updated_at AS ended FROM webhook_events WHERE {_IN_GROUP} ORDER BY updated_at, id LIMIT 1
) firsts
CROSS JOIN LATERAL (
  SELECT updated_at AS ended, id FROM webhook_events WHERE {_IN_GROUP}
  ORDER BY updated_at DESC, id DESC LIMIT 1
) lasts
LEFT JOIN failure_groups g
  ON g.source = c.source AND g.reason = c.reason AND g.event_type = c.event_type AND g.place = c.place
"""

LIST = text(_EVERY_CAUSE + _READ + "WHERE NOT CAST(:only AS boolean) OR c.source = CAST(:source AS text)")
"""The statement of the list (its plan is tested)."""

_FIND = text(_ONE_CAUSE + _READ)


def list_groups(
    session: Session, *, source: str | None = None, state: str | None = None, limit: int = MAX_GROUPS
) -> list[Group]:
    """The groups that have dead letters, the largest first; of one source, or in one state."""
    parameters = {"source": source or "", "only": bool(source), "groups": limit, "look_at": LOOK_AT + 1}
    groups = [_group(row) for row in session.execute(LIST, parameters)]
    found = [group for group in groups if state is None or group.state == state]
    return sorted(found, key=lambda group: (-group.count.number, str(group.key)))


def find_group(session: Session, key: GroupKey) -> Group | None:
    """One group as it stands; None when none of its rows is dead any more."""
    row = session.execute(_FIND, {**asdict(key), "look_at": LOOK_AT + 1}).one_or_none()
    return None if row is None else _group(row)


def notes_on(session: Session, keys: Sequence[GroupKey]) -> dict[GroupKey, FailureGroup]:
    """What people said about these causes, whether rows of them are dead or not."""
    found = {}
    for key in keys:
        said = session.get(FailureGroup, (key.source, key.reason, key.event_type, key.place))
        if said is not None:
            found[key] = said
    return found


def set_group(
    session: Session,
    key: GroupKey,
    *,
    state: str,
    note: str | None = None,
    actor: str,
    reason: str,
    now: datetime | None = None,
) -> None:
    """Say how a group stands (open, acknowledged, resolved), with the audit row; ``note`` None keeps it.

    Raises GroupRefused.
    """
    if state not in STATES:
        raise GroupRefused("unknown_group_state", f"a group is {', '.join(STATES)}")
    if not reason.strip():
        raise GroupRefused("no_reason", "say why: the audit row keeps it")
    if note is not None and (len(note) > MAX_NOTE or not is_storable(note)):
        raise GroupRefused("bad_note", f"a note has up to {MAX_NOTE:,} characters, and no NUL")
    columns = asdict(key)
    values: dict[str, Any] = {"state": state, "by": actor, "at": at(now)}
    if note is not None:
        values["note"] = note.strip()
    statement = insert(FailureGroup).values(**columns, **{"note": "", **values})
    session.execute(statement.on_conflict_do_update(index_elements=list(columns), set_=values))
    record(
        session,
        actor=actor,
        action="group.set",
        target=f"group:{key}",
        criteria={**columns, "state": state, **({} if note is None else {"note": note.strip()})},
        reason=reason,
        now=now,
    )


def _group(row: Any) -> Group:
    reopened = row.state == "resolved" and row.last_at > row.at
    return Group(
        key=GroupKey(row.source, row.reason, row.event_type, row.place),
        count=bounded(row.number, LOOK_AT),
        first_at=row.first_at,
        last_at=row.last_at,
        example=row.example,
        state="open" if reopened or row.state is None else row.state,
        note=row.note or "",
        by=row.by,
        at=row.at,
        reopened=reopened,
    )
