"""The shipped web application and worker for the drill of time: their clock reads the instant from a file.

`DRILL_CLOCK` names the file. Nothing else differs but how often a worker looks, since simulated hours pass
in parts of a second.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from flask import Flask

from receiver import timetable
from receiver.app import create_app
from receiver.clock import Clock
from receiver.deps import Deps
from receiver.logs import configure
from receiver.settings import Settings
from receiver.web import intake_counts


class FileClock(Clock):
    """The time that stands in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def set(self, at: datetime) -> None:
        """Let it be ``at`` for every process, in one step."""
        draft = self._path.with_suffix(".new")
        draft.write_text(at.isoformat())
        draft.replace(self._path)

    def now(self) -> datetime:
        return datetime.fromisoformat(self._path.read_text())

    def unix(self) -> float:
        return self.now().timestamp()

    def wall(self) -> datetime:
        return self.now().astimezone(UTC)


def _deps() -> Deps:
    settings = Settings.from_env(os.environ)
    configure(settings.log_level)
    return Deps.build(settings, clock=FileClock(Path(os.environ["DRILL_CLOCK"])))


def make() -> Flask:
    """The web application."""
    intake_counts.FLUSH_SECONDS = 0.03
    return create_app(_deps())


if __name__ == "__main__":
    timetable.RECONCILE_SECONDS = 0.1  # type: ignore[assignment]
    timetable.RETENTION_SECONDS = 0.3  # type: ignore[assignment]
    timetable.run(_deps())
