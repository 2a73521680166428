"""Ask a source's API about an order: by the transactions that we know, by our reference, or by a list.

No transaction is open meanwhile. What comes back are values: a provider's failure is one of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from receiver.deps import Deps
from receiver.inbox.post_facts import Learnt
from receiver.logs import logger
from receiver.providers.apis import can_be_asked, description, payment_api
from receiver.providers.payment_api import (
    Found,
    NotFound,
    NotOffered,
    PaymentAPI,
    Transaction,
    Unavailable,
    Window,
    read_back,
)
from receiver.providers.payment_event import Kind
from receiver.settings import Settings, Source

MAX_TRANSACTIONS = 10
"""Transactions of one order that are asked for in one check, the newest of them."""

BEFORE = timedelta(minutes=15)
"""How long before its order was registered a payment is looked for in a list."""

OVERLAP = timedelta(hours=1)
"""How far a list reaches back behind the last answer: some APIs list an event late."""

CLOSED = timedelta(seconds=30)
"""How long an API that gave no answer is left alone by this process."""

log = logger("reconcile")


@dataclass(frozen=True, slots=True)
class Subject:
    """An order as it is asked for at one source. ``holds``: one of its transactions there has money."""

    order_id: UUID
    reference: str
    source: str
    created_at: datetime
    transactions: tuple[str, ...]
    holds: bool
    last_answered_at: datetime | None = None

    @property
    def listed_from(self) -> datetime:
        """From when on a list may hold news of it."""
        if self.last_answered_at is not None:
            return self.last_answered_at - OVERLAP
        return self.created_at - BEFORE


@dataclass(slots=True)
class Answers:
    """What the API said of one order. ``known``: transactions that it answered for; ``unknown`` to it.

    ``offered`` False: it could not be asked for this order in any way. ``unavailable``: one question got
    no answer, so that nothing may be concluded from what is absent.
    """

    learnt: list[Learnt] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    offered: bool = False
    unavailable: Unavailable | None = None
    said: str = ""


class Asker:
    """The APIs of one process's sources, and which of them want to be left alone for a while."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._apis: dict[str, PaymentAPI | None] = {}
        self._closed: dict[str, float] = {}

    def use(self, deps: Deps) -> None:
        """Ask by other settings from now on."""
        self.__init__(deps)  # type: ignore[misc]

    def api(self, name: str) -> PaymentAPI | None:
        """The source's API; None where it has none that can be asked."""
        if name not in self._apis:
            source = self._deps.settings.sources.get(name)
            self._apis[name] = None if source is None else payment_api(source, self._deps.http)
        return self._apis[name]

    def open_sources(self) -> list[str]:
        """The sources that can be asked now."""
        now = time.monotonic()
        return [name for name in askable(self._deps.settings) if self._closed.get(name, 0.0) <= now]

    def close(self, name: str, answer: Unavailable) -> None:
        """Leave the source's API alone for as long as it asked for, or for a moment."""
        pause = max(CLOSED, answer.retry_after or CLOSED)
        self._closed[name] = time.monotonic() + pause.total_seconds()
        log.warning("api.closed", source=name, reason=answer.reason, seconds=int(pause.total_seconds()))

    def ask(self, subject: Subject, listed: Listed) -> Answers:
        """Everything that the source's API says of the order."""
        answers = Answers()
        api = self.api(subject.source)
        if api is None:
            answers.said = "this source has no API that can be asked"
            return answers
        for transaction in subject.transactions[-MAX_TRANSACTIONS:]:
            self._take(answers, api.get(Transaction(transaction, subject.reference)), transaction)
            if answers.unavailable is not None:
                return answers
        if not subject.holds:
            self._ask_without_transaction(answers, api, subject, listed)
        return answers

    def _ask_without_transaction(
        self, answers: Answers, api: PaymentAPI, subject: Subject, listed: Listed
    ) -> None:
        answer = api.get(Transaction(None, subject.reference))
        if isinstance(answer, NotOffered) and api.lists:
            answers.offered = True
            answers.learnt += listed.of(subject)
            answers.unavailable = listed.unavailable
            return
        self._take(answers, answer, None)

    def _take(
        self, answers: Answers, answer: Found | NotFound | NotOffered | Unavailable, asked: str | None
    ) -> None:
        match answer:
            case Found(facts, status, body):
                answers.offered = True
                answers.learnt += [Learnt(read_back(fact), status, body) for fact in facts]
                # A document without a fact that we read proves nothing about the payment.
                answers.known += [asked] if asked is not None and facts else []
                answers.said = answers.said or ("" if facts else "no payment with our reference")
            case NotFound(detail):
                answers.offered = True
                answers.said = detail
                answers.unknown += [asked] if asked is not None else []
            case NotOffered(detail):
                answers.said = answers.said or detail
            case Unavailable():
                answers.offered = True
                answers.unavailable = answer
                answers.said = answer.detail


@dataclass(slots=True)
class Listed:
    """What a source lists from an instant on: asked once, for all orders of a batch that need it."""

    api: PaymentAPI | None
    window: Window
    unavailable: Unavailable | None = None
    _events: list[Learnt] | None = None

    def of(self, subject: Subject) -> list[Learnt]:
        """The listed events of one order, by its reference or its transactions."""
        if self._events is None:
            self._events, self.unavailable = (
                ([], None) if self.api is None else list_window(self.api, self.window)
            )
        return [
            one
            for one in self._events
            if one.event.facts.order_reference == subject.reference
            or (one.event.facts.transaction_id or "") in subject.transactions
        ]


def list_window(api: PaymentAPI, window: Window) -> tuple[list[Learnt], Unavailable | None]:
    """All that the API lists of a window, each event once; where it breaks off, and why."""
    seen: dict[str, Learnt] = {}
    for page in api.list(window):
        if isinstance(page, Unavailable):
            return list(seen.values()), page
        bodies: Sequence[bytes] = page.bodies or [b""] * len(page.events)
        for event, body in zip(page.events, bodies, strict=True):
            seen[event.provider_event_id] = Learnt(event, 200, body)
    return list(seen.values()), None


def askable(settings: Settings) -> list[str]:
    """The sources whose API is known and whose credentials are there."""
    return sorted(name for name, source in settings.sources.items() if can_be_asked(source))


def told_kinds(source: Source | None) -> frozenset[Kind]:
    """The kinds of facts that the source's API tells of every payment."""
    known = description(source.provider) if source is not None else None
    if known is None:
        return frozenset()
    return frozenset(
        meaning.kind
        for group in known.calls
        for call in group
        if call.claimed is None
        for part in call.parts
        if part.claimed is None
        for several in part.body.several.values()
        for meaning in several
    )
