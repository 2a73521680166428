"""Bodies of providers, continued: those that are read back, and those that are no plain JSON."""

from __future__ import annotations

import json
import re
from datetime import UTC, timedelta, timezone
from urllib.parse import urlencode
from xml.sax.saxutils import escape

from receiver.providers.amounts import MAJOR_NUMBER, MAJOR_TEXT
from receiver.providers.payment_event import Kind
from receiver.simulator.dialect import Body, Facts, amount_of, iso, money_of

K = Kind
DISPUTES = frozenset({K.DISPUTE_OPENED, K.DISPUTE_WON, K.DISPUTE_LOST})


def xendit_body(facts: Facts, name: str) -> Body:
    """Xendit."""
    data: Body = {"payment_id": facts.transaction_id, "reference_id": facts.order_reference}
    data |= {"currency": facts.currency, "request_amount": amount_of(MAJOR_NUMBER, facts)}
    if name.startswith("refund"):
        data |= {"id": f"rfd-{facts.effect_id}", "amount": amount_of(MAJOR_NUMBER, facts)}
    business = facts.account or "simulated"
    return {"event": name, "business_id": business, "created": iso(facts.made_at), "data": data}


def midtrans_body(facts: Facts, name: str) -> Body:
    """Midtrans."""
    at = facts.made_at.astimezone(timezone(timedelta(hours=7)))
    whole, part = divmod(facts.amount_minor, 100)
    return {
        "order_id": facts.order_reference,
        "status_code": "200",
        # Two decimals always, as it is signed.
        "gross_amount": f"{whole}.{part:02d}",
        "currency": facts.currency,
        "transaction_status": name,
        "transaction_id": facts.transaction_id,
        "merchant_id": facts.account or "G000000000",
        "transaction_time": f"{at:%Y-%m-%d %H:%M:%S}",
        "signature_key": "",
    }


def midtrans_snapbi_body(facts: Facts, name: str) -> Body:
    """Midtrans snapbi."""
    body = {"originalPartnerReferenceNo": facts.order_reference, "latestTransactionStatus": name}
    body |= {"originalReferenceNo": facts.transaction_id, "merchantId": facts.account or "G000000000"}
    return {**body, "amount": money_of(facts), "additionalInfo": {"paidTime": iso(facts.made_at)}}


def paypal_body(facts: Facts, name: str) -> Body:
    """Paypal."""
    event_type, _, outcome = name.partition("/")
    amount = {"currency_code": facts.currency, "value": amount_of(MAJOR_TEXT, facts)}
    capture = re.sub(r"[^A-Z0-9]", "", facts.transaction_id.upper())
    thing: Body = {"id": capture, "amount": amount, "custom_id": facts.order_reference}
    if facts.kind is K.REFUNDED:
        up = f"https://api.paypal.com/v2/payments/captures/{capture}"
        thing |= {"id": f"RE{facts.effect_id}", "links": [{"rel": "up", "href": up}]}
    elif facts.kind in DISPUTES:
        paid = {"seller_transaction_id": capture, "custom": facts.order_reference}
        thing = {"dispute_id": f"PP-{facts.effect_id}", "disputed_transactions": [paid]}
        thing |= {"dispute_amount": amount, "dispute_outcome": {"outcome_code": outcome}}
    head = {"id": f"WH-{facts.event_id}", "event_type": event_type, "create_time": iso(facts.made_at)}
    return {**head, "resource": thing}


def bkash_body(facts: Facts, name: str) -> Body:
    """Bkash."""
    at = facts.made_at.astimezone(timezone(timedelta(hours=6)))
    said = {"trxID": facts.transaction_id, "merchantInvoiceNumber": facts.order_reference}
    said |= {"amount": str(amount_of(MAJOR_TEXT, facts)), "currency": facts.currency}
    said |= {"transactionStatus": name, "dateTime": f"{at:%Y%m%d%H%M%S}"}
    said |= {"creditShortCode": facts.account or "01000000000"}
    return {
        "Type": "Notification",
        "MessageId": facts.event_id,
        "TopicArn": TOPIC,
        "Message": json.dumps(said),
        "Timestamp": facts.made_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    }


TOPIC = "arn:aws:sns:ap-southeast-1:000000000000:simulated"
"""The topic of simulated bKash messages: a source that is played must allow it."""


def sslcommerz_body(facts: Facts) -> bytes:
    """Sslcommerz."""
    at = facts.made_at.astimezone(timezone(timedelta(hours=6)))
    amount = str(amount_of(MAJOR_TEXT, facts))
    form = {"tran_id": facts.order_reference, "status": SSLCOMMERZ[facts.kind], "amount": amount}
    form |= {"currency": facts.currency, "currency_type": facts.currency, "currency_amount": amount}
    form |= {"bank_tran_id": facts.transaction_id, "store_id": facts.account or "simulated"}
    return urlencode({**form, "tran_date": f"{at:%Y-%m-%d %H:%M:%S}"}).encode()


def braintree_body(facts: Facts) -> bytes:
    """Braintree."""
    kind, _, of = BRAINTREE[facts.kind].partition("/")
    amount = f"<amount>{amount_of(MAJOR_TEXT, facts)}</amount>"
    money = f"{amount}<currency-iso-code>{facts.currency}</currency-iso-code>"
    order, payment = escape(facts.order_reference), escape(facts.transaction_id)
    paid = f"<id>{payment}</id><order-id>{order}</order-id>"
    if facts.kind in DISPUTES:
        subject = f"<dispute><id>dp_{facts.effect_id}</id>{money}<transaction>{paid}</transaction></dispute>"
    else:
        if of == "credit":
            original = f"<refunded-transaction-id>{payment}</refunded-transaction-id>"
            paid = f"<id>re_{facts.effect_id}</id><order-id>{order}</order-id>{original}"
        subject = f"<transaction>{paid}<type>{of}</type>{money}</transaction>"
    stamp = f'<timestamp type="datetime">{iso(facts.made_at)}</timestamp>'
    return f"<notification><kind>{kind}</kind>{stamp}<subject>{subject}</subject></notification>".encode()


SSLCOMMERZ = {K.PENDING: "PENDING", K.SUCCEEDED: "VALID", K.FAILED: "FAILED"}
BRAINTREE = {
    K.SUCCEEDED: "transaction_settled/sale",
    K.FAILED: "transaction_settlement_declined/sale",
    K.REFUNDED: "transaction_settled/credit",
    K.REFUND_FAILED: "transaction_settlement_declined/credit",
    K.DISPUTE_OPENED: "dispute_opened",
    K.DISPUTE_WON: "dispute_won",
    K.DISPUTE_LOST: "dispute_lost",
}
