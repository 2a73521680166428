"""Every provider's signature vectors through the real endpoint: the answer is the verdict.

In the cases `accept` means that the signature holds: any answer but 401 or 498.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from werkzeug.test import TestResponse

from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.embedded import EmbeddedPostgres
from receiver.providers.certificates import STORE
from receiver.settings import Settings, Source
from receiver.web import webhooks
from tests.doors import Door
from tests.providers import certificates as certificates_of_cases
from tests.providers.test_vectors import CASES, source_of, vectors
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


CERTIFIED = {"midtrans-snapbi": "midtrans_snapbi", "paypal": "paypal", "sns": "bkash"}
"""By scheme: the providers whose vectors need certificates, or the configured URL, besides."""


def certified() -> Iterator[Any]:
    """Their cases, with the source that each is sent to and the certificates that its host serves."""
    for scheme, name in CERTIFIED.items():
        cases, certs, roots = certificates_of_cases.cases_of(scheme)
        for case in cases:
            options = {"trust_roots": roots} if scheme == "paypal" else {}
            if "url" in case and scheme == "midtrans-snapbi":
                options["notification_url"] = case["url"]
            source = certificates_of_cases.source_of(case, name, **options)
            yield pytest.param(case, source, certs, id=f"{scheme}-{case['case']}")


@pytest.mark.parametrize("case", list(vectors()))
def test_the_answer_is_the_verdict(door: Door, case: dict[str, Any]) -> None:
    """A refused signature is told by its status alone; an accepted one never is, and nothing is a 5xx."""
    answer = answered(door, replace(source_of(case), name="acme"), case)

    assert answer.status_code < 500
    assert (answer.status_code in UNVERIFIED) == (case["expect"] == "reject")


@pytest.mark.parametrize(("case", "source", "certs"), list(certified()))
def test_the_answer_is_the_verdict_where_certificates_are_fetched(
    door: Door, case: dict[str, Any], source: Source, certs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with the certificates served as the provider's host would; only an accepted confirmation of
    a subscription is followed.
    """
    visited: list[str] = []
    monkeypatch.setattr(webhooks, "visit", lambda _source, url: visited.append(url))
    monkeypatch.setattr(STORE, "fetch", certificates_of_cases.Served(certs))
    monkeypatch.setattr(STORE, "_kept", {})
    monkeypatch.setattr(STORE, "_fetched_at", [])
    answer = answered(door, source, case)

    assert answer.status_code < 500
    assert (answer.status_code in UNVERIFIED) == (case["expect"] == "reject")
    confirms = b'"SubscriptionConfirmation"' in base64.b64decode(case["body_base64"])
    assert bool(visited) == (confirms and case["expect"] == "accept")


def test_no_vector_is_left_out() -> None:
    """The two tests above take every case of every file."""
    files = [*(CASES / "signatures").glob("*.json"), *CASES.glob("divergences*.json")]
    everything = sum(len(json.loads(path.read_text())["cases"]) for path in files)

    assert len(list(vectors())) + len(list(certified())) == everything


def answered(door: Door, source: Source, case: dict[str, Any]) -> TestResponse:
    """The endpoint's answer at the case's time."""
    clock = FixedClock(datetime.fromtimestamp(case["now"], UTC))
    door.app.extensions["receiver"] = replace(
        door.deps, clock=clock, settings=replace(door.deps.settings, sources={"acme": source})
    )

    return door.post("acme", base64.b64decode(case["body_base64"]), case["headers"])
