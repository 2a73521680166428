"""The pairs of states that one event may cause: an assertion and a drawing, not a second judge.

The ledger decides (`ledger.state_of`); this table says what can come of it. Pages draw it, and
`ledger.apply` refuses a pair that is missing here as a fault of ours.
"""

from __future__ import annotations

_HOLDING = ("partially_paid", "paid", "partially_refunded", "disputed", "charged_back")
_PAID = (*_HOLDING, "refunded")

TRANSITIONS: frozenset[tuple[str, str]] = frozenset(
    (before, after)
    for before in ("pending", "failed", "authorized", *_PAID)
    for after in ("pending", "failed", "authorized", *_PAID)
    if before != after
)

ACT_TRANSITIONS: frozenset[tuple[str, str]] = frozenset({("pending", "cancelled"), ("failed", "cancelled")})
"""What the cancel act may cause. Registering begins at pending; a correction changes no state."""
