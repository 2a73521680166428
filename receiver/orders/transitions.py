"""The pairs of states that one event may cause: an assertion and a drawing, not a second judge.

The ledger decides (`ledger.state_of`); this table says what can come of it. Pages draw it, and
`ledger.apply` refuses a pair that is missing here as a fault of ours. A test explores what events
can do and finds exactly these pairs.
"""

from __future__ import annotations

from itertools import permutations

_BEFORE_MONEY = {
    "pending": ("failed", "authorized", "partially_paid", "paid"),
    "failed": ("pending", "authorized", "partially_paid", "paid"),
    "authorized": ("pending", "failed", "partially_paid", "paid"),
}
# Money that came never leaves without a trace, so no event leads back to the states above. Among
# these six every pair occurs: when the paying transaction gives everything back, the order takes the
# state of another one that holds money, whatever that is.
_WITH_MONEY = ("partially_paid", "paid", "partially_refunded", "refunded", "disputed", "charged_back")

TRANSITIONS: frozenset[tuple[str, str]] = frozenset(
    [(before, after) for before, afters in _BEFORE_MONEY.items() for after in afters]
    + list(permutations(_WITH_MONEY, 2))
    # A void of what was released onto a cancelled order leaves it cancelled as before.
    + [("authorized", "cancelled")]
)
"""What one event may cause. No event moves a cancelled order, unless an admin releases it."""

RELEASE_TRANSITIONS: frozenset[tuple[str, str]] = frozenset(
    ("cancelled", after) for after in ("authorized", "partially_paid", "paid")
)
"""What an event may cause besides, whose refusal as `order_cancelled` an admin waived."""

ACT_TRANSITIONS: frozenset[tuple[str, str]] = frozenset({("pending", "cancelled"), ("failed", "cancelled")})
"""What the act of cancelling may cause. An order begins at pending; a correction changes no state."""
