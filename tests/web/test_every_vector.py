"""Every provider's signature vectors through the real endpoint: the answer is the verdict.

In the cases `accept` means that the signature holds: any answer but 401 or 498.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.embedded import EmbeddedPostgres
from receiver.settings import Settings
from tests.doors import Door
from tests.providers.test_vectors import source_of, vectors
from tests.running import new_database

UNVERIFIED = (401, 498)


@pytest.fixture(scope="module")
def door(server: EmbeddedPostgres) -> Iterator[Door]:
    """One door for all vectors; each test gives it its source and its time."""
    with new_database(server) as url:
        deps = Deps.build(Settings(database_url=url, secret_key="x"), clock=FixedClock(datetime.now(UTC)))
        door = Door(deps)
        yield door
        door.close()
        deps.dispose()


@pytest.mark.parametrize("case", list(vectors()))
def test_the_answer_is_the_verdict(door: Door, case: dict[str, Any]) -> None:
    """A refused signature is told by its status alone; an accepted one never is, and nothing is a 5xx."""
    source = replace(source_of(case), name="acme")
    clock = FixedClock(datetime.fromtimestamp(case["now"], UTC))
    door.app.extensions["receiver"] = replace(
        door.deps, clock=clock, settings=replace(door.deps.settings, sources={"acme": source})
    )

    answer = door.post("acme", base64.b64decode(case["body_base64"]), case["headers"])

    assert answer.status_code < 500
    assert (answer.status_code in UNVERIFIED) == (case["expect"] == "reject")
