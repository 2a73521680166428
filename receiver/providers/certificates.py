"""Certificates that requests name by URL: fetched once, kept for a day, and never asked for in excess.

A stranger can name any URL, so the caller looks at its shape first: nothing is fetched but from the
provider's own host over https. What remains is a stranger who names ever new ones there; fetches are
few a minute, one at a time, and what is not there is remembered too.
"""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509 import (
    Certificate,
    InvalidVersion,
    load_pem_x509_certificate,
    load_pem_x509_certificates,
)
from cryptography.x509.verification import ExtensionPolicy, PolicyBuilder, Store, VerificationError

KEPT_SECONDS = 86_400
ABSENT_SECONDS = 300
MOST_KEPT = 64
FETCHES_A_MINUTE = 12
FETCH_SECONDS = 2.0
MOST_BYTES = 64 * 1024


_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----", re.ASCII)

Chain = tuple[Certificate, ...]
"""The signer's certificate first, then those that lead to a root. Empty: nothing there, or none."""

Fetch = Callable[[str], bytes | None]
"""Gives the bytes at a URL, or None where nothing is; raises CertificateUnavailable."""


class CertificateUnavailable(Exception):
    """Whether there is such a certificate cannot be told now."""


def fetch_over_https(url: str) -> bytes | None:
    """The bytes at ``url``: at most 64 KiB, within a few seconds, no redirect followed."""
    import requests

    until = time.monotonic() + FETCH_SECONDS
    body = bytearray()
    try:
        with requests.get(url, timeout=FETCH_SECONDS / 2, allow_redirects=False, stream=True) as answer:
            if answer.status_code in (408, 429) or answer.status_code >= 500:
                raise CertificateUnavailable(f"HTTP {answer.status_code}")
            if answer.status_code != 200:
                return None
            for piece in answer.iter_content(8192):
                body += piece
                if len(body) > MOST_BYTES:
                    return None
                if time.monotonic() > until:
                    raise CertificateUnavailable("too slow")
    except requests.RequestException as error:
        raise CertificateUnavailable(type(error).__name__) from error
    return bytes(body)


@dataclass(eq=False)
class CertificateStore:
    """The certificates of one process, by URL. Threads may share it."""

    fetch: Fetch = fetch_over_https
    _kept: dict[str, tuple[float, Chain]] = field(default_factory=dict, repr=False)
    _fetched_at: list[float] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def chain(self, url: str, unix_now: float) -> Chain:
        """The certificates at ``url``. Raises CertificateUnavailable."""
        found = self._known(url, unix_now)
        if found is not None:
            return found
        if not self._lock.acquire(timeout=FETCH_SECONDS):
            raise CertificateUnavailable("another fetch takes long")
        try:
            found = self._known(url, unix_now)
            return self._ask(url, unix_now) if found is None else found
        finally:
            self._lock.release()

    def _known(self, url: str, unix_now: float) -> Chain | None:
        fetched_at, chain = self._kept.get(url, (0.0, ()))
        age = abs(unix_now - fetched_at)
        return chain if age <= (KEPT_SECONDS if chain else ABSENT_SECONDS) else None

    def _ask(self, url: str, unix_now: float) -> Chain:
        self._fetched_at = [at for at in self._fetched_at if abs(unix_now - at) < 60]
        if len(self._fetched_at) >= FETCHES_A_MINUTE:
            raise CertificateUnavailable("too many new certificates in a minute")
        self._fetched_at.append(unix_now)
        chain = _parsed(self.fetch(url))
        if len(self._kept) >= MOST_KEPT:
            # What is not there goes first, so that a stranger's inventions push no certificate out.
            del self._kept[
                min(self._kept, key=lambda known: (bool(self._kept[known][1]), self._kept[known][0]))
            ]
        self._kept[url] = (unix_now, chain)
        return chain


STORE = CertificateStore()
"""The store of this process."""


def leads_to_root(chain: Chain, roots: Store, unix_now: float) -> bool:
    """Whether the first certificate is valid now and issued, through the others, by one of ``roots``."""
    try:
        verifier = (
            PolicyBuilder()
            .store(roots)
            .time(datetime.fromtimestamp(unix_now, UTC))
            # The name is the caller's to judge, since it stands where web servers' names do not.
            .extension_policies(
                ee_policy=ExtensionPolicy.permit_all(), ca_policy=ExtensionPolicy.webpki_defaults_ca()
            )
            .build_client_verifier()
        )
        verifier.verify(chain[0], list(chain[1:]))
    except (VerificationError, ValueError, OverflowError):
        return False
    return True


@lru_cache(maxsize=16)
def roots_of(pem: str) -> Store | None:
    """The roots in a PEM text; "" is the public roots that come with requests. None: no certificate in it."""
    # One by one: a bundle may hold a root that the library will not read, and the others count.
    found: list[Certificate] = []
    for block in _CERTIFICATE.findall(pem or _public_roots()):
        with warnings.catch_warnings(), suppress(ValueError, CryptographyDeprecationWarning):
            warnings.simplefilter("error")
            found.append(load_pem_x509_certificate(block.encode()))
    return Store(found) if found else None


def _public_roots() -> str:
    from pathlib import Path

    from requests.utils import DEFAULT_CA_BUNDLE_PATH

    return Path(DEFAULT_CA_BUNDLE_PATH).read_text(encoding="utf-8")


def _parsed(pem: bytes | None) -> Chain:
    if pem is None:
        return ()
    try:
        chain = tuple(load_pem_x509_certificates(pem))
        # Read lazily by the library: what cannot be read is found out here, not in a request.
        _ = [(certificate.subject, certificate.public_key()) for certificate in chain]
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidVersion):
        return ()
    return chain
