"""Sums over the lines of one transaction, in minor units: what it captured and what it gave back.

A provider may tell one money movement twice: as the whole (`succeeded`, a refund without an id of
its own) and in parts by id. The whole is a statement about the sum, so it is compared with the
parts, never added to them; it stands under the transaction's own id.
"""

from __future__ import annotations

from collections.abc import Iterable

from receiver.orders.facts import LedgerLine


def has_line(lines: Iterable[LedgerLine], *kinds: str) -> bool:
    """Whether one of the lines is of one of these kinds."""
    return any(line.kind in kinds for line in lines)


def is_whole(line: LedgerLine, order_amount_minor: int) -> bool:
    """Whether the line states the order's whole amount under the transaction's own id."""
    return line.effect_id == line.transaction_id and line.amount_minor == order_amount_minor


def captured_minor(lines: Iterable[LedgerLine], order_amount_minor: int) -> int:
    """What the lines capture: the parts' sum, or the whole where that is told."""
    parts = 0
    for line in lines:
        if line.kind == "capture":
            if is_whole(line, order_amount_minor):
                return order_amount_minor
            parts += line.amount_minor or 0
    return parts


def captured_parts_minor(lines: Iterable[LedgerLine], order_amount_minor: int) -> int:
    """The sum of the captured parts alone."""
    return sum(
        line.amount_minor or 0
        for line in lines
        if line.kind == "capture" and not is_whole(line, order_amount_minor)
    )


def refunded_minor(
    lines: Iterable[LedgerLine], order_amount_minor: int, refund_total_minor: int | None
) -> int:
    """What the lines and the reported running total give back.

    A refund with a failed line of the same effect does not count; once any refund failed, the
    running total does not count either.
    """
    refunds = [line for line in lines if line.kind in ("refund", "refund_failed")]
    failed = {line.effect_id for line in refunds if line.kind == "refund_failed"}
    parts, whole = 0, 0
    for line in refunds:
        if line.kind == "refund" and line.effect_id not in failed:
            if is_whole(line, order_amount_minor):
                whole = order_amount_minor
            else:
                parts += line.amount_minor or 0
    return max(parts, whole, 0 if failed else refund_total_minor or 0)
