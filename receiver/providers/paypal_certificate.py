"""PayPal's proof: a certificate's signature over transmission id, time, our webhook id and a CRC32.

The certificate's host is looked at before anything is fetched; its name and its chain to a public root
decide whether it is PayPal's. What it says of the body is in `paypal`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509 import Certificate
from cryptography.x509.oid import NameOID

from receiver.providers import certificates, facts
from receiver.providers.authentication import UNAVAILABLE, Options, SignedRequest, Verified
from receiver.providers.certificates import CertificateStore, CertificateUnavailable
from receiver.providers.public_keys import (
    outside_window,
    rsa_refusal,
    rsa_signature,
    shape_refusal,
)
from receiver.providers.strict_json import Unreadable, parse_object
from receiver.settings import Source
from receiver.signature import BLANKS, HeaderMap, Unverified

TRANSMISSION_ID, TRANSMISSION_TIME, SIGNATURE = (
    "PAYPAL-TRANSMISSION-ID",
    "PAYPAL-TRANSMISSION-TIME",
    "PAYPAL-TRANSMISSION-SIG",
)
_CERTIFICATE, _ALGORITHM = "PAYPAL-CERT-URL", "PAYPAL-AUTH-ALGO"

_TRANSMISSION = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_CERTIFICATE_URL = re.compile(
    r"https://(?:[a-z0-9-]{1,63}\.){1,4}paypal\.com/v1/notifications/certs/[A-Za-z0-9_-]{1,128}", re.ASCII
)


@dataclass(frozen=True)
class PayPalCertificate:
    """The signature of a transmission under a certificate of PayPal's.

    ``store`` gives certificates by URL; ``options.trust_roots`` (PEM) stands in for the public roots.
    There is no window but the source's own: a delivery may come again for three days, and whether it
    then has a new time is not known. ``sign`` takes an RSA private key in PEM, whose certificate stands
    at ``options.certificate_url``.
    """

    store: CertificateStore = certificates.STORE
    needs_secret: bool = False
    key_form: str = "text"

    def usable(self, secret: str) -> bool:
        return False

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        webhook_id = source.options.get("webhook_id")
        if not isinstance(webhook_id, str) or not webhook_id:
            return Unverified("missing_setting")
        given = {
            name: (headers.get(name) or "").strip(BLANKS)
            for name in (SIGNATURE, TRANSMISSION_ID, TRANSMISSION_TIME, _CERTIFICATE, _ALGORITHM)
        }
        signed_at = facts.occurred_at(given[TRANSMISSION_TIME])
        reason = _malformed(given)
        if reason is not None or signed_at is None:
            return Unverified(reason or "malformed_timestamp")
        signer = self._signer(source, given[_CERTIFICATE], unix_now)
        if isinstance(signer, str):
            return Unverified(signer)
        message = _message(given[TRANSMISSION_ID], given[TRANSMISSION_TIME], webhook_id, body)
        reason = rsa_refusal(signer.public_key(), given[SIGNATURE], message, "sha256")
        if reason is not None:
            return Unverified(reason)
        seconds = None if source.tolerance is None else source.tolerance.total_seconds()
        if (outside := outside_window(signed_at, unix_now, seconds)) is not None:
            return outside
        if contradicts_itself(body):
            return Unverified("contradicts_itself")
        return Verified(signer.fingerprint(SHA256()).hex()[:8])

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        webhook_id, url = options.get("webhook_id"), options.get("certificate_url")
        if not isinstance(webhook_id, str) or not isinstance(url, str):
            raise ValueError("cannot sign: options.webhook_id and certificate_url are not set")  # noqa: TRY004
        id_ = next((value for name, value in headers.items() if name.upper() == TRANSMISSION_ID), "")
        at = facts.unix_seconds(int(unix_now))
        time = at.strftime("%Y-%m-%dT%H:%M:%SZ") if at is not None else ""
        signature = rsa_signature(secret, _message(id_, time, webhook_id, body), "sha256")
        sent = {TRANSMISSION_TIME: time, SIGNATURE: signature, _CERTIFICATE: url, _ALGORITHM: "SHA256withRSA"}
        return SignedRequest({**headers, **sent}, body)

    def faults(self, source: Source) -> list[str]:
        found = []
        if not isinstance(source.options.get("webhook_id"), str) or not source.options["webhook_id"]:
            found.append("options.webhook_id is not set: it is part of what is signed")
        if _roots(source) is None:
            found.append("options.trust_roots holds no certificate in PEM")
        if source.secrets:
            found.append("secrets have no effect: PayPal signs with a certificate")
        return found

    def _signer(self, source: Source, url: str, unix_now: float) -> Certificate | str:
        """The certificate at ``url``, trusted, or the reason of a refusal."""
        roots = _roots(source)
        if roots is None:
            return "missing_setting"
        try:
            chain = self.store.chain(url, unix_now)
        except CertificateUnavailable:
            return UNAVAILABLE
        if not chain:
            return "certificate_unknown"
        names = chain[0].subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        if len(names) != 1 or not str(names[0].value).endswith(".paypal.com"):
            return "certificate_untrusted"
        return chain[0] if certificates.leads_to_root(chain, roots, unix_now) else "certificate_untrusted"


def contradicts_itself(body: bytes) -> bool:
    """Whether the body states one amount twice and differently: the plainest forgery under an equal CRC.

    It is no defence, only the first thing that a forger forgets: what counts is read back.
    """
    try:
        resource = parse_object(body).get("resource")
    except Unreadable:
        return False
    stated = resource.get("amount") if isinstance(resource, dict) else None
    for name in ("seller_receivable_breakdown", "seller_payable_breakdown"):
        breakdown = resource.get(name) if isinstance(resource, dict) else None
        gross = breakdown.get("gross_amount") if isinstance(breakdown, dict) else None
        if _money(gross) is not None and _money(gross) != _money(stated):
            return True
    return False


def _money(amount: object) -> tuple[Decimal, str] | None:
    if not isinstance(amount, dict):
        return None
    value, currency = amount.get("value"), amount.get("currency_code")
    if not isinstance(value, str) or not isinstance(currency, str):
        return None
    return (
        (Decimal(value), currency) if re.fullmatch(r"[0-9]{1,16}(\.[0-9]{1,10})?", value, re.ASCII) else None
    )


def _malformed(given: Mapping[str, str]) -> str | None:
    if not given[SIGNATURE]:
        return "missing_signature"
    if not all(given.values()):
        return "missing_header"
    if given[_ALGORITHM] != "SHA256withRSA":
        return "signature_version"
    if (reason := shape_refusal(given[SIGNATURE])) is not None:
        return reason
    if not _TRANSMISSION.fullmatch(given[TRANSMISSION_ID]):
        return "malformed_id"
    return None if _CERTIFICATE_URL.fullmatch(given[_CERTIFICATE]) else "certificate_url"


def _message(transmission_id: str, time: str, webhook_id: str, body: bytes) -> bytes:
    return f"{transmission_id}|{time}|{webhook_id}|{zlib.crc32(body)}".encode("utf-8", "surrogatepass")


def _roots(source: Source) -> Any:
    pem = source.options.get("trust_roots", "")
    return certificates.roots_of(pem) if isinstance(pem, str) else None
