"""Confirm: read an event that proves too little back from the provider's API, between T1 and T2.

The facts of the message are a hint that says what to ask for; those that count are the API's alone.
No transaction is open while the API is asked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.claimed import Claimed
from receiver.inbox.post_facts import FACT_COLUMNS, Learnt, fact_values, post_facts
from receiver.logs import logger
from receiver.providers.apis import payment_api
from receiver.providers.payment_api import (
    KEPT_BODY,
    Found,
    NotFound,
    NotOffered,
    PaymentAPI,
    Transaction,
    Unavailable,
    read_back,
)
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.providers.reading import UNCONFIRMED, ReadEvent
from receiver.providers.registry import UnknownProvider, provider_of
from receiver.queue.settle import Settlement, release
from receiver.queue.table import PENDING
from receiver.settings import Source

LOOKS = 4
"""Looks at a payment that the API does not know (yet), some three minutes in all, before its word counts."""

CLOSED = timedelta(seconds=10)
"""How long an API that gave no answer is left alone; its other events wait uncounted."""

_STATUSES = frozenset({Kind.PENDING, Kind.FAILED, Kind.OTHER})

log = logger("worker")


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A row with the facts that count. ``fetched``: what to keep of the answer; None: no answer to keep,
    the row is refused as it stands. ``siblings``: further facts of the payment that no message carried.
    """

    row: Claimed
    fetched: Found | None = None
    siblings: tuple[ReadEvent, ...] = ()


class Confirmer:
    """Asks the sources' APIs, one row at a time; one for each worker process and its settings."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._apis: dict[str, PaymentAPI | None] = {}
        self._closed: dict[str, tuple[float, str]] = {}

    def wants(self, row: Claimed) -> bool:
        """Whether the row must and can be read back before it is decided."""
        error = row.event.facts_error
        if error is None or not (error == UNCONFIRMED or error.startswith("unreadable_")):
            return False
        source = self._deps.settings.sources.get(row.event.source)
        if source is None or (error != UNCONFIRMED and not _is_hint(source)):
            return False
        return self._api(source) is not None

    def put_off(self, row: Claimed) -> Settlement | None:
        """Back to the inbox uncounted, where the row's API gave no answer a moment ago."""
        closed_until, why = self._closed.get(row.event.source, (0.0, ""))
        left = closed_until - time.monotonic()
        if left <= 0:
            return None
        wait = timedelta(seconds=left)
        return Settlement(row.id, PENDING, wait=wait, error_code="api_unavailable", error=why, counted=False)

    def confirm(self, row: Claimed) -> Confirmed | Settlement:
        """Ask, and say how the row goes on: with the API's facts, or back to the inbox for a while."""
        source = self._deps.settings.sources[row.event.source]
        api = self._api(source)
        if api is None:
            return Confirmed(row)
        started = time.monotonic()
        answer = api.get(Transaction.of(row.event))
        log.info(
            "event.fetched",
            event_id=str(row.id),
            source=source.name,
            result=type(answer).__name__,
            reason=answer.reason if isinstance(answer, Unavailable) else None,
            ms=int((time.monotonic() - started) * 1000),
        )
        return self._judged(row, source, answer)

    def keep(self, session: Session, confirmed: Confirmed) -> None:
        """Write what was read back, in the transaction of its effect."""
        if confirmed.fetched is None:
            return
        now = self._deps.clock.now()
        event = confirmed.row.event
        session.execute(_FACTS, {"id": confirmed.row.id, **fact_values(event)})
        kept = confirmed.fetched.body[:KEPT_BODY]
        session.execute(
            _FETCH, {"id": confirmed.row.id, "status": confirmed.fetched.status, "body": kept, "now": now}
        )
        post_facts(
            session,
            [Learnt(sibling) for sibling in confirmed.siblings],
            origin=None,
            dice=self._deps.dice,
            give_up=self._deps.settings.give_up,
            now=now,
        )

    def _api(self, source: Source) -> PaymentAPI | None:
        if source.name not in self._apis:
            self._apis[source.name] = payment_api(source, self._deps.http)
        return self._apis[source.name]

    def _judged(
        self, row: Claimed, source: Source, answer: Found | NotFound | NotOffered | Unavailable
    ) -> Confirmed | Settlement:
        match answer:
            case Unavailable():
                return self._later(row, source, answer)
            case NotOffered(detail):
                return Confirmed(_refused(row, UNCONFIRMED, detail))
            case NotFound(detail):
                if row.attempts < LOOKS:
                    return self._again(row, "not_at_provider", detail)
                return Confirmed(_refused(row, "not_at_provider", f"{detail}: asked {row.attempts} times"))
            case Found():
                if row.attempts < LOOKS and _is_behind(row.event, answer):
                    return self._again(row, "api_behind", "the API does not say yet what the message says")
                facts, siblings = chosen(row.event, answer.facts)
                return Confirmed(replace(row, event=facts), answer, siblings)

    def _again(self, row: Claimed, code: str, detail: str) -> Settlement:
        return release(row.id, row.attempts, self._deps.dice.jitter(), code, detail)

    def _later(self, row: Claimed, source: Source, answer: Unavailable) -> Settlement:
        pause = max(CLOSED, answer.retry_after or CLOSED)
        self._closed[source.name] = (time.monotonic() + pause.total_seconds(), answer.detail)
        settlement = self._again(row, "api_unavailable", f"{answer.reason}: {answer.detail}")
        if answer.retry_after is not None and settlement.wait is not None:
            return replace(settlement, wait=max(settlement.wait, answer.retry_after))
        return settlement


def chosen(hint: PaymentEvent, found: tuple[PaymentEvent, ...]) -> tuple[PaymentEvent, tuple[ReadEvent, ...]]:
    """Which of the API's facts the row is about, and the others that need rows of their own.

    What the hint claims, where the API says so too; else the payment itself, and all that the API says
    of it: the message was wrong, or only named an object.
    """
    for facts in found:
        if facts.kind == hint.kind and (hint.effect_id is None or facts.effect_id == hint.effect_id):
            return facts, ()
    if hint.kind is Kind.REFUNDED:
        for facts in found:
            if facts.kind is Kind.REFUND_TOTAL:
                return facts, ()
    if not found:
        nothing = PaymentEvent(hint.source, Kind.OTHER, transaction_id=hint.transaction_id)
        return nothing, ()
    return found[0], tuple(read_back(facts) for facts in found[1:] if facts.kind not in _STATUSES)


def _is_behind(hint: PaymentEvent, answer: Found) -> bool:
    """Money is claimed, and the API knows of none: some read from copies that lag."""
    return hint.kind not in _STATUSES and all(facts.kind in _STATUSES for facts in answer.facts)


def _refused(row: Claimed, code: str, detail: str) -> Claimed:
    return replace(row, last_error=detail, event=replace(row.event, facts_error=code))


def _is_hint(source: Source) -> bool:
    """Whether nothing in this provider's messages is believed, so that a flaw of one is none."""
    try:
        return provider_of(source).confirm_by_fetch
    except UnknownProvider:
        return False


_FACTS = text(
    f"UPDATE webhook_events SET {', '.join(f'{name} = :{name}' for name in FACT_COLUMNS)} WHERE id = :id"
)
_FETCH = text(
    "INSERT INTO webhook_fetches (event_id, fetched_at, status, body)"
    " VALUES (:id, coalesce(CAST(:now AS timestamptz), now()), :status, :body)"
)
