"""Certificates of the cases, served to a store as a provider's host would serve them."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
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


def invented(common_name: str) -> tuple[str, str, str]:
    """A private key, its certificate with that of the authority between, and the root: three PEM texts."""
    root_key, middle_key, key = (rsa.generate_private_key(65537, 2048) for _ in range(3))
    root = _certificate("Invented Root", root_key, "Invented Root", root_key, is_authority=True)
    middle = _certificate("Invented Middle", middle_key, "Invented Root", root_key, is_authority=True)
    leaf = _certificate(common_name, key, "Invented Middle", middle_key, is_authority=False)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    chain = (leaf.public_bytes(Encoding.PEM) + middle.public_bytes(Encoding.PEM)).decode()
    return private, chain, root.public_bytes(Encoding.PEM).decode()


def _certificate(name, key, issuer, issuer_key, is_authority):
    def named(text):
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    builder = (
        x509.CertificateBuilder()
        .subject_name(named(name))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2119, 1, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if is_authority:
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = builder.add_extension(usage, critical=True)
    return builder.sign(issuer_key, SHA256())
