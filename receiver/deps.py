"""What every door and duty is handed: built once per process, frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from sqlalchemy import Engine

from receiver.clock import Clock
from receiver.db import Sessions, make_engine, make_intake_engine, make_sessions
from receiver.dice import Dice
from receiver.settings import Settings

if TYPE_CHECKING:
    import requests


@dataclass(frozen=True)
class Deps:
    """Settings, database, time, chance and HTTP of one process."""

    settings: Settings
    engine: Engine
    sessions: Sessions
    intake_engine: Engine
    clock: Clock
    dice: Dice

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
        )

    @cached_property
    def http(self) -> requests.Session:
        """HTTP to the payment APIs. Made at its first use: a web worker that never asks saves 4 MiB."""
        import requests

        return requests.Session()

    def with_settings(self, settings: Settings) -> Self:
        """The same process with settings read anew (SIGHUP)."""
        return replace(self, settings=settings)

    def dispose(self) -> None:
        """Close every connection of both engines."""
        self.engine.dispose()
        self.intake_engine.dispose()
