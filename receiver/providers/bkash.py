"""``bkash``: completed payments through Amazon SNS, as JSON in the text of a message.

Only completed payments are told; failures and refunds come back from bKash's own calls. The order's
reference is the merchant's invoice number, or, where a payment has none, what the payer typed in. Times
are Dhaka's and name no zone. An UnsubscribeURL is not signed and never followed.
"""

from __future__ import annotations

from receiver.providers import facts
from receiver.providers.amounts import MAJOR_TEXT
from receiver.providers.body_map import BodyMap, Meaning, Where
from receiver.providers.envelopes import JsonObject
from receiver.providers.identities import BodyId
from receiver.providers.paths import TRANSACTION, Computed
from receiver.providers.payment_event import Kind
from receiver.providers.provider import Provider
from receiver.providers.sns import SnsCertificate, subscription_url

_INSIDE = "Message"


def _first(invoice: object, typed: object) -> object:
    return typed if invoice is None or invoice == "" else invoice


_WHERE = Where(
    order_reference=Computed(
        "merchantInvoiceNumber or transactionReference",
        ((_INSIDE, "merchantInvoiceNumber"), (_INSIDE, "transactionReference")),
        _first,
    ),
    transaction_id=(_INSIDE, "trxID"),
    effect_id=TRANSACTION,
    amount=(_INSIDE, "amount"),
    currency=(_INSIDE, "currency"),
    account=(_INSIDE, "creditShortCode"),
    occurred_at=(_INSIDE, "dateTime"),
    unit=MAJOR_TEXT,
    time=facts.local_time(6, "%Y%m%d%H%M%S"),
)

BKASH = Provider(
    name="bkash",
    authentication=SnsCertificate(),
    identity=BodyId(("MessageId",)),
    body=BodyMap(
        type=("Type",),
        meanings={
            "Notification": Meaning(
                Kind.SUCCEEDED, _WHERE, (((_INSIDE, "transactionStatus"), frozenset({"Completed"})),)
            )
        },
        otherwise=_WHERE,
        blanks_absent=True,
    ),
    envelope=JsonObject(json_texts=((_INSIDE,),)),
    never_carries=frozenset({"live", "sequence"}),
    signed=("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type", "SubscribeURL", "Token"),
    reference_option=True,
    option_names=frozenset({"topic_arns", "signature_version", "certificate_url"}),
    needed_options=frozenset({"topic_arns"}),
    visit=subscription_url,
)
