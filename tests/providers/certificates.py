"""Certificates of the cases, served to a store as a provider's host would serve them."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

from werkzeug.datastructures import Headers

from receiver.providers.certificates import CertificateStore
from receiver.providers.registry import provider
from receiver.settings import Secret, Source

CASES = Path(__file__).parent.parent / "cases"


def cases_of(*schemes: str) -> tuple[list[dict], dict[str, str], str]:
    """The cases of some schemes, all certificates by URL, and the roots in one PEM text."""
    found: list[dict] = []
    certs: dict[str, str] = {}
    roots: list[str] = []
    for path in (*sorted((CASES / "signatures").glob("*.json")), CASES / "divergences.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        cases = [case for case in document["cases"] if case["scheme"] in schemes]
        if cases:
            found += cases
            certs |= document.get("fixtures", {}).get("certs", {})
            roots += document.get("fixtures", {}).get("trust_roots", [])
    return found, certs, "".join(dict.fromkeys(roots))


class Served:
    """Serves certificates and remembers what was asked for."""

    def __init__(self, certs: dict[str, str]) -> None:
        self.certs = certs
        self.asked: list[str] = []

    def __call__(self, url: str) -> bytes | None:
        self.asked.append(url)
        found = self.certs.get(url)
        return None if found is None else found.encode()


def speaking(name: str, served: Served):
    """The provider with a store of its own that fetches from ``served``."""
    spoken = provider(name)
    return replace(spoken, authentication=replace(spoken.authentication, store=CertificateStore(served)))


def request_of(case: dict) -> tuple[Headers, bytes]:
    """The headers and the body of a case."""
    return Headers(list(case["headers"].items())), base64.b64decode(case["body_base64"])


def source_of(case: dict, name: str, **options: object) -> Source:
    """The source that a case is sent to."""
    secrets = tuple(Secret(f"env:S{i}", value) for i, value in enumerate(case["secrets"]))
    return Source("acme", name, secrets=secrets, options={**(case.get("config") or {}), **options})
