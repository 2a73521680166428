"""Counts that stop at a bound, so that no page pays for a backlog."""

from __future__ import annotations

from dataclasses import dataclass

LOOK_AT = 10_000
"""How far rows are counted; beyond it a count is shown as `10,000+`."""


@dataclass(frozen=True, slots=True)
class Count:
    """A bounded count: ``more`` says that counting stopped there."""

    number: int
    more: bool = False

    def __str__(self) -> str:
        return f"{self.number:,}{'+' if self.more else ''}"

    def __bool__(self) -> bool:
        return self.number > 0


def bounded(number: int, limit: int) -> Count:
    """The count of a query that looked at ``limit + 1`` rows at most."""
    return Count(min(number, limit), number > limit)
