"""Slowing down guesses of passwords: failures are counted per account and per address.

Counted in the memory of each web process, so that an attack costs the database nothing; with
several processes the limits hold for each of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

WINDOW_SECONDS = 15 * 60
MAX_PER_ACCOUNT = 10
MAX_PER_ADDRESS = 40
MAX_KEYS = 10_000
"""Keys kept: strangers choose the names, and the oldest make way."""


class SignInThrottle:
    """Failed sign-ins of the last quarter of an hour, by account and by address."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: OrderedDict[tuple[str, str], list[float]] = OrderedDict()

    def is_slowed(self, account: str, address: str, now: float) -> bool:
        """Whether this account or this address failed too often lately. ``now`` is in seconds."""
        with self._lock:
            return (
                len(self._recent(("account", account), now)) >= MAX_PER_ACCOUNT
                or len(self._recent(("address", address), now)) >= MAX_PER_ADDRESS
            )

    def failed(self, account: str, address: str, now: float) -> None:
        """Note a failure."""
        with self._lock:
            for key in (("account", account), ("address", address)):
                self._failures[key] = [*self._recent(key, now), now][-MAX_PER_ADDRESS:]
                self._failures.move_to_end(key)
            while len(self._failures) > MAX_KEYS:
                self._failures.popitem(last=False)

    def succeeded(self, account: str) -> None:
        """Forget an account's failures; its address's stay."""
        with self._lock:
            self._failures.pop(("account", account), None)

    def _recent(self, key: tuple[str, str], now: float) -> list[float]:
        return [at for at in self._failures.get(key, ()) if now - at < WINDOW_SECONDS]
