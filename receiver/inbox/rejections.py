"""Rejections: what was refused at the door, counted in memory and flushed once a second.

Best effort, since a refused request changes nothing. Memory and rows are bounded: strangers choose
addresses and bodies, so past a limit of kinds the address is dropped from the key. A request whose
signature was right and which could not be read keeps its body: it must be repairable.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

UNKNOWN_SOURCE = "(unknown)"
"""All unknown sources are one key: their names are a stranger's choice."""

MAX_KINDS = 500
"""Kinds (source, reason, minute, address) counted apart in memory between two flushes."""

MAX_BODY = 64 * 1024
"""Bytes kept of an authentic body and of its headers."""

MAX_BODIES_A_DAY = 100
"""Authentic bodies kept of one source in one day."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """One refused request. ``body`` and ``headers`` only where the signature was right."""

    source: str
    reason: str
    at: datetime
    remote_address: str
    length: int
    sha256: str | None = None
    skew_seconds: int | None = None
    detail: str | None = None
    body: bytes | None = None
    headers: Sequence[tuple[str, str]] | None = None


_Key = tuple[str, str, datetime, str, str]


class RejectionCounter:
    """Counts of one process between two flushes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[_Key, tuple[Rejection, int]] = {}

    def add(self, rejection: Rejection) -> None:
        """Count one; the newest of a kind is the example that is kept."""
        if rejection.body is not None and len(rejection.body) > MAX_BODY:
            # Cut here and not at the flush: what waits in memory must be bounded too.
            rejection = replace(rejection, body=rejection.body[:MAX_BODY])
        minute = rejection.at.replace(second=0, microsecond=0)
        body_key = (rejection.sha256 or "") if rejection.body is not None else ""
        key = (rejection.source, rejection.reason, minute, rejection.remote_address, body_key)
        with self._lock:
            if key not in self._counts and len(self._counts) >= MAX_KINDS:
                key = (rejection.source, rejection.reason, minute, "", "")
            _, count = self._counts.get(key, (rejection, 0))
            self._counts[key] = (rejection, count + 1)

    def take(self) -> dict[_Key, tuple[Rejection, int]]:
        """All counts so far, and start anew."""
        with self._lock:
            counts, self._counts = self._counts, {}
            return counts

    def put_back(self, counts: dict[_Key, tuple[Rejection, int]]) -> None:
        """Take counts back whose flush failed."""
        with self._lock:
            for key, (rejection, count) in counts.items():
                if key in self._counts or len(self._counts) < MAX_KINDS:
                    newest, more = self._counts.get(key, (rejection, 0))
                    self._counts[key] = (newest, count + more)


_WRITE = text(
    f"""\
INSERT INTO webhook_rejections AS r
  (source, reason, minute, remote_address, body_key,
   length, sha256, skew_seconds, detail, count, payload, headers)
SELECT :source, :reason, :minute, :remote_address, :body_key,
  :length, :sha256, :skew_seconds, :detail, :count,
  CASE WHEN kept.bodies < {MAX_BODIES_A_DAY} THEN CAST(:payload AS bytea) END,
  CASE WHEN kept.bodies < {MAX_BODIES_A_DAY} THEN CAST(:headers AS jsonb) END
FROM (
  SELECT CASE WHEN CAST(:payload AS bytea) IS NULL THEN 0 ELSE (
    SELECT count(*) FROM webhook_rejections k WHERE k.source = :source AND k.payload IS NOT NULL
      AND k.minute > CAST(:minute AS timestamptz) - interval '1 day') END AS bodies
) AS kept
ON CONFLICT (source, reason, minute, remote_address, body_key) DO UPDATE SET
  count = r.count + excluded.count, length = excluded.length, sha256 = excluded.sha256,
  skew_seconds = excluded.skew_seconds, detail = excluded.detail"""
)


def write_rejections(session: Session, counts: dict[_Key, tuple[Rejection, int]]) -> None:
    """Write counts taken from a counter."""
    for key, (rejection, count) in sorted(counts.items(), key=lambda item: item[0]):
        source, reason, minute, address, body_key = key
        headers = json.dumps(list(rejection.headers)) if rejection.headers is not None else None
        if headers is not None and len(headers) > MAX_BODY:
            headers = None
        session.execute(
            _WRITE,
            {
                "source": source,
                "reason": reason,
                "minute": minute,
                "remote_address": address,
                "body_key": body_key,
                "length": rejection.length,
                "sha256": rejection.sha256,
                "skew_seconds": rejection.skew_seconds,
                "detail": rejection.detail,
                "count": count,
                "payload": rejection.body if body_key else None,
                "headers": headers if body_key else None,
            },
        )
