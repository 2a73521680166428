"""The signature vectors through the real endpoint, each at its own time."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.embedded import EmbeddedPostgres
from receiver.settings import Secret, Settings, Source
from tests.doors import Door
from tests.running import new_database

CASES = Path(__file__).parent.parent / "cases"

SPOKEN = {
    "demo-v1": ("demo", None),
    "demo-legacy": ("lesson", "required"),
    "standard-webhooks": ("standard", None),
    "svix-headers": ("standard", None),
}

REASONS = {
    "wrong-secret": "signature",
    "body-one-byte-altered": "signature",
    "uppercase-hex": "wrong_encoding",
    "legacy-missing-timestamp": "missing_timestamp",
    "v1-wrong-secret": "signature",
    "v1-body-altered": "signature",
    "v1-timestamp-altered": "signature",
    "v1-too-old": "timestamp_too_old",
    "v1-too-far-in-future": "timestamp_in_future",
    "v1-legacy-signature-offered": "malformed_signature",
    "v1-only-other-version": "signature_version",
    "v1-uppercase-hex": "wrong_encoding",
    "v1-timestamp-with-sign": "malformed_timestamp",
    "v1-missing-signature": "missing_signature",
    "v1-empty-signature": "malformed_signature",
    "secret-used-as-text": "signature",
    "timestamp-altered": "signature",
    "too-old": "timestamp_too_old",
    "too-far-in-future": "timestamp_in_future",
    "only-other-version": "signature_version",
    "missing-signature-header": "missing_signature",
    "missing-timestamp-header": "missing_timestamp",
    "empty-signature": "malformed_signature",
    "malformed-header": "malformed_signature",
    "timestamp-not-a-number": "malformed_timestamp",
    "svix-too-old": "timestamp_too_old",
    "timestamp-with-fraction": "malformed_timestamp",
    "timestamp-exponent": "malformed_timestamp",
    "timestamp-leading-plus": "malformed_timestamp",
    "signature-extra-comma": "malformed_signature",
    "base64-without-padding": "wrong_encoding",
    "base64-with-junk": "malformed_signature",
}
"""The reason that an operator reads for each refused vector."""


def vectors() -> Iterator[Any]:
    for name in ("signatures/demo.json", "signatures/standard_webhooks.json", "divergences_standard.json"):
        for case in json.loads((CASES / name).read_text(encoding="utf-8"))["cases"]:
            if case["scheme"] in SPOKEN:
                yield pytest.param(case, id=f"{case['scheme']}-{case['case']}")


@pytest.fixture(scope="module")
def database(server: EmbeddedPostgres) -> Iterator[str]:
    """One database for all vectors: each has a source of its own."""
    with new_database(server) as url:
        yield url


@pytest.fixture
def door_of(database: str) -> Iterator[Any]:
    opened: list[Door] = []

    def open_for(case: dict[str, Any]) -> tuple[Door, str]:
        provider, timestamp = SPOKEN[case["scheme"]]
        name = f"{case['scheme']}-{case['case']}"
        secrets = tuple(Secret(f"env:S{number}", text) for number, text in enumerate(case["secrets"]))
        source = replace(Source(name, provider, secrets), timestamp=timestamp)
        settings = Settings(database_url=database, sources={name: source}, secret_key="k")
        clock = FixedClock(datetime.fromtimestamp(case["now"], UTC))
        opened.append(Door(Deps.build(settings, clock=clock)))
        return opened[-1], name

    yield open_for
    for door in opened:
        door.close()
        door.deps.dispose()


@pytest.mark.parametrize("case", list(vectors()))
def test_a_vector_gets_its_answer(door_of, case):
    """accept = not 401 and no rejection; reject = 401 and one rejection of the right reason."""
    door, name = door_of(case)

    answer = door.post(name, base64.b64decode(case["body_base64"]), case["headers"])

    rejections = [(row["reason"], row["count"]) for row in door.rejections(name)]
    stored = door.rows("SELECT id FROM webhook_events WHERE source = :name", name=name)
    if case["expect"] == "accept":
        assert (answer.status_code, rejections, len(stored)) == (200, [], 1)
    else:
        assert answer.status_code == 401
        assert answer.json == {"error": "unauthorized"}
        assert (rejections, stored) == ([(REASONS[case["case"]], 1)], [])
