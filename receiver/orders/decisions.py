"""The decisions: what an event may be found to do. Reasons are codes, details are for operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from receiver.orders.facts import LedgerLine, TransactionFacts


@dataclass(frozen=True, slots=True)
class Apply:
    """Write these lines, and these facts of the event's transaction. The row is processed, `applied`.

    ``released``: only because a check was waived, so it is an operator's doing.
    """

    lines: tuple[LedgerLine, ...]
    transaction: TransactionFacts
    released: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """The effect is known with the same facts. The row is processed, `repeat`."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Something newer is known. The row is processed, `stale`."""

    detail: str


@dataclass(frozen=True, slots=True)
class Ignore:
    """No effect on purpose: no_money_meaning, not_ours, surplus_returned. The row is processed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Park:
    """Wait: order_unknown, transaction_unknown, before_capture, refund_exceeds_captured."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The row fails with this reason.

    ``transaction``, where it is not None, is to be written all the same (by `ledger.apply`): the
    refusal marks it as holding money to give back.
    """

    reason: str
    detail: str
    transaction: TransactionFacts | None = None

    @property
    def marks(self) -> bool:
        """Whether the refusal marks its transaction."""
        return self.transaction is not None


Decision: TypeAlias = Apply | Repeat | Stale | Ignore | Park | Refuse
