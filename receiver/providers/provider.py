"""A provider: the protocol spoken, described once for endpoint, worker, pages and tests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from receiver.providers.authentication import Authentication, SignedRequest, Verified
from receiver.providers.body_map import BodyMap
from receiver.providers.envelopes import Envelope, JsonObject
from receiver.providers.identities import BodyId, HeaderId, Identity
from receiver.providers.paths import Path, is_absent, parse_path
from receiver.providers.reading import UNCONFIRMED, ReadEvent, read_event
from receiver.providers.strict_json import canonical
from receiver.settings import Secret, Source
from receiver.signature import HeaderMap, Unverified

__all__ = ["Answers", "BodyId", "HeaderId", "Provider", "Verified"]


@dataclass(frozen=True)
class Answers:
    """What the provider wants to hear.

    ``accepted`` is the status of a stored request and ``body`` its text (None: the usual receipt);
    ``unverified`` the status of a bad signature.
    """

    accepted: int = 200
    body: str | None = None
    unverified: int = 401


@dataclass(frozen=True)
class Provider:
    """How one provider signs and what its events mean.

    ``never_carries`` names facts (``sequence``, ``account``, ``live``, …) that no event of the protocol
    has, so that they are not checked. ``secret_headers`` (lower case) carry the secret itself and are
    never kept. ``signed`` says to people what the proof covers; nothing outside it is believed.
    ``confirm_by_fetch``: an event counts only once it is read back (see ReadEvent); so does one that has
    nothing at ``confirm_without`` (a thin event of a protocol that has full ones).
    ``reference_option``: the source's ``options.order_reference`` names where the merchant's own
    reference stands. ``option_names`` are the options it takes. ``described`` makes the provider that a
    source describes by its options. Without all ``needed_options`` nothing can be verified, and the
    source is not ready. ``challenge`` answers a GET to the endpoint: the text for the source
    and its query, or None. ``visit`` gives the URL that the provider wants to be fetched, once, after a
    verified request (None: nothing); it looks at host and audience, so that a worker may fetch it.
    """

    name: str
    authentication: Authentication
    identity: Identity
    body: BodyMap
    envelope: Envelope = field(default_factory=JsonObject)
    never_carries: frozenset[str] = frozenset()
    secret_headers: frozenset[str] = frozenset()
    signed: tuple[str, ...] = ("body",)
    answers: Answers = Answers()
    confirm_by_fetch: bool = False
    confirm_without: Path | None = None
    reference_option: bool = False
    option_names: frozenset[str] = frozenset()
    needed_options: frozenset[str] = frozenset()
    described: Callable[[Provider, Mapping[str, object]], Provider] | None = None
    described_faults: Callable[[Mapping[str, object]], list[str]] | None = None
    challenge: Callable[[Source, Mapping[str, str]], str | None] | None = None
    visit: Callable[[Source, bytes], str | None] | None = None

    def of_source(self, options: Mapping[str, object]) -> Provider:
        """The provider as a source with ``options`` speaks it; itself where they change nothing.

        Options that ``faults`` complains of are left out.
        """
        if self.described is not None:
            return self.described(self, options)
        reference = options.get("order_reference") if self.reference_option else None
        if not isinstance(reference, str):
            return self
        try:
            path = parse_path(reference)
        except ValueError:
            return self
        return replace(self, body=self.body.changed(lambda where: replace(where, order_reference=path)))

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        """Whether ``body`` came from ``source``, over the raw bytes. No input raises.

        A source that is not ``is_ready`` must be answered 503 before.
        """
        return self.authentication.verify(source, headers, body, unix_now)

    def read(self, source_name: str, headers: HeaderMap, body: bytes) -> tuple[ReadEvent, ...]:
        """The events of a verified request, in order. Raises Unreadable (400) or UnusableId (422)."""
        documents = self.envelope.items(body)
        if self.envelope.batch:
            hashes = [hashlib.sha256(canonical(document)).digest() for document in documents]
        else:
            hashes = [hashlib.sha256(body).digest()]
        return tuple(
            self.read_document(source_name, headers, document, hashes[item], item)
            for item, document in enumerate(documents)
        )

    def read_document(
        self,
        source_name: str,
        headers: HeaderMap,
        document: Mapping[str, Any],
        payload_sha256: bytes,
        item: int = 0,
    ) -> ReadEvent:
        """What one parsed document says. Raises UnusableId."""
        event_id = self.identity.event_id(headers, document)
        event = read_event(source_name, event_id, document, self.body, payload_sha256, item)
        thin = self.confirm_without is not None and is_absent(document, self.confirm_without)
        confirm = (self.confirm_by_fetch or thin) and not self._means_no_money(event)
        if not confirm and not self.identity.per_receipt:
            return event
        facts = event.facts
        if confirm and facts.facts_error is None:
            facts = replace(facts, facts_error=UNCONFIRMED)
        return replace(event, facts=facts, confirm_by_fetch=confirm, per_receipt=self.identity.per_receipt)

    def _means_no_money(self, event: ReadEvent) -> bool:
        """Whether it is of a type that has no money meaning: there is nothing to read back then. Whoever
        could forge a type could keep the whole message from us as well, and the true one is another row, or
        a conflict of this one.
        """
        unknown = event.event_type is not None and event.event_type not in self.body.several
        return unknown and event.facts.facts_error is None

    def sign(
        self,
        secret: str,
        body: bytes,
        unix_now: float,
        event_id: str,
        config: Mapping[str, object] | None = None,
    ) -> dict[str, str]:
        """The headers with which the provider would send ``body``, where the body itself is not changed
        by signing: see ``sign_request``.
        """
        return self.sign_request(secret, body, unix_now, event_id, config).headers

    def sign_request(
        self,
        secret: str,
        body: bytes,
        unix_now: float,
        event_id: str,
        config: Mapping[str, object] | None = None,
    ) -> SignedRequest:
        """The request with which the provider would send ``body`` (for trying out, and tests).

        Raises ValueError for a secret or an option that cannot sign, or a body without the fields.
        """
        headers = self.identity.headers(event_id)
        return self.authentication.sign(secret, headers, body, unix_now, config or {})

    def usable_secrets(self, source: Source) -> tuple[Secret, ...]:
        """The secrets of ``source`` that can verify anything; the others are misspelt for this protocol."""
        return tuple(s for s in source.secrets if self.authentication.usable(s.value))

    def is_ready(self, source: Source) -> bool:
        """Whether requests of ``source`` can be verified at all; if not, they are answered 503."""
        if not all(source.options.get(name) for name in self.needed_options):
            return False
        return not self.authentication.needs_secret or bool(self.usable_secrets(source))

    def timestamp_optional(self, source: Source) -> bool:
        """Whether a request of ``source`` may come without its (unsigned) timestamp."""
        default = getattr(self.authentication, "timestamp", "required")
        return (source.timestamp or default) == "optional"

    def faults(self, source: Source) -> list[str]:
        """What is wrong with a source's settings for this protocol: one sentence each, no secret in it."""
        found = [f"secret {r} is not set" for r in source.missing_secrets]
        if self.described_faults is not None and (wrong := self.described_faults(source.options)):
            return found + wrong
        authentication = self.of_source(source.options).authentication
        found += [
            f"secret {s.reference} is not {authentication.key_form} as {self.name} secrets are"
            for s in source.secrets
            if authentication.needs_secret and not authentication.usable(s.value)
        ]
        found += authentication.faults(source)
        if self.described_faults is not None:
            return found
        known = self.option_names | ({"order_reference"} if self.reference_option else set())
        found += [
            f"options.{name} is no option of {self.name}" for name in sorted(set(source.options) - known)
        ]
        reference = source.options.get("order_reference")
        if self.reference_option and reference is not None and not _is_path(reference):
            found.append("options.order_reference must be names with points between, such as data.order_id")
        return found


def _is_path(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(parse_path(value))
    except ValueError:
        return False
