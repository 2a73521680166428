"""Catch-up: list a window of the provider's own events and fill the inbox's gaps, slice by slice.

Each slice is listed until two lists in a row hold the same events: rows may move between pages while they
are read. Then it is stored, and the catch-up's mark moves, in one transaction; one that was killed goes on
from its mark, and what it stored is known. No transaction is open while the provider is asked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.db import at
from receiver.deps import Deps
from receiver.inbox.post_facts import Learnt, post_facts
from receiver.logs import logger
from receiver.providers.payment_api import PaymentAPI, Unavailable, Window
from receiver.providers.payment_event import Kind
from receiver.reconciliation.ask import Asker, list_window
from receiver.reconciliation.compare import Difference, say
from receiver.reconciliation.findings import keep_findings
from receiver.reconciliation.models import CatchUp

LEASE = timedelta(minutes=5)
SLICE = timedelta(hours=6)
LONGEST_SLICE = timedelta(days=30)
FULL = 500
"""Events of a slice from which on the next one is not made longer."""

SHORTEST = timedelta(seconds=1)
LISTS = 5
"""Lists of one slice at most, until two in a row agree; new events come to the youngest slice only."""

MAX_FAILURES = 8
LONGEST = timedelta(days=400)
CHUNK = 500

log = logger("reconcile")


class CatchUpRefused(Exception):
    """``code``: source_unknown, not_offered, bad_window, not_running."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Slice:
    """What listing one slice came to: up to where, and its events. ``failed``: no whole list was got."""

    end: datetime
    events: list[Learnt]
    failed: Unavailable | None = None


def begin_catch_up(
    session: Session,
    asker: Asker,
    source: str,
    *,
    catch_up_id: UUID,
    start: datetime,
    end: datetime,
    actor: str,
    reason: str,
    now: datetime | None = None,
) -> CatchUp:
    """Note a catch-up, with its audit row; the workers go on with it. Raises CatchUpRefused."""
    api = asker.api(source)
    if api is None:
        raise CatchUpRefused("source_unknown", f"there is no source {source} whose API can be asked")
    if not api.lists:
        raise CatchUpRefused("not_offered", f"the API of {source} lists no events")
    instant: datetime = session.execute(select(at(now))).scalar_one()
    # What comes after the start of the catch-up is for the callbacks.
    end = min(end, instant)
    if not start < end or end - start > LONGEST:
        raise CatchUpRefused("bad_window", f"a window begins before it ends, {LONGEST.days} days at most")
    row = CatchUp(
        id=catch_up_id,
        source=source,
        from_at=start,
        to_at=end,
        reached_at=start,
        next_at=instant,
        by=actor,
        reason=reason,
        created_at=instant,
    )
    session.add(row)
    record(
        session,
        actor=actor,
        action="source.catch_up",
        target=f"source:{source}",
        criteria={"from": start.isoformat(), "to": end.isoformat()},
        reason=reason,
        now=now,
    )
    session.flush()
    return row


_CLAIM = text(
    """\
UPDATE catch_ups SET claim_id = :claim_id,
  claimed_until = coalesce(CAST(:now AS timestamptz), now()) + CAST(:lease AS interval)
WHERE id = (
  SELECT id FROM catch_ups
  WHERE state = 'running' AND (id = CAST(:id AS uuid) OR CAST(:id AS uuid) IS NULL)
    AND next_at <= coalesce(CAST(:now AS timestamptz), now())
    AND (claimed_until IS NULL OR claimed_until < coalesce(CAST(:now AS timestamptz), now()))
    AND source = ANY(CAST(:sources AS text[]))
  ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING id"""
)


def advance_catch_ups(
    deps: Deps, asker: Asker, *, only: UUID | None = None, seconds: float = 20.0
) -> CatchUp | None:
    """Go on with one catch-up that is due, slice after slice, until it is done or the time is over.

    Returns it as it stands then; None: nothing was due.
    """
    ends = time.monotonic() + seconds
    claim_id = deps.dice.new_id()
    with deps.sessions.begin() as session:
        parameters = {"claim_id": claim_id, "lease": LEASE, "now": deps.clock.now(), "id": only}
        taken = session.execute(_CLAIM, {**parameters, "sources": asker.open_sources()}).scalar_one_or_none()
        row = session.get(CatchUp, taken) if taken is not None else None
    if row is None:
        return None
    api = asker.api(row.source)
    length = SLICE
    while api is not None and row.state == "running":
        found = list_slice(api, row.reached_at, row.to_at, length)
        # Quiet times go by in longer steps.
        length = min(LONGEST_SLICE, length * 2) if len(found.events) < FULL else SLICE
        if found.failed is not None:
            asker.close(row.source, found.failed)
        row = _settle(deps, row, claim_id, found)
        if row.claim_id != claim_id or found.failed is not None or time.monotonic() > ends:
            break
    return _released(deps, row, claim_id)


def list_slice(api: PaymentAPI, start: datetime, to: datetime, longest: timedelta = SLICE) -> Slice:
    """List from ``start`` until two lists agree; a slice that is too long for the API is halved."""
    length = min(longest, to - start)
    while True:
        end = start + length
        before: set[str] | None = None
        seen: dict[str, Learnt] = {}
        for _ in range(LISTS):
            events, broken = list_window(api, Window(start, end))
            seen.update({one.event.provider_event_id: one for one in events})
            if broken is not None:
                break
            ids = set(seen)
            if ids == before:
                return Slice(end, list(seen.values()))
            before = ids
        if broken is None:
            # It grows while it is read: all that any list held is kept.
            return Slice(end, list(seen.values()))
        if broken.reason != "too_many_pages" or length <= SHORTEST:
            return Slice(start, list(seen.values()), broken)
        length = max(length / 2, SHORTEST)


def _settle(deps: Deps, row: CatchUp, claim_id: UUID, found: Slice) -> CatchUp:
    """Store a slice and move the mark, unless somebody else has taken the catch-up over."""
    now = deps.clock.now()
    with deps.sessions.begin() as session:
        current = session.get(CatchUp, row.id, with_for_update=True)
        if current is None or current.claim_id != claim_id or current.state != "running":
            return current or row
        new = _store(session, deps, found.events, now)
        current.missing += new
        instant: datetime = session.execute(select(at(now))).scalar_one()
        current.claimed_until = instant + LEASE
        if found.failed is not None:
            current.failures += 1
            current.last_error = f"{found.failed.reason}: {found.failed.detail}"
            wait = found.failed.retry_after or timedelta(minutes=1) * 2 ** min(current.failures - 1, 6)
            current.next_at = instant + wait
            if current.failures >= MAX_FAILURES:
                current.state, current.finished_at = "failed", instant
            return current
        current.listed += len(found.events)
        current.reached_at, current.failures, current.last_error = found.end, 0, None
        if current.reached_at >= current.to_at:
            current.state, current.finished_at = "done", instant
            log.info("catch_up.done", source=row.source, listed=current.listed, missing=current.missing)
        return current


def _store(session: Session, deps: Deps, events: list[Learnt], now: datetime | None) -> int:
    """Post the events that are not there; returns how many were missing."""
    ordered = sorted(events, key=lambda one: one.event.provider_event_id)
    new = 0
    for first in range(0, len(ordered), CHUNK):
        chunk = ordered[first : first + CHUNK]
        posted = post_facts(
            session, chunk, origin="catch_up", dice=deps.dice, give_up=deps.settings.give_up, now=now
        )
        missing = {one.provider_event_id for one in posted if one.new}
        new += len(missing)
        _note_unknown(session, [one for one in chunk if one.event.provider_event_id in missing], now)
    return new


def _note_unknown(session: Session, events: list[Learnt], now: datetime | None) -> None:
    """Payments for orders that nobody registered: money that we know nothing of."""
    facts = [one.event.facts for one in events]
    money = [
        fact
        for fact in facts
        if fact.order_reference and fact.kind not in (Kind.PENDING, Kind.FAILED, Kind.OTHER)
    ]
    if not money:
        return
    references = sorted({fact.order_reference for fact in money if fact.order_reference})
    known = set(
        session.scalars(
            text("SELECT reference FROM orders WHERE reference = ANY(CAST(:r AS text[]))"), {"r": references}
        )
    )
    by_source: dict[str, list[Difference]] = {}
    for fact in money:
        if fact.order_reference in known or fact.order_reference is None:
            continue
        by_source.setdefault(fact.source, []).append(
            Difference(
                "unknown_to_us",
                fact.order_reference,
                fact.transaction_id or "",
                "no such order is registered",
                say(fact),
            )
        )
    for source, differences in by_source.items():
        keep_findings(session, source, differences, {}, now=now)


def _released(deps: Deps, row: CatchUp, claim_id: UUID) -> CatchUp:
    with deps.sessions.begin() as session:
        session.execute(
            text(
                "UPDATE catch_ups SET claim_id = NULL, claimed_until = NULL"
                " WHERE id = :id AND claim_id = :claim_id"
            ),
            {"id": row.id, "claim_id": claim_id},
        )
        return session.get(CatchUp, row.id) or row


def cancel_catch_up(
    session: Session, catch_up_id: UUID, *, actor: str, reason: str, now: datetime | None = None
) -> None:
    """End a running catch-up; what it stored stays. Raises CatchUpRefused."""
    row = session.get(CatchUp, catch_up_id, with_for_update=True)
    if row is None or row.state != "running":
        raise CatchUpRefused("not_running", "this catch-up does not run")
    row.state, row.finished_at = "cancelled", session.execute(select(at(now))).scalar_one()
    row.claim_id = row.claimed_until = None
    record(
        session,
        actor=actor,
        action="source.catch_up_cancel",
        target=f"source:{row.source}",
        criteria={"from": row.from_at.astimezone(UTC).isoformat()},
        reason=reason,
        now=now,
    )
