"""What every door and duty is handed: built once per process, frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import requests
from sqlalchemy import Engine

from receiver.clock import Clock
from receiver.db import Sessions, make_engine, make_intake_engine, make_sessions
from receiver.dice import Dice
from receiver.settings import Settings


@dataclass(frozen=True)
class Deps:
    """Settings, database, time, chance and HTTP of one process."""

    settings: Settings
    engine: Engine
    sessions: Sessions
    intake_engine: Engine
    clock: Clock
    dice: Dice
    http: requests.Session

    @classmethod
    def build(
        cls,
        settings: Settings,
        *,
        clock: Clock | None = None,
        dice: Dice | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Build from settings; engines connect at their first use, never here (a fork may follow)."""
        engine = engine or make_engine(settings.database_url)
        return cls(
            settings=settings,
            engine=engine,
            sessions=make_sessions(engine),
            intake_engine=make_intake_engine(settings.database_url),
            clock=clock or Clock(),
            dice=dice or Dice(),
            http=requests.Session(),
        )

    def with_settings(self, settings: Settings) -> Self:
        """The same process with settings read anew (SIGHUP)."""
        return replace(self, settings=settings)

    def dispose(self) -> None:
        """Close every connection of both engines."""
        self.engine.dispose()
        self.intake_engine.dispose()
