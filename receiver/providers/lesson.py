"""``lesson``: the lesson's own protocol. ``X-Signature`` is the hex HMAC-SHA256 of the raw body.

``X-Timestamp`` is not signed: whoever repeats a message can renew it. It is checked when it is there, or
demanded by a source with ``timestamp = "required"``; what stops a replay is de-duplication alone. The
body needs an ``id`` and nothing else; one without a payment in ``data`` has no money meaning.
"""

from __future__ import annotations

from dataclasses import replace

from receiver.providers.authentication import MacAuthentication
from receiver.providers.demo import HOME_BODY
from receiver.providers.identities import BodyId
from receiver.providers.provider import Provider
from receiver.signature import MacScheme, Timestamp

LESSON = Provider(
    name="lesson",
    authentication=MacAuthentication(
        (MacScheme(header="X-Signature", timestamp=Timestamp(header="X-Timestamp", required=False)),),
        timestamp="optional",
    ),
    identity=BodyId(),
    body=replace(HOME_BODY, payment=("data",)),
)
