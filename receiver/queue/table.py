"""What the acts of this room need to know of a table to treat it as a queue."""

from __future__ import annotations

from dataclasses import dataclass

PENDING, IN_FLIGHT, FAILED, EXPIRED = "pending", "in_flight", "failed", "expired"
DEAD_LETTERS = (FAILED, EXPIRED)


@dataclass(frozen=True)
class QueueTable:
    """A queue: its table, the column that it is served by fairly, its good end, its attempts.

    ``lock_order``: the columns in whose order whoever locks many rows at once does so; another order
    would deadlock.
    ``name`` stands in `pauses.queue`. All texts are constants of this code and go into SQL as such.
    """

    name: str
    table: str
    key: str
    success: str
    attempts_table: str
    attempts_column: str
    lock_order: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        """The states in which a row rests."""
        return (self.success, FAILED, EXPIRED)
