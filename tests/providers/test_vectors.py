"""The signature vectors of the cases, at the level of a provider: accept = the signature holds."""

import base64
import json
from pathlib import Path

import pytest
from werkzeug.datastructures import Headers

from receiver.providers.provider import Verified
from receiver.providers.registry import provider
from receiver.settings import Secret, Source
from receiver.signature import Unverified

CASES = Path(__file__).parent.parent / "cases"

SPOKEN = {
    "demo-v1": ("demo", None),
    "demo-legacy": ("lesson", "required"),
    "standard-webhooks": ("standard", None),
    "svix-headers": ("standard", None),
}


def vectors():
    for name in ("signatures/demo.json", "signatures/standard_webhooks.json", "divergences_standard.json"):
        for case in json.loads((CASES / name).read_text(encoding="utf-8"))["cases"]:
            if case["scheme"] in SPOKEN:
                yield pytest.param(case, id=f"{case['scheme']}-{case['case']}")


@pytest.mark.parametrize("case", list(vectors()))
def test_a_vector_gets_its_verdict(case):
    """Every vector of a protocol that is spoken here is accepted or refused as it expects."""
    name, timestamp = SPOKEN[case["scheme"]]
    secrets = tuple(Secret(f"env:S{i}", value) for i, value in enumerate(case["secrets"]))
    source = Source("acme", name, secrets=secrets, timestamp=timestamp)
    headers, body = Headers(list(case["headers"].items())), base64.b64decode(case["body_base64"])

    verdict = provider(name).verify(source, headers, body, case["now"])

    if case["expect"] == "reject":
        assert isinstance(verdict, Unverified)
        return
    assert isinstance(verdict, Verified)
    assert verdict.key_id in {secret.key_id for secret in secrets}
    (event,) = provider(name).read("acme", headers, body)
    assert event.facts.facts_error is None
    assert event.facts.order_reference is not None


def test_a_replayed_lesson_message_with_a_renewed_time_is_known_by_its_id_alone():
    """An unsigned timestamp can be renewed, so the signature still holds: the source's page says so."""
    (case,) = [
        c
        for c in json.loads((CASES / "signatures/demo.json").read_text())["cases"]
        if c["case"] == "legacy-timestamp-not-signed"
    ]
    source = Source("acme", "lesson", secrets=(Secret("env:S", case["secrets"][0]),))
    body = base64.b64decode(case["body_base64"])

    assert isinstance(
        provider("lesson").verify(source, Headers(case["headers"]), body, case["now"]), Verified
    )
