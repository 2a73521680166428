"""``paypal``: a certificate's signature over transmission id, time, our webhook id and the body's CRC32.

A CRC32 is no integrity: whoever has seen one delivery can write another body with the same CRC, and the
signature holds. So nothing in the body counts until it is read back, and the event is known by its
transmission id, which is signed: a second body under it is a conflict, never a second event. The webhook
id (``options.webhook_id``) is the audience; there is no secret.
"""

from __future__ import annotations

import re
from dataclasses import replace

from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.identities import HeaderId
from receiver.providers.paths import TRANSACTION, Computed
from receiver.providers.payment_event import Kind
from receiver.providers.paypal_certificate import (
    SIGNATURE,
    TRANSMISSION_ID,
    TRANSMISSION_TIME,
    PayPalCertificate,
)
from receiver.providers.provider import Provider

_CAPTURE_URL = re.compile(r"https://[a-z0-9.-]+/v2/payments/captures/([A-Z0-9]{1,64})", re.ASCII)


def captured_of(links: object) -> str | None:
    """The capture that a refund points up to."""
    if not isinstance(links, list):
        raise TypeError("links are a list")
    for link in links:
        href = link.get("href") if isinstance(link, dict) and link.get("rel") == "up" else None
        found = _CAPTURE_URL.fullmatch(href) if isinstance(href, str) else None
        if found is not None:
            return found[1]
    return None


_STATUS = Where(
    order_reference=("resource", "custom_id"),
    transaction_id=("resource", "id"),
    amount=("resource", "amount", "value"),
    currency=("resource", "amount", "currency_code"),
    occurred_at=("create_time",),
    unit=MAJOR_TEXT,
)
_PAID = replace(_STATUS, effect_id=TRANSACTION)
_REFUND = replace(
    _STATUS,
    transaction_id=Computed("the capture in resource.links", (("resource", "links"),), captured_of),
    effect_id=("resource", "id"),
)
_SALE = replace(
    _STATUS,
    order_reference=("resource", "custom"),
    amount=("resource", "amount", "total"),
    currency=("resource", "amount", "currency"),
)
_SALE_REFUND = replace(_SALE, transaction_id=("resource", "sale_id"), effect_id=("resource", "id"))
_DISPUTE = replace(
    _STATUS,
    order_reference=("resource", "disputed_transactions", 0, "custom"),
    transaction_id=("resource", "disputed_transactions", 0, "seller_transaction_id"),
    amount=("resource", "dispute_amount", "value"),
    currency=("resource", "dispute_amount", "currency_code"),
    effect_id=("resource", "dispute_id"),
)
_OUTCOME = ("resource", "dispute_outcome", "outcome_code")

PAYPAL = Provider(
    name="paypal",
    authentication=PayPalCertificate(),
    identity=HeaderId(((SIGNATURE, TRANSMISSION_ID),)),
    body=BodyMap(
        type=("event_type",),
        meanings={
            "PAYMENT.AUTHORIZATION.CREATED": Meaning(Kind.AUTHORIZED, _PAID),
            "PAYMENT.AUTHORIZATION.VOIDED": Meaning(Kind.VOIDED, _PAID),
            "PAYMENT.CAPTURE.COMPLETED": Meaning(Kind.SUCCEEDED, _PAID),
            "PAYMENT.CAPTURE.PENDING": Meaning(Kind.PENDING, _STATUS),
            "PAYMENT.CAPTURE.DENIED": Meaning(Kind.FAILED, _STATUS),
            "PAYMENT.CAPTURE.DECLINED": Meaning(Kind.FAILED, _STATUS),
            "PAYMENT.CAPTURE.REFUNDED": Meaning(Kind.REFUNDED, _REFUND),
            "PAYMENT.CAPTURE.REVERSED": Meaning(Kind.REFUNDED, _REFUND),
            "PAYMENT.SALE.COMPLETED": Meaning(Kind.SUCCEEDED, replace(_SALE, effect_id=TRANSACTION)),
            "PAYMENT.SALE.PENDING": Meaning(Kind.PENDING, _SALE),
            "PAYMENT.SALE.DENIED": Meaning(Kind.FAILED, _SALE),
            "PAYMENT.SALE.REFUNDED": Meaning(Kind.REFUNDED, _SALE_REFUND),
            "PAYMENT.SALE.REVERSED": Meaning(Kind.REFUNDED, _SALE_REFUND),
            "CUSTOMER.DISPUTE.CREATED": Meaning(Kind.DISPUTE_OPENED, _DISPUTE),
            "CUSTOMER.DISPUTE.RESOLVED": (
                Meaning(
                    Kind.DISPUTE_LOST,
                    _DISPUTE,
                    ((_OUTCOME, frozenset({"RESOLVED_BUYER_FAVOUR", "ACCEPTED"})),),
                ),
                Meaning(
                    Kind.DISPUTE_WON,
                    _DISPUTE,
                    (
                        (
                            _OUTCOME,
                            frozenset(
                                {
                                    "RESOLVED_SELLER_FAVOUR",
                                    "RESOLVED_WITH_PAYOUT",
                                    "CANCELED_BY_BUYER",
                                    "DENIED",
                                }
                            ),
                        ),
                    ),
                ),
            ),
        },
        otherwise=_STATUS,
    ),
    never_carries=frozenset({"account", "live", "sequence"}),
    signed=(TRANSMISSION_ID, TRANSMISSION_TIME, "options.webhook_id", "CRC32 of the body"),
    confirm_by_fetch=True,
    reference_option=True,
    option_names=frozenset({"webhook_id", "trust_roots", "certificate_url"}),
    needed_options=frozenset({"webhook_id"}),
)
