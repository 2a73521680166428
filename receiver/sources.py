"""Sources: the configured provider accounts, read from ``sources.toml``.

Secrets stand in the environment only; the file names them (``secrets = ["env:NAME"]``). A source whose
secrets are missing is not a fault of the start: the other sources work, and its own callbacks are
answered 503 until the secret is there.
"""

from __future__ import annotations

import hashlib
import hmac
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MAX_SECRETS = 8
"""Active secrets of one source; with the cap on candidates it bounds the work of one forged post."""

SOURCE_KEYS = {
    "provider", "secrets", "tolerance_seconds", "timestamp", "live", "account", "options", "api", "api_url",
    "rotate_by",
}  # fmt: skip

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Secret:
    """One secret of a source, known to people by its reference and key id alone."""

    reference: str
    value: str = field(repr=False)

    @property
    def key_id(self) -> str:
        """Eight hex digits that tell one secret from another and give nothing of it away."""
        return hmac.new(self.value.encode(), b"receiver key id", hashlib.sha256).hexdigest()[:8]


@dataclass(frozen=True)
class Source:
    """One configured provider account: the ``<source>`` of ``POST /webhooks/<source>``.

    ``tolerance`` None means the provider's own window. ``live`` and ``account`` None mean that the
    source does not state them, so that they are not compared. ``api`` holds the credentials of the
    provider's payment API by name, ``api_url`` its address where it is the merchant's own. ``rotate_by``
    is the day on which a secret or certificate of it ends.
    """

    name: str
    provider: str
    secrets: tuple[Secret, ...] = ()
    missing_secrets: tuple[str, ...] = ()
    tolerance: timedelta | None = None
    timestamp: str | None = None
    live: bool | None = None
    account: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    api: Mapping[str, Secret] = field(default_factory=dict)
    missing_api: tuple[str, ...] = ()
    api_url: str | None = None
    rotate_by: date | None = None


def read_sources(environ: Mapping[str, str], faults: list[str]) -> dict[str, Source]:
    """Read the file that ``RECEIVER_SOURCES`` names; adds a sentence to ``faults`` for each fault."""
    return _SourcesReader(environ, faults).sources()


class _SourcesReader:
    """Reads the sources and collects the faults."""

    def __init__(self, environ: Mapping[str, str], faults: list[str]) -> None:
        self.environ = environ
        self.faults = faults

    def sources(self) -> dict[str, Source]:
        named = self.environ.get("RECEIVER_SOURCES", "")
        path = Path(named or "sources.toml")
        if not path.exists():
            if named:
                self.faults.append(f"RECEIVER_SOURCES names {named!r}, and there is no such file")
            return {}
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            self.faults.append(f"{path} is not valid TOML: {error}")
            return {}
        sources = {}
        for name, table in document.get("sources", {}).items():
            source = self._source(name, table)
            if source is not None:
                sources[name] = source
        unknown = set(document) - {"sources"}
        if unknown:
            self.faults.append(f"{path} has unknown tables: {', '.join(sorted(unknown))}")
        return sources

    def _source(self, name: str, table: object) -> Source | None:
        where = f"source {name!r}"
        if not isinstance(table, dict):
            self.faults.append(f"{where} must be a table [sources.{name}]")
            return None
        if not (0 < len(name) <= 64 and name.isascii() and name.replace("-", "").replace("_", "").isalnum()):
            self.faults.append(f"{where}: a name has 1 to 64 ASCII letters, digits, - and _")
        unknown = set(table) - SOURCE_KEYS
        if unknown:
            self.faults.append(f"{where} has unknown keys: {', '.join(sorted(unknown))}")
        provider = table.get("provider")
        if not isinstance(provider, str) or not provider:
            self.faults.append(f"{where} needs a provider")
            return None
        secrets, missing = self._secrets(where, table.get("secrets", []))
        api, missing_api = self._api(where, table.get("api", {}))
        return Source(
            name=name,
            provider=provider,
            secrets=secrets,
            missing_secrets=missing,
            tolerance=self._tolerance(where, table.get("tolerance_seconds")),
            timestamp=self._one_of(where, "timestamp", table.get("timestamp"), ("required", "optional")),
            live=self._typed(where, "live", table.get("live"), bool),
            account=self._typed(where, "account", table.get("account"), str),
            options=self._typed(where, "options", table.get("options"), dict) or {},
            api=api,
            missing_api=missing_api,
            api_url=self._api_url(where, table.get("api_url")),
            rotate_by=self._day(where, "rotate_by", table.get("rotate_by")),
        )

    def _secrets(self, where: str, references: object) -> tuple[tuple[Secret, ...], tuple[str, ...]]:
        if not isinstance(references, list) or not all(isinstance(r, str) for r in references):
            self.faults.append(f'{where}: secrets must be a list such as ["env:NAME"]')
            return (), ()
        if len(references) > MAX_SECRETS:
            self.faults.append(f"{where}: at most {MAX_SECRETS} secrets")
        found = [self._secret(where, reference) for reference in references[:MAX_SECRETS]]
        secrets = tuple(secret for secret in found if secret is not None and secret.value)
        return secrets, tuple(secret.reference for secret in found if secret is not None and not secret.value)

    def _api(self, where: str, table: object) -> tuple[dict[str, Secret], tuple[str, ...]]:
        if not isinstance(table, dict) or not all(isinstance(r, str) for r in table.values()):
            self.faults.append(f'{where}: api must be a table such as {{ key = "env:NAME" }}')
            return {}, ()
        found = {name: self._secret(where, reference) for name, reference in table.items()}
        named = {name: secret for name, secret in found.items() if secret is not None}
        api = {name: secret for name, secret in named.items() if secret.value}
        return api, tuple(secret.reference for secret in named.values() if not secret.value)

    def _secret(self, where: str, reference: str) -> Secret | None:
        """The secret that a reference names, empty where the environment has none."""
        kind, _, variable = reference.partition(":")
        if kind != "env" or not variable:
            # Never echo the text: it may be the secret itself.
            self.faults.append(f'{where}: a secret is named as "env:NAME", never written down')
            return None
        return Secret(reference, self.environ.get(variable, ""))

    def _api_url(self, where: str, value: object) -> str | None:
        if value is None:
            return None
        fault = f"{where}: api_url must be an https URL without user, query and fragment"
        if not isinstance(value, str):
            self.faults.append(fault)
            return None
        try:
            parts = urlsplit(value)
            host = parts.hostname
        except ValueError:
            parts, host = urlsplit(""), None
        plain = not (parts.username or parts.password or parts.query or parts.fragment)
        if (
            not host
            or not plain
            or not (parts.scheme == "https" or (parts.scheme, host in _LOOPBACK) == ("http", True))
        ):
            self.faults.append(fault)
            return None
        return value

    def _tolerance(self, where: str, value: object) -> timedelta | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 30 * 86400:
            self.faults.append(f"{where}: tolerance_seconds must be a whole number from 1 to 2592000")
            return None
        return timedelta(seconds=value)

    def _one_of(self, where: str, key: str, value: object, values: tuple[str, ...]) -> str | None:
        if value is None:
            return None
        if value not in values:
            self.faults.append(f"{where}: {key} must be one of {', '.join(values)}")
            return None
        return str(value)

    def _day(self, where: str, key: str, value: object) -> date | None:
        # A datetime is a date too, and would not compare with one.
        if value is not None and (isinstance(value, datetime) or not isinstance(value, date)):
            self.faults.append(f"{where}: {key} must be a day such as 2027-03-31, without quotes")
            return None
        return value

    def _typed(self, where: str, key: str, value: Any, kind: type) -> Any:
        if value is not None and not isinstance(value, kind):
            self.faults.append(f"{where}: {key} must be a {kind.__name__}")
            return None
        return value
