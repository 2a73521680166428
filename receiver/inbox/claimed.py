"""A claimed event as the worker holds it, and what the source's settings state of it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from receiver.orders.decide import NOTHING_WAIVED
from receiver.orders.facts import SourceTerms
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.providers.registry import UnknownProvider, provider_of
from receiver.settings import Settings

COLUMNS = (
    "id",
    "provider_event_id",
    "attempts",
    "replays",
    "row_version",
    "parked_reason",
    "last_error",
    "received_at",
    "claimed_at",
    "waived",
    "origin",
    "source",
    "kind",
    "account",
    "live",
    "order_reference",
    "transaction_id",
    "effect_id",
    "amount_minor",
    "currency",
    "refund_total_minor",
    "sequence",
    "occurred_at",
    "facts_error",
)
"""What the claim returns of a row: everything the rules ask, so that the payload stays unread."""

_FACTS_FROM = COLUMNS.index("source")


@dataclass(frozen=True, slots=True)
class Claimed:
    """One row in flight under this worker's claim."""

    id: UUID
    provider_event_id: str
    attempts: int
    replays: int
    row_version: int
    parked_reason: str | None
    last_error: str | None
    received_at: datetime
    claimed_at: datetime
    waived: Sequence[str] | None
    origin: str | None
    event: PaymentEvent

    @property
    def waive(self) -> Set[str]:
        """The checks that a release told the rules to skip."""
        return frozenset(self.waived) if self.waived else NOTHING_WAIVED


def claimed_from(row: Any) -> Claimed:
    """A row of the claim's answer, in the order of COLUMNS."""
    source, kind, *facts = row[_FACTS_FROM:]
    event = PaymentEvent(source, Kind(kind), *facts)
    return Claimed(*row[:_FACTS_FROM], event)  # type: ignore[call-arg]


def terms_of(settings: Settings, source_name: str) -> SourceTerms | None:
    """What the rules compare an event of this source with; None where the settings do not know it."""
    source = settings.sources.get(source_name)
    if source is None:
        return None
    try:
        never_carries = provider_of(source).never_carries
    except UnknownProvider:
        never_carries = frozenset()
    return SourceTerms(source.account, source.live, never_carries)
