"""The intake's door in this process, with a clock that stands: Flask's test client and the worker's tick."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import text
from werkzeug.test import TestResponse

from receiver.app import create_app
from receiver.deps import Deps
from receiver.inbox.intake import Intake
from receiver.inbox.process import Processor
from receiver.inbox.register_order import register_order
from receiver.settings import Secret, Source
from receiver.web.intake_counts import IntakeCounts
from tests import posting
from tests.conftest import DEMO_SECRET, LESSON_SECRET, STANDARD_SECRET

BETA_SECRET = "bsec_test_0123456789abcdef"


def door_sources() -> dict[str, Source]:
    """Two demo accounts, the lesson with and without a demanded time, standard, and one without a secret."""
    return {
        "demo": Source("demo", "demo", (Secret("env:DEMO_SECRET", DEMO_SECRET),)),
        "beta": Source("beta", "demo", (Secret("env:BETA_SECRET", BETA_SECRET),)),
        "lesson": Source("lesson", "lesson", (Secret("env:LESSON_SECRET", LESSON_SECRET),)),
        "strict": Source(
            "strict", "lesson", (Secret("env:LESSON_SECRET", LESSON_SECRET),), timestamp="required"
        ),
        "standard": Source("standard", "standard", (Secret("env:STANDARD_SECRET", STANDARD_SECRET),)),
        "bare": Source("bare", "demo", missing_secrets=("env:NOBODY_SET_THIS",)),
    }


class Door:
    """One web process's application over Deps, to post to and to look behind."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps
        self.app = create_app(deps)
        self.client = self.app.test_client()
        self.intake: Intake = self.app.extensions["intake"]
        self.counts: IntakeCounts = self.app.extensions["intake_counts"]

    def close(self) -> None:
        """End the threads of the application."""
        self.counts.close()
        self.intake.close()

    def post(self, source: str, body: bytes, headers: Mapping[str, str], **more: Any) -> TestResponse:
        """Post the bytes to a source's door."""
        return self.client.post(f"/webhooks/{source}", data=body, headers=dict(headers), **more)

    def demo(self, body: bytes, *, skew: int = 0, source: str = "demo", **more: Any) -> TestResponse:
        """Post to a demo source, signed ``skew`` seconds from now."""
        secret = BETA_SECRET if source == "beta" else DEMO_SECRET
        headers = posting.demo(body, secret=secret, at=int(self.deps.clock.unix()) + skew)
        return self.post(source, body, {**headers, **more.pop("headers", {})}, **more)

    def lesson(self, body: bytes, **more: Any) -> TestResponse:
        """Post to the lesson's source."""
        return self.post("lesson", body, posting.lesson(body), **more)

    def rows(self, statement: str, **parameters: Any) -> list[dict[str, Any]]:
        """What a statement gives."""
        with self.deps.sessions.begin() as session:
            return [dict(row) for row in session.execute(text(statement), parameters).mappings()]

    def run(self, statement: str) -> None:
        """Run a statement that gives nothing."""
        with self.deps.sessions.begin() as session:
            session.execute(text(statement))

    def rejections(self, source: str | None = None) -> list[dict[str, Any]]:
        """The rejections so far, flushed first."""
        self.counts.flush()
        return self.rows(
            "SELECT * FROM webhook_rejections WHERE source = coalesce(:source, source) ORDER BY id",
            source=source,
        )

    def order(self, reference: str, amount_minor: int = 2500, currency: str = "EUR", **more: Any) -> None:
        """Register an order."""
        with self.deps.sessions.begin() as session:
            register_order(
                session,
                order_id=self.deps.dice.new_id(),
                reference=reference,
                amount_minor=amount_minor,
                currency=currency,
                now=self.deps.clock.now(),
                **more,
            )

    def work(self) -> None:
        """Let a worker process what is due."""
        Processor(self.deps, "worker-of-the-test").tick()

    def later(self, **by: float) -> None:
        """Move the clock."""
        self.deps.clock.move(timedelta(**by))  # type: ignore[attr-defined]

    def event(self, event_id: str, source: str = "demo") -> dict[str, Any]:
        """The one row of an event."""
        (row,) = self.rows(
            "SELECT e.*, p.payload, p.headers FROM webhook_events e LEFT JOIN webhook_payloads p"
            " ON p.id = e.payload_id WHERE source = :source AND provider_event_id = :id",
            source=source,
            id=event_id,
        )
        return row

    def ended(self, event_id: str, source: str = "demo") -> tuple[str, str | None, str | None]:
        """State, outcome and reason of an event."""
        row = self.event(event_id, source)
        return row["state"], row["outcome"], row["reason"]

    def state_of(self, reference: str) -> str:
        """The state of an order."""
        (row,) = self.rows("SELECT state FROM orders WHERE reference = :reference", reference=reference)
        return str(row["state"])


def with_source(deps: Deps, source: Source) -> Deps:
    """The same process with one more source."""
    sources = {**deps.settings.sources, source.name: source}
    return deps.with_settings(dataclasses.replace(deps.settings, sources=sources))
