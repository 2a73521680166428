"""Amazon SNS's proof: a certificate's signature over named fields of the JSON, one line each.

Anyone with an AWS account can send rightly signed messages, so the topic is looked at before anything
else, and nothing is fetched for a topic that is not listed (``options.topic_arns``). Certificates come
from SNS's own host over https, whose TLS says that they are Amazon's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.hashes import SHA256

from receiver.providers import certificates, facts
from receiver.providers.authentication import UNAVAILABLE, Options, SignedRequest, Verified
from receiver.providers.certificates import CertificateStore, CertificateUnavailable
from receiver.providers.public_keys import (
    Digest,
    outside_window,
    rsa_refusal,
    rsa_signature,
    shape_refusal,
)
from receiver.providers.strict_json import RepeatingObject, Unreadable, parse_object
from receiver.settings import Source
from receiver.signature import HeaderMap, Unverified

CONFIRMATION = "SubscriptionConfirmation"

_HOST = r"https://sns\.[a-z]{2,4}(?:-[a-z]{2,12}){1,3}-[0-9]{1,2}\.amazonaws\.com(?:\.cn)?"
_CERTIFICATE_URL = re.compile(_HOST + r"/SimpleNotificationService-[0-9a-zA-Z]{1,64}\.pem", re.ASCII)
_SUBSCRIBE_URL = re.compile(_HOST + r"/\?[!-~]{1,1024}", re.ASCII)

_CONFIRMED = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_SIGNED: Mapping[str, tuple[str, ...]] = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    CONFIRMATION: _CONFIRMED,
    "UnsubscribeConfirmation": _CONFIRMED,
}
_READ = frozenset({*_CONFIRMED, "Subject", "Signature", "SignatureVersion", "SigningCertURL"})
_DIGESTS: Mapping[object, Digest] = {"1": "sha1", "2": "sha256"}


@dataclass(frozen=True)
class SnsCertificate:
    """The signature of a message of a listed topic, version 1 or 2.

    ``options.signature_version = "2"`` refuses SHA-1. There is no window but the source's own: SNS keeps
    the time of publishing over an hour of retries. ``sign`` takes an RSA private key in PEM, whose
    certificate stands at ``options.certificate_url``.
    """

    store: CertificateStore = certificates.STORE
    needs_secret: bool = False
    key_form: str = "text"

    def usable(self, secret: str) -> bool:
        return False

    def verify(
        self, source: Source, headers: HeaderMap, body: bytes, unix_now: float
    ) -> Verified | Unverified:
        topics = topics_of(source)
        if not topics:
            return Unverified("missing_setting")
        try:
            document = parse_object(body)
        except Unreadable:
            return Unverified("unreadable_body")
        if document.get("TopicArn") not in topics:
            return Unverified("foreign_topic")
        message = _message(document)
        reason = message if isinstance(message, str) else _malformed(source, document)
        if reason is not None or isinstance(message, str):
            return Unverified(str(reason))
        try:
            chain = self.store.chain(document["SigningCertURL"], unix_now)
        except CertificateUnavailable:
            return Unverified(UNAVAILABLE)
        if not chain:
            return Unverified("certificate_unknown")
        digest = _DIGESTS[document["SignatureVersion"]]
        reason = rsa_refusal(chain[0].public_key(), document["Signature"], message, digest)
        if reason is not None:
            return Unverified(reason)
        signed_at = facts.occurred_at(document["Timestamp"])
        if signed_at is None:
            return Unverified("malformed_timestamp")
        seconds = None if source.tolerance is None else source.tolerance.total_seconds()
        outside = outside_window(signed_at, unix_now, seconds)
        return outside or Verified(chain[0].fingerprint(SHA256()).hex()[:8])

    def sign(
        self, secret: str, headers: Mapping[str, str], body: bytes, unix_now: float, options: Options
    ) -> SignedRequest:
        try:
            document = json.loads(body)
            message = _message(document)
        except (ValueError, AttributeError) as error:
            raise ValueError("cannot sign: the body is no message of SNS") from error
        if isinstance(message, str) or not isinstance(options.get("certificate_url"), str):
            raise ValueError("cannot sign: a field is missing, or options.certificate_url is not set")  # noqa: TRY004
        document |= {
            "SignatureVersion": "2",
            "Signature": rsa_signature(secret, message, "sha256"),
            "SigningCertURL": options["certificate_url"],
        }
        sent = {"Content-Type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": document["Type"]}
        return SignedRequest({**sent, **headers}, json.dumps(document).encode())

    def faults(self, source: Source) -> list[str]:
        found = []
        if not topics_of(source):
            found.append("options.topic_arns must list the topics that may call: anyone can sign with SNS")
        if source.options.get("signature_version") not in (None, "2"):
            found.append('options.signature_version can only be "2": then SHA-1 is refused')
        if source.secrets:
            found.append("secrets have no effect: SNS signs with a certificate")
        return found


def topics_of(source: Source) -> tuple[str, ...]:
    """The topics that the source listens to; none where the option is not a list of texts."""
    listed = source.options.get("topic_arns")
    if not isinstance(listed, list | tuple) or not all(isinstance(arn, str) and arn for arn in listed):
        return ()
    return tuple(listed)


def subscription_url(source: Source, body: bytes) -> str | None:
    """The URL whose visit confirms a subscription, of a **verified** request; None for all others.

    It is SNS's own and confirms a listed topic. An UnsubscribeConfirmation's is never given: whoever
    took the subscription away may have meant it, and a person decides.
    """
    try:
        document = parse_object(body)
    except Unreadable:
        return None
    url, topic = document.get("SubscribeURL"), document.get("TopicArn")
    if document.get("Type") != CONFIRMATION or topic not in topics_of(source):
        return None
    if not isinstance(url, str) or not _SUBSCRIBE_URL.fullmatch(url):
        return None
    try:
        asked = parse_qs(urlsplit(url).query, max_num_fields=8)
    except ValueError:
        return None
    right = asked.get("Action") == ["ConfirmSubscription"] and asked.get("TopicArn") == [topic]
    return url if right else None


def _malformed(source: Source, document: Mapping[str, Any]) -> str | None:
    reason = shape_refusal(document.get("Signature"))
    if reason is not None:
        return reason
    version = document.get("SignatureVersion")
    if version not in ("1", "2") or (version == "1" and source.options.get("signature_version") == "2"):
        return "signature_version"
    url = document.get("SigningCertURL")
    return None if isinstance(url, str) and _CERTIFICATE_URL.fullmatch(url) else "certificate_url"


def _message(document: Mapping[str, Any]) -> bytes | str:
    """The signed bytes, or the reason why there are none.

    Fields are joined by newlines without escaping: every one is demanded, and only Message, which stands
    first, may hold a newline, so that no border between two fields can be moved.
    """
    if isinstance(document, RepeatingObject) and document.repeated & _READ:
        return "ambiguous_field"
    kind = document.get("Type")
    names = _SIGNED.get(kind) if isinstance(kind, str) else None
    if names is None:
        return "unknown_type"
    lines: list[str] = []
    for name in names:
        value = document.get(name)
        if value is None and name == "Subject":
            continue
        if not isinstance(value, str):
            return "missing_field"
        if name != "Message" and ("\n" in value or "\r" in value):
            return "ambiguous_field"
        lines += (name, value)
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
