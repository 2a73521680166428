"""How an API wants to be shown our credentials: a key, a pair, or an access token fetched with them.

Access tokens are kept in the process until shortly before they end; they are never logged or stored.
"""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import requests

from receiver.providers.asking import Answer, Question, ask
from receiver.providers.payment_api import Unavailable

Secrets = Mapping[str, str]
_EARLY_SECONDS = 60


def basic(user: str, password: str) -> dict[str, str]:
    """The header of HTTP Basic."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


class Keys(Protocol):
    """``names``: the credentials that a source must give. ``headers`` may ask the API for a token."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def headers(
        self, http: requests.Session, url: str, secrets: Secrets, deadline: float
    ) -> dict[str, str] | Unavailable: ...

    def forget(self, url: str, secrets: Secrets) -> None:
        """A token was refused: fetch another next time."""


@dataclass(frozen=True)
class KeyHeader:
    """One key in a header: ``Authorization: Bearer`` unless told otherwise."""

    name: str = "key"
    header: str = "Authorization"
    prefix: str = "Bearer "

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def headers(
        self, http: requests.Session, url: str, secrets: Secrets, deadline: float
    ) -> dict[str, str] | Unavailable:
        return {self.header: self.prefix + secrets[self.name]}

    def forget(self, url: str, secrets: Secrets) -> None:
        return None


@dataclass(frozen=True)
class Pair:
    """HTTP Basic; ``password`` None: the key stands for the user and there is no password."""

    user: str = "key"
    password: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.user,) if self.password is None else (self.user, self.password)

    def headers(
        self, http: requests.Session, url: str, secrets: Secrets, deadline: float
    ) -> dict[str, str] | Unavailable:
        return basic(secrets[self.user], "" if self.password is None else secrets[self.password])

    def forget(self, url: str, secrets: Secrets) -> None:
        return None


@dataclass(frozen=True)
class InTheQuery:
    """The credentials are part of each question."""

    names: tuple[str, ...]

    def headers(
        self, http: requests.Session, url: str, secrets: Secrets, deadline: float
    ) -> dict[str, str] | Unavailable:
        return {}

    def forget(self, url: str, secrets: Secrets) -> None:
        return None


@dataclass(frozen=True)
class Tokens:
    """Access tokens by address and credentials, with their ends."""

    kept: dict[bytes, tuple[str, float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, url: str, secrets: Secrets) -> bytes:
        return hashlib.sha256(repr((url, sorted(secrets.items()))).encode()).digest()


@dataclass(frozen=True)
class ClientCredentials:
    """OAuth 2 client credentials: a bearer token for the pair."""

    path: str
    tokens: Tokens = field(default_factory=Tokens, repr=False, compare=False)
    names: tuple[str, ...] = ("client_id", "client_secret")

    def headers(
        self, http: requests.Session, url: str, secrets: Secrets, deadline: float
    ) -> dict[str, str] | Unavailable:
        token = self.token(http, url, secrets, deadline)
        return token if isinstance(token, Unavailable) else {"Authorization": f"Bearer {token}"}

    def token(self, http: requests.Session, url: str, secrets: Secrets, deadline: float) -> str | Unavailable:
        """The kept token, or a new one."""
        key = self.tokens.of(url, secrets)
        with self.tokens.lock:
            kept, ends = self.tokens.kept.get(key, ("", 0.0))
            if kept and time.monotonic() < ends:
                return kept
            answer = ask(http, self.question(url, secrets), deadline)
            if not isinstance(answer, Answer):
                missing = Unavailable("unauthorized", "the API has no such token address")
                return answer if isinstance(answer, Unavailable) else missing
            token, seconds = self.granted(answer)
            if not isinstance(token, str) or not token.isascii() or not token.isprintable():
                return Unavailable("unauthorized", "the API gave no access token", None, answer.status)
            lasts = int(str(seconds)) if str(seconds).isdecimal() and len(str(seconds)) < 9 else 600
            self.tokens.kept[key] = (token, time.monotonic() + max(0, lasts - _EARLY_SECONDS))
            return token

    def question(self, url: str, secrets: Secrets) -> Question:
        """What is asked for a token."""
        pair = basic(secrets["client_id"], secrets["client_secret"])
        return Question(url + self.path, pair, method="POST", form={"grant_type": "client_credentials"})

    def granted(self, answer: Answer) -> tuple[object, object]:
        """The token and its life in seconds."""
        return answer.document.get("access_token"), answer.document.get("expires_in")

    def forget(self, url: str, secrets: Secrets) -> None:
        with self.tokens.lock:
            self.tokens.kept.pop(self.tokens.of(url, secrets), None)
