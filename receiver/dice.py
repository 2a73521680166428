"""Ids and jitter: the only randomness of the service, handed down so that tests can fix it."""

from __future__ import annotations

import os
import random
import time
from uuid import UUID


def uuid7(unix_ms: int, random_bits: int) -> UUID:
    """An RFC 9562 version 7 UUID of a time in milliseconds and 74 random bits."""
    value = (unix_ms & ((1 << 48) - 1)) << 80
    value |= 0x7 << 76
    value |= ((random_bits >> 62) & 0xFFF) << 64
    value |= 0b10 << 62
    value |= random_bits & ((1 << 62) - 1)
    return UUID(int=value)


class Dice:
    """Random ids and jitter of a running service."""

    def new_id(self) -> UUID:
        """A new UUIDv7, so that ids of rows sort by the time they were made."""
        return uuid7(time.time_ns() // 1_000_000, int.from_bytes(os.urandom(10), "big") >> 6)

    def jitter(self) -> float:
        """A number from -1 to 1, spread evenly."""
        return random.uniform(-1.0, 1.0)  # noqa: S311 (spreads load, guards nothing)


class LoadedDice(Dice):
    """Dice that repeat themselves for one seed."""

    def __init__(self, seed: int, unix_ms: int = 1_750_000_000_000) -> None:
        self._random = random.Random(seed)  # noqa: S311 (repeatable on purpose)
        self._unix_ms = unix_ms

    def new_id(self) -> UUID:
        self._unix_ms += 1
        return uuid7(self._unix_ms, self._random.getrandbits(74))

    def jitter(self) -> float:
        return self._random.uniform(-1.0, 1.0)
