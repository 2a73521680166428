"""Wake and send round again: which events wait for what an order or a transaction just became."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.accounts.actions import record
from receiver.arrays import Texts, Uuids
from receiver.orders.facts import TransactionKey
from receiver.queue.replay import NOW, ROUND_AGAIN

_OF_ORDERS = """\
SELECT w.id FROM webhook_events w WHERE w.order_reference = ANY(CAST(:references AS text[])) AND {condition}
UNION
SELECT w.id FROM unnest(CAST(:sources AS text[]), CAST(:transactions AS text[])) AS k(source, transaction_id)
  JOIN webhook_events w ON w.transaction_id = k.transaction_id AND w.source = k.source WHERE {condition}"""

_WAKE = text(
    f"""\
UPDATE webhook_events AS e SET next_attempt_at = {NOW}, row_version = e.row_version + 1, updated_at = {NOW}
WHERE e.state = 'pending' AND e.next_attempt_at > {NOW} AND e.id IN (
{_OF_ORDERS.format(condition="w.state = 'pending' AND w.parked_reason IS NOT NULL")})"""
)

_LIFTED = text(
    f"""\
UPDATE webhook_events AS e SET {ROUND_AGAIN.format(now=NOW)}
WHERE e.state IN ('failed', 'processed') AND e.id IN (
{_OF_ORDERS.format(condition="w.reason IN ('second_payment', 'surplus_returned')")})
RETURNING e.id"""
)

_NOT_OURS = text(
    f"""\
UPDATE webhook_events AS e SET {ROUND_AGAIN.format(now=NOW)}
WHERE e.state = 'processed' AND e.reason = 'not_ours' AND (e.source, e.transaction_id) IN (
  SELECT * FROM unnest(CAST(:sources AS text[]), CAST(:transactions AS text[])))
RETURNING e.id"""
)

# Without a look at order_id in WHERE: a row that is being bound has none yet, and must be waited for.
_BOUND_MEANWHILE = text(
    """\
SELECT x.source, x.transaction_id, x.order_id FROM order_transactions x
WHERE (x.source, x.transaction_id) IN (
  SELECT e.source, e.transaction_id FROM webhook_events e
  WHERE e.id = ANY(CAST(:ids AS uuid[])) AND e.state = 'processed' AND e.reason = 'not_ours')
ORDER BY x.source, x.transaction_id FOR UPDATE"""
)


# Without a look at order_id in WHERE: a row that is being bound has none yet, and must be waited for.
_BOUND_MEANWHILE = text(
    """\
SELECT x.source, x.transaction_id, x.order_id FROM order_transactions x
WHERE (x.source, x.transaction_id) IN (
  SELECT e.source, e.transaction_id FROM webhook_events e
  WHERE e.id = ANY(CAST(:ids AS uuid[])) AND e.state = 'processed' AND e.reason = 'not_ours')
ORDER BY x.source, x.transaction_id FOR UPDATE"""
)


def wake(
    session: Session,
    references: Collection[str],
    transactions: Collection[TransactionKey] = (),
    *,
    now: datetime | None = None,
) -> int:
    """Make the parked events of these orders and transactions due at once; returns their number."""
    parameters = {**_keys(references, transactions), "now": now}
    result = session.execute(_WAKE, parameters)
    return int(getattr(result, "rowcount", 0))


def send_round_lifted(
    session: Session,
    references: Collection[str],
    transactions: Collection[TransactionKey],
    *,
    give_up: timedelta,
    now: datetime | None = None,
) -> list[UUID]:
    """Replay by `system`: an order's events refused as `second_payment` or ignored as
    `surplus_returned`, whose reason is gone since the paying transaction gave everything back.
    """
    parameters = {**_keys(references, transactions), "now": now, "give_up": give_up}
    return _audited(session, session.execute(_LIFTED, parameters).scalars(), "second payment lifted", now)


def send_round_not_ours(
    session: Session,
    transactions: Collection[TransactionKey],
    *,
    give_up: timedelta,
    now: datetime | None = None,
) -> list[UUID]:
    """Replay by `system`: events ignored as `not_ours` whose transaction turned out to be ours."""
    parameters = {**_keys((), transactions), "now": now, "give_up": give_up}
    return _audited(
        session, session.execute(_NOT_OURS, parameters).scalars(), "transaction became known", now
    )


def send_round_bound_meanwhile(
    session: Session, ended: Collection[UUID], *, give_up: timedelta, now: datetime | None = None
) -> list[UUID]:
    """Of rows that this transaction has just ended as `not_ours`: send those round again whose
    transaction another worker binds at this moment. It looked for them before they had ended, and would
    never look again. Waits for that worker; returns the ids of the rows that go round.
    """
    if not ended:
        return []
    keys = {
        (source, transaction)
        for source, transaction, order_id in session.execute(_BOUND_MEANWHILE, {"ids": Uuids(sorted(ended))})
        if order_id is not None
    }
    return send_round_not_ours(session, keys, give_up=give_up, now=now) if keys else []


def _keys(references: Collection[str], transactions: Collection[TransactionKey]) -> dict[str, object]:
    ordered = sorted(transactions)
    return {
        "references": Texts(sorted(references)),
        "sources": Texts(source for source, _ in ordered),
        "transactions": Texts(transaction for _, transaction in ordered),
    }


def _audited(session: Session, ids: Iterable[UUID], reason: str, now: datetime | None) -> list[UUID]:
    replayed = list(ids)
    for event_id in replayed:
        record(
            session, actor="system", action="event.replay", target=f"event:{event_id}", reason=reason, now=now
        )
    return replayed
