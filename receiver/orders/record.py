"""Write what a batch of decisions changed: ledger, transactions, transitions, orders, as sets.

One statement, in the caller's transaction, after `load` locked the orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.arrays import Array, Bigints, Booleans, Texts, Uuids
from receiver.orders.facts import LedgerLine, OrderFacts, Totals, TransactionFacts, TransactionKey


class FactsChanged(Exception):
    """Another worker bound one of the batch's transactions meanwhile."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one event did to its order."""

    order: OrderFacts
    event_id: UUID
    provider_event_id: str
    lines: Sequence[LedgerLine]
    transactions: Sequence[TransactionFacts]
    from_state: str
    to_state: str
    totals: Totals
    by: str = "event"


_RECORD = text(
    """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now),
ledger AS (
  INSERT INTO ledger_entries
    (order_id, source, transaction_id, kind, effect_id, amount_minor, currency, event_id, provider_event_id,
     by, created_at)
  SELECT l.order_id, l.source, l.transaction_id, l.kind, l.effect_id, l.amount_minor, l.currency, l.event_id,
         l.provider_event_id, l.by, t.now
  FROM t, unnest(
    CAST(:l_orders AS uuid[]), CAST(:l_sources AS text[]), CAST(:l_transactions AS text[]),
    CAST(:l_kinds AS text[]), CAST(:l_effects AS text[]), CAST(:l_amounts AS bigint[]),
    CAST(:l_currencies AS text[]), CAST(:l_events AS uuid[]), CAST(:l_ids AS text[]), CAST(:l_by AS text[])
  ) WITH ORDINALITY AS l(order_id, source, transaction_id, kind, effect_id, amount_minor, currency, event_id,
    provider_event_id, by, position)
  ORDER BY l.position
), transactions AS (
  INSERT INTO order_transactions AS x
    (order_id, source, transaction_id, status, status_sequence, refund_total_minor, paying, refused,
     created_at, updated_at)
  SELECT k.order_id, k.source, k.transaction_id, k.status, k.status_sequence, k.refund_total_minor, k.paying,
         k.refused, t.now, t.now
  FROM t, unnest(
    CAST(:t_orders AS uuid[]), CAST(:t_sources AS text[]), CAST(:t_transactions AS text[]),
    CAST(:t_statuses AS text[]), CAST(:t_sequences AS bigint[]), CAST(:t_refund_totals AS bigint[]),
    CAST(:t_paying AS bool[]), CAST(:t_refused AS bool[])
  ) AS k(order_id, source, transaction_id, status, status_sequence, refund_total_minor, paying, refused)
  ORDER BY k.source, k.transaction_id
  ON CONFLICT (source, transaction_id) DO UPDATE SET
    order_id = excluded.order_id, status = excluded.status, status_sequence = excluded.status_sequence,
    refund_total_minor = excluded.refund_total_minor, paying = excluded.paying, refused = excluded.refused,
    updated_at = excluded.updated_at
  WHERE x.order_id IS NULL OR x.order_id = excluded.order_id
  RETURNING 1
), transitions AS (
  INSERT INTO order_transitions (order_id, from_state, to_state, event_id, at, by)
  SELECT s.order_id, s.from_state, s.to_state, s.event_id, t.now, s.by
  FROM t, unnest(
    CAST(:s_orders AS uuid[]), CAST(:s_from AS text[]), CAST(:s_to AS text[]), CAST(:s_events AS uuid[]),
    CAST(:s_by AS text[])
  ) WITH ORDINALITY AS s(order_id, from_state, to_state, event_id, by, position)
  ORDER BY s.position
), orders AS (
  UPDATE orders AS o
  SET state = n.state, authorized_minor = n.authorized, captured_minor = n.captured,
      refunded_minor = n.refunded, row_version = o.row_version + 1, updated_at = t.now
  FROM t, unnest(
    CAST(:o_ids AS uuid[]), CAST(:o_states AS text[]), CAST(:o_authorized AS bigint[]),
    CAST(:o_captured AS bigint[]), CAST(:o_refunded AS bigint[])
  ) AS n(id, state, authorized, captured, refunded)
  WHERE o.id = n.id
)
SELECT count(*) FROM transactions"""
)


def record(session: Session, changes: Sequence[Change], *, now: datetime | None = None) -> None:
    """Write the changes of a batch, in their order. Raises FactsChanged when a transaction was bound
    to another order meanwhile; the ledger's unique key raises IntegrityError for a double effect.
    """
    if not changes:
        return
    transactions: dict[TransactionKey, tuple[UUID, TransactionFacts]] = {}
    last: dict[UUID, Change] = {}
    for change in changes:
        last[change.order.id] = change
        for facts in change.transactions:
            transactions[(facts.source, facts.transaction_id)] = (change.order.id, facts)
    parameters: dict[str, Any] = {"now": now}
    parameters |= _ledger_arrays(changes)
    parameters |= _transaction_arrays(transactions.values())
    parameters |= _transition_arrays(changes)
    parameters |= _order_arrays(last.values())
    written = session.execute(_RECORD, parameters).scalar_one()
    if written != len(transactions):
        raise FactsChanged


def _arrays(kinds: dict[str, type[Array]], rows: Iterable[tuple[object, ...]]) -> dict[str, Array]:
    columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
    return {name: kind(column) for (name, kind), column in zip(kinds.items(), columns, strict=True)}


def _ledger_arrays(changes: Iterable[Change]) -> dict[str, Array]:
    return _arrays(
        {
            "l_orders": Uuids,
            "l_sources": Texts,
            "l_transactions": Texts,
            "l_kinds": Texts,
            "l_effects": Texts,
            "l_amounts": Bigints,
            "l_currencies": Texts,
            "l_events": Uuids,
            "l_ids": Texts,
            "l_by": Texts,
        },
        (
            (
                change.order.id,
                line.source,
                line.transaction_id,
                line.kind,
                line.effect_id,
                line.amount_minor,
                line.currency,
                change.event_id,
                change.provider_event_id,
                change.by,
            )
            for change in changes
            for line in change.lines
        ),
    )


def _transaction_arrays(transactions: Iterable[tuple[UUID, TransactionFacts]]) -> dict[str, Array]:
    return _arrays(
        {
            "t_orders": Uuids,
            "t_sources": Texts,
            "t_transactions": Texts,
            "t_statuses": Texts,
            "t_sequences": Bigints,
            "t_refund_totals": Bigints,
            "t_paying": Booleans,
            "t_refused": Booleans,
        },
        (
            (
                order_id,
                facts.source,
                facts.transaction_id,
                facts.status,
                facts.status_sequence,
                facts.refund_total_minor,
                facts.paying,
                facts.refused,
            )
            for order_id, facts in transactions
        ),
    )


def _transition_arrays(changes: Iterable[Change]) -> dict[str, Array]:
    return _arrays(
        {"s_orders": Uuids, "s_from": Texts, "s_to": Texts, "s_events": Uuids, "s_by": Texts},
        (
            (change.order.id, change.from_state, change.to_state, change.event_id, change.by)
            for change in changes
            if change.from_state != change.to_state
        ),
    )


def _order_arrays(last: Iterable[Change]) -> dict[str, Array]:
    return _arrays(
        {
            "o_ids": Uuids,
            "o_states": Texts,
            "o_authorized": Bigints,
            "o_captured": Bigints,
            "o_refunded": Bigints,
        },
        (
            (
                change.order.id,
                change.to_state,
                change.totals.authorized_minor,
                change.totals.captured_minor,
                change.totals.refunded_minor,
            )
            for change in last
        ),
    )


_NOTE_UNBOUND = text(
    """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now),
noted AS (
  INSERT INTO order_transactions (order_id, source, transaction_id, created_at, updated_at)
  SELECT NULL, k.source, k.transaction_id, t.now, t.now
  FROM t, unnest(CAST(:sources AS text[]), CAST(:transactions AS text[])) AS k(source, transaction_id)
  ORDER BY k.source, k.transaction_id
  ON CONFLICT (source, transaction_id) DO UPDATE SET updated_at = excluded.updated_at
  RETURNING order_id
)
SELECT count(*) FROM noted WHERE order_id IS NOT NULL"""
)


def note_unbound(session: Session, keys: Iterable[TransactionKey], *, now: datetime | None = None) -> None:
    """Note transactions for which no order is known, so that whoever binds one later meets this row.

    Waits for a worker that binds one at this moment. Raises FactsChanged when it did.
    """
    ordered = sorted(keys)
    if not ordered:
        return
    bound = session.execute(
        _NOTE_UNBOUND,
        {
            "sources": Texts(source for source, _ in ordered),
            "transactions": Texts(transaction for _, transaction in ordered),
            "now": now,
        },
    ).scalar_one()
    if bound:
        raise FactsChanged
