"""A provider's payment API: what it says of one payment, or of all in a window, as facts.

What a message cannot prove is asked here. The answers are values: found, not found, not offered, or
unavailable for now; no answer of a provider raises. Nothing here is called inside a transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from receiver.providers.facts import MAX_ID
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.providers.reading import ReadEvent

KEPT_BODY = 64 * 1024
"""Bytes of an answer that are kept with the event that it confirmed."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """The payment asked for, by the provider's id or our reference. ``kind`` and ``effect_id`` say what
    a message claims of it, since some APIs keep refunds and disputes apart from payments.
    """

    id: str | None
    order_reference: str | None = None
    effect_id: str | None = None
    kind: Kind = Kind.OTHER

    @classmethod
    def of(cls, hint: PaymentEvent) -> Transaction:
        """The payment that a message is about."""
        return cls(hint.transaction_id, hint.order_reference, hint.effect_id, hint.kind)


@dataclass(frozen=True, slots=True)
class Window:
    """From an instant (inclusive) to another (exclusive)."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """What the API says, in the order of a payment's life: the payment, then refunds and disputes.

    Facts without a money meaning are left out. ``body``: the answers' bytes as they came.
    """

    facts: tuple[PaymentEvent, ...]
    status: int
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class NotFound:
    """The API does not know the payment, or not yet."""

    detail: str
    status: int
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class NotOffered:
    """This API cannot be asked for such a payment; asking again would not help."""

    detail: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No usable answer now; a later one may be. ``reason``: network, timeout, server_error,
    rate_limited, unauthorized, redirected, refused, too_large, not_json, unreadable.
    """

    reason: str
    detail: str
    retry_after: timedelta | None = None
    status: int | None = None
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a window's events, each under the provider's own id, or under that of `read_back_id`.

    ``bodies``: of each event the document that it was read from, as JSON.
    """

    events: tuple[ReadEvent, ...]
    bodies: tuple[bytes, ...] = field(default=(), repr=False)


class PaymentAPI(Protocol):
    """One source's API. ``lists`` says whether ``list`` is offered at all."""

    @property
    def lists(self) -> bool: ...

    def get(self, transaction: Transaction) -> Found | NotFound | NotOffered | Unavailable:
        """What the provider says of one payment, within a total deadline."""

    def list(self, window: Window) -> Iterator[Page | Unavailable]:
        """The window's pages, a bounded number; Unavailable is the last where they break off."""


def read_back_id(facts: PaymentEvent) -> str:
    """A deterministic event id for facts that no message of the provider's carried, so that reading
    them again is the same event.
    """
    parts = (facts.kind, facts.transaction_id, facts.effect_id, facts.amount_minor, facts.refund_total_minor)
    joined = ":".join(["api", *("" if part is None else str(part) for part in parts)])
    if facts.kind in (Kind.PENDING, Kind.FAILED) and facts.sequence is not None:
        # A payment may come to the same status twice; money comes once.
        joined += f":{facts.sequence}"
    if len(joined) <= MAX_ID:
        return joined
    return f"{joined[:60]}~{hashlib.sha256(joined.encode()).hexdigest()}"


def read_back(facts: PaymentEvent) -> ReadEvent:
    """Facts of an API as an event of its own: for what no message carried."""
    event_id = read_back_id(facts)
    digest = hashlib.sha256(event_id.encode()).digest()
    return ReadEvent(event_id, f"read_back.{facts.kind}", facts, digest, digest)
