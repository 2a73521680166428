"""What each provider's API answers for one payment, as its documentation has it, and the facts meant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from receiver.providers.payment_api import Transaction
from receiver.providers.payment_event import Kind
from receiver.settings import Secret, Source

SECRET = "sk_test_never_shown"


@dataclass(frozen=True)
class Case:
    """``answers``: by address (without query), JSON. ``facts``: kind, transaction, effect, minor amount,
    currency, refund total, order reference.
    """

    provider: str
    asked: Transaction
    answers: dict[str, Any]
    facts: list[tuple[Any, ...]]
    keys: tuple[str, ...] = ("key",)
    live: bool | None = True
    posts: frozenset[str] = frozenset()
    name: str = ""
    api_url: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def source(self) -> Source:
        """The source with all credentials."""
        api = {name: Secret(f"env:{name}", f"{SECRET}_{name}") for name in self.keys}
        return Source(
            "shop", self.provider, live=self.live, api=api, api_url=self.api_url, options=self.options
        )


def _stripe(intent: dict[str, Any], refunds: list[Any], disputes: list[Any]) -> dict[str, Any]:
    return {
        "https://api.stripe.com/v1/payment_intents/pi_1": intent,
        "https://api.stripe.com/v1/refunds": {"object": "list", "data": refunds},
        "https://api.stripe.com/v1/disputes": {"object": "list", "data": disputes},
    }


_INTENT = {
    "id": "pi_1", "status": "succeeded", "amount": 5000, "amount_received": 5000, "currency": "eur",
    "metadata": {"order_id": "o_1"}, "livemode": True, "created": 1772366400,
}  # fmt: skip

CASES = [
    Case(
        "stripe", Transaction("pi_1"),
        _stripe(
            _INTENT,
            [{"id": "re_1", "status": "succeeded", "amount": 1200, "currency": "eur"},
             {"id": "re_2", "status": "pending", "amount": 1, "currency": "eur"}],
            [{"id": "dp_1", "status": "lost", "amount": 100, "currency": "eur"}],
        ),
        [("succeeded", "pi_1", "pi_1", 5000, "EUR", None, "o_1"),
         ("refunded", "pi_1", "re_1", 1200, "EUR", None, None),
         ("dispute_lost", "pi_1", "dp_1", 100, "EUR", None, None)],
    ),
    Case(
        "stripe", Transaction("pi_1"),
        _stripe({**_INTENT, "amount": 500, "amount_received": 500, "currency": "isk"}, [], []),
        [("succeeded", "pi_1", "pi_1", 5, "ISK", None, "o_1")], name="isk has two decimals at Stripe",
    ),
    Case(
        "stripe", Transaction("ch_1"),
        {
            "https://api.stripe.com/v1/charges/ch_1": {
                "id": "ch_1", "status": "succeeded", "captured": True, "amount": 900, "amount_captured": 900,
                "currency": "jpy", "livemode": True, "metadata": {"order_id": "o_1"}},
            "https://api.stripe.com/v1/refunds": {"data": []},
            "https://api.stripe.com/v1/disputes": {"data": []},
        },
        [("succeeded", "ch_1", "ch_1", 900, "JPY", None, "o_1")], name="a charge of its own",
    ),
    Case(
        "square", Transaction("pay_1"),
        {"https://connect.squareup.com/v2/payments/pay_1": {"payment": {
            "id": "pay_1", "status": "COMPLETED", "reference_id": "o_1", "version": 4,
            "amount_money": {"amount": 1500, "currency": "USD"},
            "refunded_money": {"amount": 300, "currency": "USD"}, "created_at": "2026-03-01T12:00:00Z"}}},
        [("succeeded", "pay_1", "pay_1", 1500, "USD", None, "o_1"),
         ("refund_total", "pay_1", None, None, "USD", 300, "o_1")],
    ),
    Case(
        "square", Transaction("pay_1"),
        {"https://connect.squareupsandbox.com/v2/payments/pay_1": {"payment": {
            "id": "pay_1", "status": "APPROVED", "reference_id": "o_1",
            "amount_money": {"amount": 1500, "currency": "USD"}}}},
        [("authorized", "pay_1", "pay_1", 1500, "USD", None, "o_1")], live=False, name="sandbox",
    ),
    Case(
        "razorpay", Transaction("pay_R1"),
        {
            "https://api.razorpay.com/v1/payments/pay_R1": {
                "id": "pay_R1", "status": "refunded", "amount": 49900, "currency": "INR",
                "notes": {"merchant_order": "o_1"}, "created_at": 1772366400},
            "https://api.razorpay.com/v1/payments/pay_R1/refunds": {"entity": "collection", "items": [
                {"id": "rfnd_1", "payment_id": "pay_R1", "amount": 49900, "currency": "INR",
                 "status": "processed", "created_at": 1772366500}]},
        },
        [("succeeded", "pay_R1", "pay_R1", 49900, "INR", None, "o_1"),
         ("refunded", "pay_R1", "rfnd_1", 49900, "INR", None, None)],
        keys=("key_id", "key_secret"),
    ),
    Case(
        "razorpay", Transaction("pay_R1"),
        {
            "https://api.razorpay.com/v1/payments/pay_R1": {
                "id": "pay_R1", "status": "authorized", "amount": 295, "currency": "KWD", "notes": []},
            "https://api.razorpay.com/v1/payments/pay_R1/refunds": {"items": []},
        },
        [("authorized", "pay_R1", "pay_R1", 295, "KWD", None, None)],
        keys=("key_id", "key_secret"), name="empty notes and three decimals",
    ),
    Case(
        "paystack", Transaction("ref-1"),
        {"https://api.paystack.co/transaction/verify/ref-1": {"status": True, "data": {
            "id": 4099260516, "status": "reversed", "reference": "ref-1", "amount": 40333, "currency": "NGN",
            "domain": "live", "metadata": {"order_id": "o_1"}, "paid_at": "2026-03-01T12:00:00.000Z"}}},
        [("succeeded", "ref-1", "ref-1", 40333, "NGN", None, "o_1"),
         ("refund_total", "ref-1", None, None, "NGN", 40333, "o_1")],
    ),
    Case(
        "paddle", Transaction("txn_1"),
        {
            "https://api.paddle.com/transactions/txn_1": {"data": {
                "id": "txn_1", "status": "completed", "currency_code": "JPY",
                "custom_data": {"order_id": "o_1"}, "details": {"totals": {"grand_total": "1200"}},
                "created_at": "2026-03-01T12:00:00Z"}},
            "https://api.paddle.com/adjustments": {"data": [
                {"id": "adj_1", "transaction_id": "txn_1", "action": "refund", "status": "approved",
                 "currency_code": "JPY", "totals": {"total": "200"}},
                {"id": "adj_2", "transaction_id": "txn_1", "action": "refund",
                 "status": "pending_approval", "currency_code": "JPY", "totals": {"total": "1"}},
                {"id": "adj_3", "transaction_id": "txn_1", "action": "chargeback", "status": "approved",
                 "currency_code": "JPY", "totals": {"total": "1000"}}]},
        },
        [("succeeded", "txn_1", "txn_1", 1200, "JPY", None, "o_1"),
         ("refunded", "txn_1", "adj_1", 200, "JPY", None, None),
         ("dispute_opened", "txn_1", "txn_1", 1000, "JPY", None, None)],
    ),
    Case(
        "mollie_classic", Transaction("tr_1"),
        {"https://api.mollie.com/v2/payments/tr_1": {
            "resource": "payment", "id": "tr_1", "mode": "live", "status": "paid", "description": "o_1",
            "amount": {"value": "18.60", "currency": "EUR"}, "createdAt": "2026-03-01T12:00:00+00:00",
            "_embedded": {
                "refunds": [
                    {"id": "re_1", "status": "refunded", "amount": {"value": "8.60", "currency": "EUR"}},
                    {"id": "re_2", "status": "queued", "amount": {"value": "1.00", "currency": "EUR"}}],
                "chargebacks": [{"id": "chb_1", "amount": {"value": "10.00", "currency": "EUR"},
                                 "reversedAt": None}]}}},
        [("succeeded", "tr_1", "tr_1", 1860, "EUR", None, "o_1"),
         ("refunded", "tr_1", "re_1", 860, "EUR", None, "o_1"),
         ("dispute_lost", "tr_1", "chb_1", 1000, "EUR", None, "o_1")],
    ),
    Case(
        "mollie", Transaction("tr_1"),
        {"https://api.mollie.com/v2/payments/tr_1": {
            "id": "tr_1", "mode": "live", "status": "open", "description": "Your order",
            "metadata": {"order": "o_1"}, "amount": {"value": "1000", "currency": "JPY"}}},
        [("pending", "tr_1", None, 1000, "JPY", None, "o_1")],
        options={"order_reference": "_embedded.entity.metadata.order"}, name="the source's own reference",
    ),
    Case(
        "mollie_classic", Transaction("tr_1"),
        {"https://api.mollie.com/v2/payments/tr_1": {
            "id": "tr_1", "mode": "live", "status": "failed", "metadata": {"order_id": "o_1"},
            "amount": {"value": "1.00", "currency": "EUR"}}},
        [("failed", "tr_1", None, 100, "EUR", None, "o_1")],
        options={"order_reference": "metadata.order_id"}, name="a reference in the metadata",
    ),
    Case(
        "mollie_classic", Transaction("tr_1"),
        {"https://api.mollie.com/v2/payments/tr_1": {
            "id": "tr_1", "mode": "live", "status": "canceled", "description": "o_1",
            "authorizedAt": "2026-03-01T12:00:00+00:00", "amount": {"value": "1.00", "currency": "EUR"}}},
        [("voided", "tr_1", "tr_1", 100, "EUR", None, "o_1")], name="cancelled after it was authorized",
    ),
    Case(
        "gocardless", Transaction("PM1", kind=Kind.SUCCEEDED),
        {"https://api.gocardless.com/payments/PM1": {"payments": {
            "id": "PM1", "amount": 2500, "currency": "GBP", "status": "paid_out",
            "metadata": {"order_id": "o_1"}, "created_at": "2026-03-01T12:00:00Z"}}},
        [("succeeded", "PM1", "PM1", 2500, "GBP", None, "o_1")],
    ),
    Case(
        "gocardless", Transaction(None, effect_id="RF1", kind=Kind.REFUNDED),
        {"https://api.gocardless.com/refunds/RF1": {"refunds": {
            "id": "RF1", "amount": 150, "currency": "GBP", "status": "paid", "links": {"payment": "PM1"}}}},
        [("refunded", "PM1", "RF1", 150, "GBP", None, None)], name="a refund",
    ),
    Case(
        "gocardless", Transaction("PM1", kind=Kind.DISPUTE_WON),
        {"https://api.gocardless.com/payments/PM1": {"payments": {
            "id": "PM1", "amount": 2500, "currency": "GBP", "status": "paid_out", "metadata": {}}}},
        [("succeeded", "PM1", "PM1", 2500, "GBP", None, None),
         ("dispute_won", "PM1", "PM1", 2500, "GBP", None, None)], name="a chargeback cancelled",
    ),
    Case(
        "flutterwave_v3", Transaction("288200108"),
        {"https://api.flutterwave.com/v3/transactions/288200108/verify": {"status": "success", "data": {
            "id": 288200108, "tx_ref": "o_1", "amount": 100.5, "currency": "NGN", "status": "successful",
            "created_at": "2026-03-01T12:00:00.000Z"}}},
        [("succeeded", "288200108", "288200108", 10050, "NGN", None, "o_1")],
    ),
    Case(
        "sslcommerz", Transaction("bank1", order_reference="o_1"),
        {"https://securepay.sslcommerz.com/validator/api/merchantTransIDvalidationAPI.php": {
            "APIConnect": "DONE", "no_of_trans_found": 1, "element": [
                {"val_id": "v1", "status": "VALIDATED", "tran_date": "2026-03-01 18:00:00", "tran_id": "o_1",
                 "amount": "516.50", "bank_tran_id": "bank1", "currency": "BDT", "currency_type": "USD",
                 "currency_amount": "4.70"}]}},
        [("succeeded", "bank1", "bank1", 470, "USD", None, "o_1")],
        keys=("store_id", "store_password"),
    ),
    Case(
        "bkash", Transaction("X9JODYNKC4"),
        {
            "https://tokenized.pay.bka.sh/v1.2.0-beta/tokenized/checkout/token/grant": {
                "id_token": "tok", "expires_in": 3600, "token_type": "Bearer"},
            "https://tokenized.pay.bka.sh/v1.2.0-beta/tokenized/checkout/general/searchTransaction": {
                "trxID": "X9JODYNKC4", "transactionStatus": "Completed", "amount": "2995", "currency": "BDT",
                "statusCode": "0000", "statusMessage": "Successful"},
        },
        [("succeeded", "X9JODYNKC4", "X9JODYNKC4", 299500, "BDT", None, None)],
        keys=("app_key", "app_secret", "username", "password"),
        posts=frozenset({
            "https://tokenized.pay.bka.sh/v1.2.0-beta/tokenized/checkout/token/grant",
            "https://tokenized.pay.bka.sh/v1.2.0-beta/tokenized/checkout/general/searchTransaction"}),
    ),
    Case(
        "xendit", Transaction("py-1"),
        {"https://api.xendit.co/v3/payments/py-1": {
            "payment_id": "py-1", "reference_id": "o_1", "status": "SUCCEEDED", "request_amount": 15000,
            "currency": "IDR", "business_id": "biz_1", "created": "2026-03-01T12:00:00Z"}},
        [("succeeded", "py-1", "py-1", 1500000, "IDR", None, "o_1")],
    ),
    Case(
        "xendit", Transaction("py-1", effect_id="rfd-1", kind=Kind.REFUNDED),
        {"https://api.xendit.co/refunds/rfd-1": {
            "id": "rfd-1", "payment_id": "py-1", "amount": 10.5, "currency": "PHP", "status": "SUCCEEDED"}},
        [("refunded", "py-1", "rfd-1", 1050, "PHP", None, None)], name="a refund",
    ),
    Case(
        "midtrans", Transaction("mt-1"),
        {"https://api.midtrans.com/v2/mt-1/status": {
            "status_code": "200", "transaction_id": "mt-1", "order_id": "o_1",
            "transaction_status": "partial_refund", "gross_amount": "150000.00", "currency": "IDR",
            "refund_amount": "5000.00", "merchant_id": "G1", "transaction_time": "2026-03-01 19:00:00"}},
        [("succeeded", "mt-1", "mt-1", 15000000, "IDR", None, "o_1"),
         ("refund_total", "mt-1", None, None, "IDR", 500000, "o_1")],
        keys=("server_key",),
    ),
    Case(
        "midtrans", Transaction("mt-1"),
        {"https://api.sandbox.midtrans.com/v2/mt-1/status": {
            "status_code": "201", "transaction_id": "mt-1", "order_id": "o_1", "fraud_status": "challenge",
            "transaction_status": "capture", "gross_amount": "150000.00", "currency": "IDR"}},
        [("pending", "mt-1", None, 15000000, "IDR", None, "o_1")],
        keys=("server_key",), live=False, name="challenged",
    ),
    *(
        Case(
            "midtrans", Transaction("mt-1", kind=kind),
            {"https://api.midtrans.com/v2/mt-1/status": {
                "status_code": "200", "transaction_id": "mt-1", "order_id": "o_1", "payment_type": paid_by,
                "fraud_status": "accept", "transaction_status": "cancel", "gross_amount": "150000.00",
                "currency": "IDR"}},
            [(kind.value, "mt-1", "mt-1", 15000000, "IDR", None, "o_1")],
            keys=("server_key",), name=f"cancelled {paid_by}",
        )
        for kind, paid_by in ((Kind.REFUNDED, "credit_card"), (Kind.VOIDED, "gopay"))
    ),
    Case(
        "midtrans", Transaction("mt-1", kind=Kind.DISPUTE_LOST),
        {"https://api.midtrans.com/v2/mt-1/status": {
            "status_code": "200", "transaction_id": "mt-1", "order_id": "o_1",
            "transaction_status": "chargeback", "gross_amount": "150000.00", "currency": "IDR"}},
        [("succeeded", "mt-1", "mt-1", 15000000, "IDR", None, "o_1"),
         ("dispute_lost", "mt-1", "mt-1", 15000000, "IDR", None, "o_1")],
        keys=("server_key",), name="charged back",
    ),
    Case(
        "checkout_com", Transaction("pay_1"),
        {
            "https://api.checkout.com/payments/pay_1": {
                "id": "pay_1", "status": "Partially Refunded", "amount": 6500, "currency": "CLP",
                "reference": "o_1", "requested_on": "2026-03-01T12:00:00Z"},
            "https://api.checkout.com/payments/pay_1/actions": [
                {"id": "act_2", "type": "Refund", "amount": 600, "approved": True},
                {"id": "act_1", "type": "Capture", "amount": 6500, "approved": True},
                {"id": "act_0", "type": "Authorization", "amount": 6500, "approved": True},
                {"id": "act_9", "type": "Capture", "amount": 1, "approved": False}],
        },
        [("authorized", "pay_1", "pay_1", 65, "CLP", None, "o_1"),
         ("captured", "pay_1", "act_1", 65, "CLP", None, "o_1"),
         ("refunded", "pay_1", "act_2", 6, "CLP", None, "o_1")],
    ),
    Case(
        "paypal", Transaction("CAP1", kind=Kind.SUCCEEDED),
        {
            "https://api-m.paypal.com/v1/oauth2/token": {"access_token": "tok", "expires_in": 32400},
            "https://api-m.paypal.com/v2/payments/captures/CAP1": {
                "id": "CAP1", "status": "COMPLETED", "custom_id": "o_1",
                "amount": {"currency_code": "USD", "value": "1006.00"}},
        },
        [("succeeded", "CAP1", "CAP1", 100600, "USD", None, "o_1")],
        keys=("client_id", "client_secret"), posts=frozenset({"https://api-m.paypal.com/v1/oauth2/token"}),
    ),
    Case(
        "paypal", Transaction("CAP1", effect_id="REF1", kind=Kind.REFUNDED),
        {
            "https://api-m.paypal.com/v1/oauth2/token": {"access_token": "tok", "expires_in": 32400},
            "https://api-m.paypal.com/v2/payments/refunds/REF1": {
                "id": "REF1", "status": "COMPLETED", "amount": {"currency_code": "JPY", "value": "2499"},
                "links": [{"rel": "up", "href": "https://api.paypal.com/v2/payments/captures/CAP1"}]},
        },
        [("refunded", "CAP1", "REF1", 2499, "JPY", None, None)], name="a refund",
        keys=("client_id", "client_secret"), posts=frozenset({"https://api-m.paypal.com/v1/oauth2/token"}),
    ),
    Case(
        "demo", Transaction("tx_1"),
        {"http://127.0.0.1:8000/demo-api/payments/tx_1": {
            "transaction_id": "tx_1", "order_id": "o_1", "amount": 18600, "currency": "KWD", "status": "paid",
            "sequence": 3, "live": True, "created_at": "2026-03-01T12:00:00Z",
            "captures": [],
            "refunds": [{"id": "re_1", "amount": 600, "status": "succeeded"},
                        {"id": "re_2", "amount": 1, "status": "pending"}],
            "disputes": [{"id": "dp_1", "amount": 18000, "status": "opened"}]}},
        [("succeeded", "tx_1", "tx_1", 18600, "KWD", None, "o_1"),
         ("refunded", "tx_1", "re_1", 600, "KWD", None, "o_1"),
         ("dispute_opened", "tx_1", "dp_1", 18000, "KWD", None, "o_1")],
    ),
]  # fmt: skip
"""Amounts are of the documentation's unit: JPY none, KWD three decimals, ISK and CLP the providers' own."""
