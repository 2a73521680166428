"""What the rules know of an order: its facts, its transactions and its ledger, as plain values.

The caller fills an `OrderFacts` from the tables, asks `decide`, and hands the decision to
`ledger.apply`, which changes these values in place. Nothing here reads or writes a table.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias
from uuid import UUID

TransactionKey: TypeAlias = tuple[str, str]
"""(source, transaction id): a provider's payment."""

EffectKey: TypeAlias = tuple[str, str, str]
"""(source, ledger kind, effect id): what the ledger holds once."""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One money fact; voids, disputes and failed refunds may stand without amount and currency."""

    source: str
    transaction_id: str
    kind: str
    effect_id: str
    amount_minor: int | None
    currency: str | None


@dataclass(frozen=True, slots=True)
class TransactionFacts:
    """What is known of one provider transaction beside its lines.

    ``status`` (pending, failed or None) comes from status events alone. ``refund_total_minor`` is
    the highest running total reported. ``paying``: the order's totals are those of this one.
    ``refused``: it holds money that is to be given back.
    """

    source: str
    transaction_id: str
    status: str | None = None
    status_sequence: int | None = None
    refund_total_minor: int | None = None
    paying: bool = False
    refused: bool = False

    def with_status(self, status: str, sequence: int | None) -> TransactionFacts:
        """The same transaction at another status."""
        return replace(self, status=status, status_sequence=sequence)

    def with_refund_total(self, refund_total_minor: int) -> TransactionFacts:
        """The same transaction with a newly reported running total."""
        return replace(self, refund_total_minor=refund_total_minor)

    def with_marks(self, *, paying: bool, refused: bool) -> TransactionFacts:
        """The same transaction with other marks; itself where they are the same."""
        if paying == self.paying and refused == self.refused:
            return self
        return TransactionFacts(
            self.source,
            self.transaction_id,
            self.status,
            self.status_sequence,
            self.refund_total_minor,
            paying,
            refused,
        )


@dataclass(frozen=True, slots=True)
class Totals:
    """The order's totals in minor units of its currency."""

    authorized_minor: int
    captured_minor: int
    refunded_minor: int


@dataclass(frozen=True, slots=True)
class SourceTerms:
    """What the source's settings state of its events, and what its protocol never carries.

    ``account`` and ``live`` None: not stated, not checked. ``never_carries`` holds names of
    `PaymentEvent`'s fields; a fact in it is never demanded, any other one that lacks is a mismatch.
    """

    account: str | None = None
    live: bool | None = None
    never_carries: frozenset[str] = frozenset()


@dataclass(slots=True)
class OrderFacts:
    """One order with all its transactions and ledger lines; changed in place by `ledger.apply`.

    ``sources`` None lets any source pay it. ``effects`` and ``lines_of`` are indexes over
    ``lines``: add lines with `add_line` only.
    """

    id: UUID
    reference: str
    sources: tuple[str, ...] | None
    amount_minor: int
    currency: str
    cancelled: bool = False
    state: str = "pending"
    transactions: dict[TransactionKey, TransactionFacts] = field(default_factory=dict)
    lines: list[LedgerLine] = field(default_factory=list)
    effects: dict[EffectKey, LedgerLine] = field(default_factory=dict)
    lines_of: dict[TransactionKey, list[LedgerLine]] = field(default_factory=dict)

    def add_line(self, line: LedgerLine) -> None:
        """Append a line and index it."""
        self.lines.append(line)
        self.effects[(line.source, line.kind, line.effect_id)] = line
        self.lines_of.setdefault((line.source, line.transaction_id), []).append(line)

    def add_transaction(self, transaction: TransactionFacts) -> None:
        """Put a transaction in, or its newer facts over the older ones."""
        self.transactions[(transaction.source, transaction.transaction_id)] = transaction
