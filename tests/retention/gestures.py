"""Gestures of retention's tests: old payloads, an archive in a folder, one that breaks at a step."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import text

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.retention.files import ArchiveBroken, FsspecArchive
from tests.factories import NOW, make_event

DAY = timedelta(days=1)


def old(deps: Deps, number: int = 3, days: int = 91, **columns: Any) -> list[UUID]:
    """Ended events whose payloads came so many days ago."""
    at = NOW - days * DAY
    ids = []
    with deps.sessions.begin() as session:
        for index in range(number):
            body = b'{"n": %d, "bytes": "\xff"}' % index
            values: dict[str, Any] = {
                "state": "processed",
                "payload_sha256": hashlib.sha256(body).digest(),
                **columns,
            }
            ids.append(make_event(session, at=at, payload=body, headers={"X-Signature": "v1=0"}, **values).id)
    return ids


def payloads(deps: Deps) -> dict[UUID, bytes]:
    """The payloads that the database holds, by event."""
    with deps.sessions() as session:
        rows = session.execute(
            text(
                "SELECT e.id, p.payload FROM webhook_events e JOIN webhook_payloads p ON p.id = e.payload_id"
            )
        )
        return {row.id: bytes(row.payload) for row in rows}


def later(deps: Deps, **by: float) -> None:
    """Move the clock."""
    clock = deps.clock
    assert isinstance(clock, FixedClock)
    clock.move(timedelta(**by))


class Breaking(FsspecArchive):
    """An archive in a folder that fails at the ``at``-th call of a step, as if the process died there."""

    def __init__(self, url: str, step: str, at: int = 1) -> None:
        super().__init__(url)
        self.left = {step: at}

    def _step(self, name: str) -> None:
        if name in self.left:
            self.left[name] -= 1
            if self.left[name] == 0:
                raise ArchiveBroken("archive_unreachable", f"broke at {name}")

    def write(self, name: str, data: bytes) -> None:
        self._step("before write")
        super().write(name, data)
        self._step("after write")

    def read(self, name: str) -> bytes:
        self._step("read")
        return super().read(name)

    def delete(self, name: str) -> None:
        self._step("before delete")
        super().delete(name)
