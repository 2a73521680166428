"""Payment APIs as descriptions: which calls, with which keys, and how their documents are read.

Documents are read by the same reader as messages (``BodyMap``, ``Unit``), so that units, currencies and
flaws mean the same. What an API does not carry but its key implies (account, mode) is what the source
states: the key belongs to that account.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import requests

from receiver.providers.api_documents import documents, filled
from receiver.providers.api_keys import Keys
from receiver.providers.asking import TOTAL_SECONDS, Answer, Question, ask
from receiver.providers.body_map import BodyMap
from receiver.providers.paths import Path, parse_path
from receiver.providers.payment_api import (
    Found,
    NotFound,
    NotOffered,
    Page,
    Transaction,
    Unavailable,
    Window,
    read_back,
)
from receiver.providers.payment_event import Kind, PaymentEvent
from receiver.providers.reading import ReadEvent, UnusableId, read_event
from receiver.providers.registry import provider_of
from receiver.providers.strict_json import canonical
from receiver.settings import Source

MAX_PAGES = 50
_IN_LIFE: Mapping[Kind, int] = {
    **dict.fromkeys((Kind.SUCCEEDED, Kind.CAPTURED), 1),
    **dict.fromkeys((Kind.VOIDED, Kind.REFUNDED, Kind.REFUND_TOTAL, Kind.REFUND_FAILED), 2),
    **dict.fromkeys((Kind.DISPUTE_OPENED, Kind.DISPUTE_WON, Kind.DISPUTE_LOST), 3),
}
"""Some APIs list the newest first."""

PAYMENT: str = "_payment"
"""In the documents of a list: the first call's answer, so that an item can be read with its payment."""

ASKED: str = "_asked"
"""In every document: the transaction id that was asked for."""

Judge = Callable[[Mapping[str, Any]], "NotFound | Unavailable | None"]


@dataclass(frozen=True)
class Part:
    """Documents of an answer: one at ``at``, or a list of them (``many``), read by ``body``.

    ``claimed``: read only where the message claims one of these kinds.
    """

    body: BodyMap
    at: Path = ()
    many: bool = False
    claimed: frozenset[Kind] | None = None


@dataclass(frozen=True)
class Call:
    """One question about a payment. ``path``, ``query`` and ``json`` take ``{transaction}``,
    ``{reference}``, ``{effect}`` and ``{api:NAME}`` (a credential; never in a path). ``claimed``: only for
    messages that claim one of these kinds; ``ids``: only for ids of this shape. ``missing_is_empty``: a
    404 means that there is nothing further, not that there is no payment.
    """

    path: str
    parts: tuple[Part, ...]
    query: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, str] | None = None
    claimed: frozenset[Kind] | None = None
    ids: str = r".+"
    missing_is_empty: bool = False
    judge: Judge | None = None

    def suits(self, transaction: Transaction) -> bool:
        """Whether it can be asked for this payment."""
        if self.claimed is not None and transaction.kind not in self.claimed:
            return False
        for name, value in (
            ("{transaction}", transaction.id),
            ("{reference}", transaction.order_reference),
            ("{effect}", transaction.effect_id),
        ):
            used = name in self.path or name in str(self.query) or name in str(self.json)
            if used and (value is None or value in (".", "..") or "\0" in value):
                return False
        return not transaction.id or re.fullmatch(self.ids, transaction.id, re.DOTALL) is not None


@dataclass(frozen=True)
class Listing:
    """How a window is listed. ``query`` is made of the window; ``following`` gives the query of the next
    page from the last one's document and what was asked, None at the end. ``events``: the items are
    messages as the provider sends them, read as the source speaks its provider; else they are documents
    read by ``parts``. ``passed``: where the
    newest come first and no window can be asked for, whether a page reaches back behind the window.
    """

    path: str
    query: Callable[[Window], dict[str, str]]
    following: Callable[[Mapping[str, Any], Mapping[str, str]], dict[str, str] | None]
    items: Path
    parts: tuple[Part, ...] = ()
    events: bool = False
    passed: Callable[[Sequence[Mapping[str, Any]], Window], bool] | None = None


@dataclass(frozen=True)
class ApiDescription:
    """One provider's API. ``calls`` stand in groups: of each group the first that suits is asked, the
    groups one after the other. ``reference``: where the merchant's reference stands in messages and in
    documents, as prefixes, so that ``options.order_reference`` holds for both.
    """

    live: str
    keys: Keys
    calls: tuple[tuple[Call, ...], ...]
    sandbox: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    reference: tuple[Path, Path] | None = None
    listing: Listing | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the credentials."""
        return self.keys.names


class DescribedApi:
    """A source's API by its description. One for each source and process: it keeps access tokens."""

    def __init__(self, description: ApiDescription, source: Source, http: requests.Session) -> None:
        self._api = description
        self._source = source
        self._http = http
        self._secrets = {name: secret.value for name, secret in source.api.items()}
        sandbox = description.sandbox if source.live is False and description.sandbox else description.live
        self._url = (source.api_url or sandbox).rstrip("/")
        self._reference = _reference_path(description, source)

    @property
    def lists(self) -> bool:
        return self._api.listing is not None

    def get(self, transaction: Transaction) -> Found | NotFound | NotOffered | Unavailable:
        """See PaymentAPI."""
        deadline = time.monotonic() + TOTAL_SECONDS
        facts: list[PaymentEvent] = []
        bodies: list[bytes] = []
        payment: dict[str, Any] = {}
        status = 0
        for group in self._api.calls:
            call = next((call for call in group if call.suits(transaction)), None)
            if call is None:
                if group is self._api.calls[0]:
                    return NotOffered("the API cannot be asked for such a payment")
                continue
            answer = self._ask(self._question(call, transaction), deadline)
            if isinstance(answer, NotFound) and call.missing_is_empty:
                continue
            if not isinstance(answer, Answer):
                return answer
            judged = call.judge(answer.document) if call.judge is not None else None
            if judged is not None:
                return replace(judged, status=answer.status, body=answer.body)
            payment = payment or answer.document
            found = self._read(call.parts, answer.document, payment, transaction)
            if isinstance(found, Unavailable):
                return replace(found, status=answer.status, body=answer.body)
            facts += found
            bodies.append(answer.body)
            status = answer.status
        facts.sort(key=lambda each: _IN_LIFE.get(each.kind, 0))
        return Found(tuple(facts), status, b"\n".join(bodies))

    def list(self, window: Window) -> Iterator[Page | Unavailable]:
        """See PaymentAPI."""
        listing = self._api.listing
        if listing is None:
            return
        query: dict[str, str] | None = listing.query(window)
        for _ in range(MAX_PAGES):
            question = Question(self._url + listing.path, query=query or {})
            answer = self._ask(question, time.monotonic() + TOTAL_SECONDS)
            if not isinstance(answer, Answer):
                missing = Unavailable("refused", "the API does not know this list")
                yield missing if isinstance(answer, NotFound) else answer
                return
            items = documents(answer.document, listing.items, many=True)
            if items is None:
                yield Unavailable("unreadable", "the answer holds no list", None, answer.status)
                return
            try:
                read = list(self._events(listing, items))
                yield Page(tuple(event for event, _ in read), tuple(canonical(item) for _, item in read))
            except UnusableId as error:
                yield Unavailable(
                    "unreadable", f"an event cannot be read: {error.detail}", None, answer.status
                )
                return
            query = listing.following(answer.document, query or {})
            if query is None or (listing.passed is not None and listing.passed(items, window)):
                return
        yield Unavailable("too_many_pages", f"more than {MAX_PAGES} pages: ask for a shorter window")

    def _events(
        self, listing: Listing, items: Sequence[dict[str, Any]]
    ) -> Iterator[tuple[ReadEvent, dict[str, Any]]]:
        for item in items:
            if listing.events:
                digest = hashlib.sha256(canonical(item)).digest()
                yield provider_of(self._source).read_document(self._source.name, {}, item, digest), item
                continue
            found = self._read(listing.parts, item, item, Transaction(None))
            for facts in () if isinstance(found, Unavailable) else found:
                yield read_back(facts), item

    def _question(self, call: Call, transaction: Transaction) -> Question:
        values = {
            "transaction": transaction.id or "",
            "reference": transaction.order_reference or "",
            "effect": transaction.effect_id or "",
        }
        secrets = {f"api:{name}": value for name, value in self._secrets.items()}
        path = filled(call.path, {name: quote(value, safe="") for name, value in values.items()})
        query = {name: filled(value, values | secrets) for name, value in call.query.items()}
        json = call.json and {name: filled(value, values | secrets) for name, value in call.json.items()}
        return Question(self._url + path, query=query, method="POST" if json else "GET", json=json)

    def _ask(self, question: Question, deadline: float) -> Answer | NotFound | Unavailable:
        headers = self._api.keys.headers(self._http, self._url, self._secrets, deadline)
        if isinstance(headers, Unavailable):
            return headers
        asked = replace(question, headers={**self._api.headers, **headers})
        answer = ask(self._http, asked, deadline)
        if isinstance(answer, Unavailable) and answer.reason == "unauthorized":
            self._api.keys.forget(self._url, self._secrets)
        return answer

    def _read(
        self, parts: Sequence[Part], document: dict[str, Any], payment: dict[str, Any], asked: Transaction
    ) -> Sequence[PaymentEvent] | Unavailable:
        facts: list[PaymentEvent] = []
        for part in parts:
            if part.claimed is not None and asked.kind not in part.claimed:
                continue
            found = documents(document, part.at, part.many)
            if found is None:
                return Unavailable("unreadable", "the answer is not of the shape that this version reads")
            for each in found:
                body = self._with_reference(part.body)
                read = self._facts({**each, PAYMENT: payment, ASKED: asked.id}, body)
                if read.kind is not Kind.OTHER or read.facts_error is not None:
                    facts.append(self._of_source(read))
        return facts

    def _facts(self, document: Mapping[str, Any], body: BodyMap) -> PaymentEvent:
        return read_event(self._source.name, "", document, body, b"").facts

    def _with_reference(self, body: BodyMap) -> BodyMap:
        path = self._reference
        if path is None:
            return body
        return body.changed(lambda where: replace(where, order_reference=where.order_reference and path))

    def _of_source(self, facts: PaymentEvent) -> PaymentEvent:
        account = self._source.account if facts.account is None else facts.account
        live = self._source.live if facts.live is None else facts.live
        return replace(facts, account=account, live=live)


def _reference_path(description: ApiDescription, source: Source) -> Path | None:
    option = source.options.get("order_reference")
    if not isinstance(option, str) or description.reference is None:
        return None
    try:
        path = parse_path(option)
    except ValueError:
        return None
    in_messages, in_documents = description.reference
    if path[: len(in_messages)] != in_messages:
        return None
    return (*in_documents, *path[len(in_messages) :])
