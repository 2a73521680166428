"""How a provider proves that a request is its own: the one shape of all the ways.

``Authentication`` is the seam: a declarative MAC stands here, tokens and digests over fields in files of
their own, and a provider whose proof is like no other's brings code of this shape. No ``verify`` raises,
whatever comes; each gives the reason for operators, never for the sender.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

from receiver import signature
from receiver.settings import Secret, Source
from receiver.signature import HeaderMap, MacScheme, Unverified

Options = Mapping[str, object]

UNAVAILABLE = "certificate_unavailable"
"""The reason of a refusal that is ours: the proof needs a certificate that could not be fetched."""


@dataclass(frozen=True, slots=True)
class Verified:
    """Proven by the secret of ``key_id``, or by what the key id names (a certificate)."""

    key_id: str


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """What a provider would send: its headers, and the body, which may itself hold the signature."""

    headers: dict[str, str]
    body: bytes


class Authentication(Protocol):
    """One way to prove a request. Everything is a pure function of its arguments.

    ``needs_secret`` False: there is none to configure (certificates, unsigned hints). ``key_form`` says
    to people how a secret of this protocol is written. ``sign`` is the provider's side, for trying out
    and for tests; it raises ValueError for a secret or option that it cannot use. ``faults`` are
    sentences about the source's options, without any secret.
    """

    @property
    def needs_secret(self) -> bool: ...

    @property
    def key_form(self) -> str: ...

    def usable(self, secret: str) -> bool: ...

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified: ...

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest: ...

    def faults(self, source: Source) -> list[str]: ...


@lru_cache(maxsize=1024)
def key_id(secret: Secret) -> str:
    """The secret's key id; remembered, as it costs an HMAC."""
    return secret.key_id


@dataclass(frozen=True)
class MacAuthentication:
    """A MAC over a template, under one of ``schemes``.

    With several schemes the first whose signature header is there is the one: a request is never tried
    by another. Only names of one scheme may be listed together, never an older one: that would be a
    downgrade. ``timestamp`` is what holds where the source does not say. ``also`` looks at a body whose
    MAC was right and gives the reason of a refusal, for what a provider's signature promises besides.
    ``sent`` are headers that the provider always sends, for signing as it does.
    """

    schemes: tuple[MacScheme, ...]
    timestamp: Literal["required", "optional"] = "required"
    also: Callable[[bytes], str | None] | None = None
    sent: tuple[tuple[str, str], ...] = ()
    needs_secret: bool = True

    @property
    def key_form(self) -> str:
        return self.schemes[0].key

    def usable(self, secret: str) -> bool:
        return signature.key_bytes(self.schemes[0], secret) is not None

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        verdict = signature.verify(
            self._spoken(headers),
            [secret.value for secret in source.secrets],
            headers,
            body,
            unix_now,
            tolerance=None if source.tolerance is None else int(source.tolerance.total_seconds()),
            timestamp_required=(source.timestamp or self.timestamp) == "required",
            config=source.options,
        )
        if isinstance(verdict, Unverified):
            return verdict
        if self.also is not None and (reason := self.also(body)) is not None:
            return Unverified(reason)
        return Verified(key_id(source.secrets[verdict.secret_index]))

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        signed = signature.sign(
            self.schemes[0], [secret], body, unix_now, {**dict(self.sent), **headers}, options
        )
        return SignedRequest(signed, body)

    def faults(self, source: Source) -> list[str]:
        found: list[str] = []
        for scheme in self.schemes:
            for kind, name in scheme.parts:
                if kind == "config" and not isinstance(source.options.get(name), str):
                    found.append(f"options.{name} is not set: it is part of what is signed")
        if source.timestamp == "optional" and all(scheme.signs_timestamp for scheme in self.schemes):
            found.append('timestamp = "optional" has no effect: the timestamp is signed')
        return found

    def _spoken(self, headers: HeaderMap) -> MacScheme:
        if len(self.schemes) > 1:
            for scheme in self.schemes:
                if headers.get(scheme.header) is not None:
                    return scheme
        return self.schemes[0]
