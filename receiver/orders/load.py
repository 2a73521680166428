"""Lock the orders that a batch of events speaks of and read their facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.arrays import Texts, Uuids
from receiver.orders.decide import effect_key
from receiver.orders.facts import EffectKey, LedgerLine, OrderFacts, TransactionFacts, TransactionKey
from receiver.providers.payment_event import PaymentEvent

_ORDER_COLUMNS = "id, reference, sources, amount_minor, currency, state, cancelled_at IS NOT NULL"

# OFFSET 0 and LIMIT 1 keep each key a look-up of its own. Left free to join, the planner of a young
# database reads the whole table, and the prepared plan goes on doing so while the table grows.
_FIND = f"""\
SELECT {_ORDER_COLUMNS} FROM orders
WHERE id IN (
  SELECT o.id FROM orders o WHERE o.reference = ANY(CAST(:references AS text[]))
  UNION
  SELECT t.order_id
  FROM unnest(CAST(:sources AS text[]), CAST(:transactions AS text[])) AS k(source, transaction_id)
  CROSS JOIN LATERAL (
    SELECT order_id FROM order_transactions
    WHERE source = k.source AND transaction_id = k.transaction_id LIMIT 1
  ) t
)
ORDER BY id"""

_LOCK = text(f"{_FIND} FOR NO KEY UPDATE")
_READ = text(_FIND)

_TRANSACTIONS = text(
    """\
SELECT t.* FROM unnest(CAST(:ids AS uuid[])) AS o(id) CROSS JOIN LATERAL (
  SELECT order_id, source, transaction_id, status, status_sequence, refund_total_minor, paying, refused
  FROM order_transactions WHERE order_id = o.id OFFSET 0
) t
UNION
SELECT t.* FROM unnest(CAST(:sources AS text[]), CAST(:transactions AS text[])) AS k(source, transaction_id)
CROSS JOIN LATERAL (
  SELECT order_id, source, transaction_id, status, status_sequence, refund_total_minor, paying, refused
  FROM order_transactions WHERE source = k.source AND transaction_id = k.transaction_id LIMIT 1
) t"""
)

_LEDGER = text(
    """\
SELECT l.* FROM unnest(CAST(:ids AS uuid[])) AS o(id) CROSS JOIN LATERAL (
  SELECT order_id, id, source, transaction_id, kind, effect_id, amount_minor, currency
  FROM ledger_entries WHERE order_id = o.id OFFSET 0
) l
UNION
SELECT l.* FROM unnest(CAST(:sources AS text[]), CAST(:kinds AS text[]), CAST(:effects AS text[]))
  AS k(source, kind, effect_id)
CROSS JOIN LATERAL (
  SELECT order_id, id, source, transaction_id, kind, effect_id, amount_minor, currency
  FROM ledger_entries WHERE source = k.source AND kind = k.kind AND effect_id = k.effect_id LIMIT 1
) l
ORDER BY 2"""
)


@dataclass(slots=True)
class Book:
    """The orders of a batch, locked, with what else the rules ask: who owns a transaction or an effect.

    Kept true in memory while the batch goes on (`bind`, `enter`).
    """

    by_id: dict[UUID, OrderFacts] = field(default_factory=dict)
    by_reference: dict[str, OrderFacts] = field(default_factory=dict)
    owners: dict[TransactionKey, UUID | None] = field(default_factory=dict)
    effects: dict[EffectKey, UUID] = field(default_factory=dict)

    def order_of(self, event: PaymentEvent) -> OrderFacts | None:
        """The event's order: by its reference, else by its transaction."""
        if event.order_reference is not None:
            return self.by_reference.get(event.order_reference)
        owner = self.owners.get((event.source, event.transaction_id or ""))
        return self.by_id.get(owner) if owner is not None else None

    def is_foreign(self, order: OrderFacts | None, event: PaymentEvent) -> bool:
        """Whether the event's transaction belongs to another order than ``order``."""
        owner = self.owners.get((event.source, event.transaction_id or ""))
        return order is not None and owner is not None and owner != order.id

    def effect_elsewhere(self, order: OrderFacts | None, event: PaymentEvent) -> bool:
        """Whether the event's effect stands in another order's ledger."""
        if order is None:
            return False
        key = effect_key(event, order.amount_minor)
        return key is not None and self.effects.get(key, order.id) != order.id

    def bind(self, key: TransactionKey, order: OrderFacts, lines: Iterable[LedgerLine]) -> None:
        """Note that a transaction and its new lines are now this order's."""
        self.owners[key] = order.id
        for line in lines:
            self.effects[(line.source, line.kind, line.effect_id)] = order.id


def load(session: Session, events: Sequence[PaymentEvent], *, lock: bool = True) -> Book:
    """Lock the events' orders in the order of their ids and read all their facts.

    Blocks while somebody else holds one of them (`lock_timeout` is the caller's). ``lock`` False only
    reads, for those who change nothing.
    """
    book = Book()
    keys = {(e.source, e.transaction_id) for e in events if e.transaction_id is not None}
    bare = {(e.source, e.transaction_id) for e in events if e.order_reference is None and e.transaction_id}
    references = {e.order_reference for e in events if e.order_reference is not None}
    if not keys and not references:
        return book
    bare_list = sorted(bare)
    locked = session.execute(
        _LOCK if lock else _READ,
        {
            "references": Texts(sorted(references)),
            "sources": Texts(source for source, _ in bare_list),
            "transactions": Texts(transaction for _, transaction in bare_list),
        },
    )
    for id_, reference, sources, amount_minor, currency, state, cancelled in locked:
        allowed = None if sources is None else tuple(sources)
        order = OrderFacts(id_, reference, allowed, amount_minor, currency, cancelled, state)
        book.by_id[id_] = order
        book.by_reference[reference] = order
    _read_transactions(session, book, sorted(keys))
    _read_ledger(session, book, events)
    return book


def _read_transactions(session: Session, book: Book, keys: list[tuple[str, str]]) -> None:
    rows = session.execute(
        _TRANSACTIONS,
        {
            "ids": Uuids(book.by_id),
            "sources": Texts(source for source, _ in keys),
            "transactions": Texts(transaction for _, transaction in keys),
        },
    )
    for order_id, source, transaction_id, status, sequence, refund_total, paying, refused in rows:
        book.owners[(source, transaction_id)] = order_id
        order = book.by_id.get(order_id)
        if order is not None:
            order.add_transaction(
                TransactionFacts(source, transaction_id, status, sequence, refund_total, paying, refused)
            )


def _read_ledger(session: Session, book: Book, events: Sequence[PaymentEvent]) -> None:
    wanted: set[EffectKey] = set()
    for event in events:
        order = book.order_of(event)
        key = effect_key(event, order.amount_minor) if order is not None else None
        if key is not None:
            wanted.add(key)
    if not book.by_id:
        return
    keys = sorted(wanted)
    rows: Any = session.execute(
        _LEDGER,
        {
            "ids": Uuids(book.by_id),
            "sources": Texts(key[0] for key in keys),
            "kinds": Texts(key[1] for key in keys),
            "effects": Texts(key[2] for key in keys),
        },
    )
    for order_id, _, source, transaction_id, kind, effect_id, amount_minor, currency in rows:
        book.effects[(source, kind, effect_id)] = order_id
        order = book.by_id.get(order_id)
        if order is not None:
            order.add_line(LedgerLine(source, transaction_id, kind, effect_id, amount_minor, currency))
