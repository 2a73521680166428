"""Settings: read once at start from the environment and ``sources.toml``, every fault at once.

Secrets stand in the environment only; ``sources.toml`` names them (``secrets = ["env:NAME"]``). A
source whose secrets are missing is not a fault of the start: the other sources work, and its own
callbacks are answered 503 until the secret is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self

from receiver.alert_settings import AlertSettings
from receiver.db import database_url
from receiver.retention_settings import RetentionSettings
from receiver.sources import Secret, Source, read_sources

__all__ = ["Secret", "Settings", "SettingsError", "Source"]


class SettingsError(Exception):
    """The environment or ``sources.toml`` cannot be used. ``faults`` holds one sentence each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


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
    reconcile: bool = True
    reconcile_after: timedelta = timedelta(minutes=5)
    reconcile_longest: timedelta = timedelta(days=30)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = field(default="", repr=False)
    oidc_role_claim: str = "roles"
    log_level: str = "INFO"

    @property
    def soon(self) -> timedelta:
        """How long before its deadline an event is warned of: never from its receipt on."""
        return min(self.alerts.expiry, self.give_up / 2)

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Self:
        """Read ``environ`` and the sources file. Raises SettingsError with every fault found."""
        reader = _Reader(environ)
        settings = cls(
            database_url=reader.database_url(),
            sources=read_sources(environ, reader.faults),
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
            reconcile=reader.boolean("RECONCILE", cls.reconcile),
            reconcile_after=reader.seconds("RECONCILE_AFTER_SECONDS", cls.reconcile_after, 1, 7 * 86400),
            reconcile_longest=timedelta(days=reader.integer("RECONCILE_DAYS", 30, 1, 400)),
            alerts=AlertSettings.read(reader),
            retention=RetentionSettings.read(reader),
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
