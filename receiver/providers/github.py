"""``github``: ``X-Hub-Signature-256: sha256=<hex>`` over the body, JSON or the form ``payload=``.

The event's name and id stand in unsigned headers, so the identity is the content and the type comes
from what the body holds. A sponsorship promises money and reports no payment, so no GitHub event moves
an order. The SHA-1 header is never looked at.
"""

from __future__ import annotations

from receiver.providers.authentication import MacAuthentication
from receiver.providers.body_map import BodyMap, Where
from receiver.providers.envelopes import Form
from receiver.providers.identities import ContentId
from receiver.providers.paths import Computed
from receiver.providers.provider import Provider
from receiver.signature import MacScheme, Plain


def _type(sponsorship: object, action: object) -> str | None:
    if not isinstance(action, str):
        return None
    return f"sponsorship.{action}" if isinstance(sponsorship, dict) else action


GITHUB = Provider(
    name="github",
    authentication=MacAuthentication(
        (MacScheme(header="X-Hub-Signature-256", parse=Plain("sha256=", prefix_required=True)),)
    ),
    identity=ContentId(),
    body=BodyMap(
        type=Computed("sponsorship and action", (("sponsorship",), ("action",)), _type),
        meanings={},
        otherwise=Where(
            order_reference=("sponsorship", "sponsorable", "login"),
            transaction_id=("sponsorship", "node_id"),
            occurred_at=("sponsorship", "created_at"),
        ),
    ),
    envelope=Form("payload"),
    never_carries=frozenset({"account", "live", "sequence"}),
)
