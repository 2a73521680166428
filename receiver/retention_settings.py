"""How long what is kept, and where the archive lies: read from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, Self

NO_ARCHIVE = "none"
"""As ``ARCHIVE_URL``: payloads are erased at their age without being archived."""


class Reader(Protocol):
    """What this reads settings with; it collects the faults."""

    environ: Mapping[str, str]
    faults: list[str]

    def integer(self, name: str, default: int, low: int, high: int) -> int: ...


@dataclass(frozen=True)
class RetentionSettings:
    """Ages in whole days, and the archive: a folder, or a URL that fsspec knows (``s3://…``).

    Without an archive no payload is erased by itself. Keys outlive everything of an event but its ledger
    lines: a late duplicate is a duplicate for as long.
    """

    archive_url: str = field(default="", repr=False)
    payloads: timedelta = timedelta(days=90)
    keys: timedelta = timedelta(days=400)
    attempts: timedelta = timedelta(days=180)
    rejections: timedelta = timedelta(days=90)
    conflicts: timedelta = timedelta(days=180)
    audit: timedelta = timedelta(days=1100)
    minutes: timedelta = timedelta(days=35)

    @classmethod
    def read(cls, reader: Reader) -> Self:
        """Read the environment; faults are added to the reader's."""

        def days(name: str, default: timedelta, low: int) -> timedelta:
            return timedelta(days=reader.integer(name, default.days, low, 36_500))

        found = cls(
            archive_url=reader.environ.get("ARCHIVE_URL", "").strip(),
            payloads=days("KEEP_PAYLOADS_DAYS", cls.payloads, 1),
            keys=days("KEEP_KEYS_DAYS", cls.keys, 30),
            attempts=days("KEEP_ATTEMPTS_DAYS", cls.attempts, 1),
            rejections=days("KEEP_REJECTIONS_DAYS", cls.rejections, 1),
            conflicts=days("KEEP_CONFLICTS_DAYS", cls.conflicts, 1),
            audit=days("KEEP_AUDIT_DAYS", cls.audit, 30),
            minutes=days("KEEP_MINUTES_DAYS", cls.minutes, 16),
        )
        if found.keys < found.payloads:
            reader.faults.append("KEEP_KEYS_DAYS must not be shorter than KEEP_PAYLOADS_DAYS")
        return found

    @property
    def archive_shown(self) -> str:
        """The archive's place for pages and the shell, without what may be a password in it."""
        head, separator, rest = self.archive_url.partition("://")
        place = rest.partition("?")[0]
        return f"{head}{separator}{place.rpartition('@')[2]}" if separator else self.archive_url

    @property
    def archives(self) -> bool:
        """Whether payloads are archived before they are erased."""
        return bool(self.archive_url) and self.archive_url != NO_ARCHIVE

    @property
    def erases(self) -> bool:
        """Whether payloads are erased at their age at all."""
        return bool(self.archive_url)
