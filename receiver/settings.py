"""Settings: read once at start from the environment and ``sources.toml``, every fault at once.

Secrets stand in the environment only; ``sources.toml`` names them (``secrets = ["env:NAME"]``). A
source whose secrets are missing is not a fault of the start: the other sources work, and its own
callbacks are answered 503 until the secret is there.
"""

from __future__ import annotations

import hashlib
import hmac
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from receiver.db import database_url

MAX_SECRETS = 8
"""Active secrets of one source; with the cap on candidates it bounds the work of one forged post."""

SOURCE_KEYS = {
    "provider", "secrets", "tolerance_seconds", "timestamp", "live", "account", "options", "api", "api_url",
}  # fmt: skip

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class SettingsError(Exception):
    """The environment or ``sources.toml`` cannot be used. ``faults`` holds one sentence each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


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
    provider's payment API by name, ``api_url`` its address where it is the merchant's own.
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


@dataclass(frozen=True)
class Settings:
    """All settings of a process. Durations are timedeltas, sizes bytes."""

    database_url: str = field(repr=False)
    sources: Mapping[str, Source] = field(default_factory=dict)
    secret_key: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8000
    web_workers: int = 2
    worker_name: str = ""
    poll: timedelta = timedelta(seconds=0.5)
    lease: timedelta = timedelta(seconds=60)
    batch_size: int = 100
    batch_limit: timedelta = timedelta(seconds=15)
    give_up: timedelta = timedelta(hours=72)
    max_body_bytes: int = 1024 * 1024
    read_timeout: timedelta = timedelta(seconds=20)
    intake_timeout: timedelta = timedelta(seconds=4)
    trusted_proxies: int = 0
    trusted_hosts: tuple[str, ...] = ()
    cookie_secure: bool = True
    worker_stale: timedelta = timedelta(seconds=30)
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = field(default="", repr=False)
    oidc_role_claim: str = "roles"
    log_level: str = "INFO"

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read ``environ`` and the sources file. Raises SettingsError with every fault found."""
        reader = _Reader(environ)
        settings = cls(
            database_url=reader.database_url(),
            sources=reader.sources(),
            secret_key=environ.get("SECRET_KEY", ""),
            host=environ.get("HOST", cls.host),
            port=reader.integer("PORT", cls.port, 0, 65535),
            web_workers=reader.integer("WEB_CONCURRENCY", cls.web_workers, 1, 64),
            worker_name=environ.get("WORKER_NAME", ""),
            poll=reader.seconds("POLL_SECONDS", cls.poll, 0.05, 60),
            lease=reader.seconds("LEASE_SECONDS", cls.lease, 5, 3600),
            batch_size=reader.integer("BATCH_SIZE", cls.batch_size, 1, 1000),
            batch_limit=reader.seconds("BATCH_LIMIT_SECONDS", cls.batch_limit, 1, 600),
            give_up=reader.seconds("GIVE_UP_SECONDS", cls.give_up, 60, 30 * 86400),
            max_body_bytes=reader.integer("MAX_BODY_BYTES", cls.max_body_bytes, 1024, 64 * 1024 * 1024),
            read_timeout=reader.seconds("READ_TIMEOUT_SECONDS", cls.read_timeout, 1, 300),
            intake_timeout=reader.seconds("INTAKE_TIMEOUT_SECONDS", cls.intake_timeout, 0.5, 30),
            trusted_proxies=reader.integer("TRUSTED_PROXIES", cls.trusted_proxies, 0, 10),
            trusted_hosts=tuple(h.strip() for h in environ.get("TRUSTED_HOSTS", "").split(",") if h.strip()),
            cookie_secure=reader.boolean("COOKIE_SECURE", cls.cookie_secure),
            worker_stale=reader.seconds("WORKER_STALE_SECONDS", cls.worker_stale, 5, 3600),
            oidc_issuer=reader.issuer(),
            oidc_client_id=environ.get("OIDC_CLIENT_ID", ""),
            oidc_client_secret=environ.get("OIDC_CLIENT_SECRET", ""),
            oidc_role_claim=environ.get("OIDC_ROLE_CLAIM", "") or cls.oidc_role_claim,
            log_level=reader.choice("LOG_LEVEL", cls.log_level, ("DEBUG", "INFO", "WARNING", "ERROR")),
        )
        if settings.lease <= settings.batch_limit:
            reader.faults.append("LEASE_SECONDS must be longer than BATCH_LIMIT_SECONDS")
        if reader.faults:
            raise SettingsError(reader.faults)
        return settings


class _Reader:
    """Reads single settings and collects the faults."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.faults: list[str] = []

    def database_url(self) -> str:
        text = self.environ.get("DATABASE_URL", "")
        if not text:
            self.faults.append(
                "DATABASE_URL is not set: give the URL of a PostgreSQL database "
                "(for trying out, `receiver up` brings its own)"
            )
            return ""
        try:
            database_url(text)
        except Exception as error:
            # The text itself may hold a password: name the kind of the fault alone.
            self.faults.append(f"DATABASE_URL cannot be read as a PostgreSQL URL ({type(error).__name__})")
        return text

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        text = self.environ.get(name, "")
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 16) or not low <= int(text) <= high:
            self.faults.append(f"{name} must be a whole number from {low} to {high}, not {text!r}")
            return default
        return int(text)

    def seconds(self, name: str, default: timedelta, low: float, high: float) -> timedelta:
        text = self.environ.get(name, "")
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            self.faults.append(f"{name} must be seconds from {low:g} to {high:g}, not {text!r}")
            return default
        return timedelta(seconds=value)

    def issuer(self) -> str:
        """The OpenID Connect issuer; over plain http only on this machine."""
        text = self.environ.get("OIDC_ISSUER", "")
        if text and not text.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
            self.faults.append("OIDC_ISSUER must be an https URL")
        if text and not (self.environ.get("OIDC_CLIENT_ID") and self.environ.get("OIDC_CLIENT_SECRET")):
            self.faults.append("OIDC_ISSUER needs OIDC_CLIENT_ID and OIDC_CLIENT_SECRET")
        return text

    def boolean(self, name: str, default: bool) -> bool:
        text = self.environ.get(name, "").lower()
        if not text:
            return default
        if text not in ("1", "0", "true", "false"):
            self.faults.append(f"{name} must be 1 or 0, not {text!r}")
        return text in ("1", "true")

    def choice(self, name: str, default: str, values: tuple[str, ...]) -> str:
        text = self.environ.get(name, "").upper() or default
        if text not in values:
            self.faults.append(f"{name} must be one of {', '.join(values)}, not {text!r}")
            return default
        return text

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

    def _typed(self, where: str, key: str, value: Any, kind: type) -> Any:
        if value is not None and not isinstance(value, kind):
            self.faults.append(f"{where}: {key} must be a {kind.__name__}")
            return None
        return value
