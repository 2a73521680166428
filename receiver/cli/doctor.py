"""What `receiver check` looks at. Each examination returns findings; none of them raises or changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from receiver.alerts.channels import fault_of
from receiver.cli.source_dangers import dangers
from receiver.deps import Deps
from receiver.logs import scrub
from receiver.queue.pauses import list_pauses
from receiver.queue.workers import list_workers
from receiver.schema import current_revision, head_revision
from receiver.settings import Settings, Source
from receiver.web.sources import faults_of, spoken_by

Verdict = Literal["ok", "note", "fault"]

OLDEST_POSTGRESQL = 140000
PROMISED = ("fsync", "synchronous_commit", "full_page_writes")
"""Settings that a 2xx rests on: without them a commit is not on disk."""

SKEW_NOTE_SECONDS = 5
SKEW_FAULT_SECONDS = 60
"""Windows of signatures are 300 s: a host this far off refuses sound callbacks soon."""

SECRET_KEY_MIN = 32


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. A ``fault`` makes the command end with 1; a ``note`` is worth knowing."""

    about: str
    verdict: Verdict
    text: str


def examine(deps: Deps, *, unix: Callable[[], float] = time.time) -> list[Finding]:
    """Everything, in the order in which one would repair it."""
    found = [*_settings(deps.settings)]
    try:
        with deps.sessions() as session:
            found += _server(session)
            found.append(_clock(session, unix))
            found.append(_migrations(session))
            if found[-1].verdict == "ok":
                found += _workers(session, deps.settings)
                found += _pauses(session)
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        found.append(Finding("database", "fault", f"does not answer: {scrub(cause)}"))
    for source in deps.settings.sources.values():
        found += _source(source)
    found += _channels(deps.settings)
    found.append(_retention(deps.settings))
    if not deps.settings.sources:
        found.append(Finding("sources", "fault", "none is configured: see sources.example.toml"))
    return found


def _retention(settings: Settings) -> Finding:
    kept = settings.retention
    if not kept.erases:
        return Finding("ARCHIVE_URL", "note", "is not set: payloads are kept for ever, and disks fill")
    if not kept.archives:
        return Finding("ARCHIVE_URL", "note", "is none: payloads are erased at their age without an archive")
    return Finding("ARCHIVE_URL", "ok", f"payloads are archived after {kept.payloads.days} days")


def _settings(settings: Settings) -> Iterator[Finding]:
    if not settings.secret_key:
        yield Finding("SECRET_KEY", "fault", "is not set: nobody can sign in, and serve refuses to start")
    elif len(settings.secret_key) < SECRET_KEY_MIN:
        yield Finding("SECRET_KEY", "note", f"is shorter than {SECRET_KEY_MIN} characters")
    else:
        yield Finding("SECRET_KEY", "ok", "is set")
    if not settings.cookie_secure:
        yield Finding("COOKIE_SECURE", "note", "is off: sign-in cookies also travel over plain http")
    if not settings.trusted_hosts:
        yield Finding("TRUSTED_HOSTS", "note", "is not set: every Host header is answered")


def _server(session: Session) -> Iterator[Finding]:
    version = int(session.execute(text("SHOW server_version_num")).scalar_one())
    shown = session.execute(text("SHOW server_version")).scalar_one()
    if version < OLDEST_POSTGRESQL:
        yield Finding("database", "fault", f"PostgreSQL {shown} is too old: 14 or newer is needed")
    else:
        yield Finding("database", "ok", f"PostgreSQL {shown} answers")
    for name in PROMISED:
        value = session.execute(text(f"SHOW {name}")).scalar_one()
        if value == "off":
            yield Finding(name, "fault", "is off: an acknowledged event may be lost in a crash")
        else:
            yield Finding(name, "ok", str(value))
    isolation = session.execute(text("SHOW transaction_isolation")).scalar_one()
    verdict: Verdict = "ok" if isolation == "read committed" else "fault"
    yield Finding("isolation", verdict, str(isolation))


def _clock(session: Session, unix: Callable[[], float]) -> Finding:
    before = unix()
    database = float(session.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    after = unix()
    skew = database - (before + after) / 2
    shown = f"this host and the database differ by {abs(skew):.1f} s"
    if abs(skew) > SKEW_FAULT_SECONDS:
        return Finding("clock", "fault", f"{shown}: sound signatures will be refused as stale or future")
    return Finding("clock", "note" if abs(skew) > SKEW_NOTE_SECONDS else "ok", shown)


def _migrations(session: Session) -> Finding:
    current, head = current_revision(session.connection()), head_revision()
    if current == head:
        return Finding("migrations", "ok", f"at {head}")
    at = "nothing was migrated" if current is None else f"the schema is at {current}, this code wants {head}"
    return Finding("migrations", "fault", f"{at}: run `receiver migrate`")


def _workers(session: Session, settings: Settings) -> Iterator[Finding]:
    now = session.execute(text("SELECT now()")).scalar_one()
    workers = list_workers(session)
    alive = [worker for worker in workers if now - worker.last_seen_at <= settings.worker_stale]
    if not alive:
        last = f", the last one {workers[0].last_seen_at:%Y-%m-%d %H:%M:%SZ}" if workers else ""
        yield Finding(
            "workers", "fault", f"none was seen lately{last}: events are stored, orders do not move"
        )
    else:
        yield Finding("workers", "ok", f"{len(alive)} alive: {', '.join(worker.name for worker in alive)}")


def _pauses(session: Session) -> Iterator[Finding]:
    for pause in list_pauses(session):
        yield Finding(
            f"pause {pause.key}",
            "note",
            f"since {pause.paused_at:%Y-%m-%d %H:%M:%SZ} by {pause.by}: {pause.reason}",
        )


def _channels(settings: Settings) -> Iterator[Finding]:
    if not settings.alerts.channels:
        yield Finding("alerts", "note", "nobody is told: set ALERT_URLS or SUPPORT_EMAIL")
    for channel in settings.alerts.channels:
        fault = fault_of(channel)
        about = f"alerts over {channel.name}"
        if fault is not None:
            yield Finding(about, "fault", fault)
        else:
            yield Finding(about, "ok", "can be read; `receiver alerts test` sends a test")
    if settings.alerts.channels and not settings.alerts.public_url:
        yield Finding("PUBLIC_URL", "note", "is not set: links in alerts are paths")


def _source(source: Source) -> Iterator[Finding]:
    about = f"source {source.name}"
    provider = spoken_by(source)
    unset = {f"secret {reference} is not set" for reference in source.missing_secrets}
    for fault in faults_of(source):
        # A place kept for the next secret of a rotation is no fault while another one works.
        spare = fault in unset and provider is not None and provider.is_ready(source)
        yield Finding(about, "note" if spare else "fault", fault)
    if provider is None:
        return
    usable = provider.usable_secrets(source)
    if usable:
        keys = ", ".join(secret.key_id for secret in usable)
        yield Finding(about, "ok", f"{source.provider}, active keys {keys}")
    for verdict, said in dangers(source, provider):
        yield Finding(about, verdict, said)
    if provider.timestamp_optional(source):
        yield Finding(about, "note", "its timestamp is optional: de-duplication alone stops replays")
    never = sorted(provider.never_carries)
    if never:
        yield Finding(about, "note", f"{source.provider} never carries {', '.join(never)}: not checked")
    for fact, value in (("account", source.account), ("live", source.live)):
        if value is None and fact not in provider.never_carries:
            yield Finding(about, "note", f"does not state `{fact}`: events of any are taken")
