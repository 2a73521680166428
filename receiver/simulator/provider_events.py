"""The events that `receiver trigger` can send, by provider and meaning, under the providers' own names."""

from __future__ import annotations

from urllib.parse import urlencode

from receiver.providers.payment_event import Kind
from receiver.simulator import other_bodies
from receiver.simulator import provider_bodies as bodies
from receiver.simulator.dialect import Dialect

K = Kind
_json = bodies.json_dialect

PROVIDER_DIALECTS: dict[str, Dialect] = {
    "adyen": _json(
        {
            K.SUCCEEDED: "AUTHORISATION",
            K.FAILED: "AUTHORISATION/false",
            K.PENDING: "PENDING",
            K.REFUNDED: "REFUND",
            K.REFUND_FAILED: "REFUND_FAILED",
            K.DISPUTE_OPENED: "CHARGEBACK",
            K.DISPUTE_WON: "CHARGEBACK_REVERSED",
            K.DISPUTE_LOST: "SECOND_CHARGEBACK",
        },
        bodies.adyen_body,
    ),
    "bkash": _json({K.SUCCEEDED: "Completed"}, other_bodies.bkash_body),
    "braintree": Dialect(other_bodies.BRAINTREE, other_bodies.braintree_body),
    "checkout_com": _json(
        {
            K.PENDING: "payment_pending",
            K.AUTHORIZED: "payment_approved",
            K.CAPTURED: "payment_captured",
            K.FAILED: "payment_declined",
            K.VOIDED: "payment_voided",
            K.REFUNDED: "payment_refunded",
            K.REFUND_FAILED: "payment_refund_declined",
            K.DISPUTE_OPENED: "dispute_received",
            K.DISPUTE_WON: "dispute_won",
            K.DISPUTE_LOST: "dispute_lost",
        },
        bodies.checkout_body,
    ),
    "coinbase_commerce": _json(
        {
            K.PENDING: "charge:pending",
            K.SUCCEEDED: "charge:confirmed",
            K.FAILED: "charge:failed",
        },
        bodies.coinbase_body,
    ),
    "flutterwave": _json(
        {
            K.SUCCEEDED: "charge.completed/succeeded",
            K.PENDING: "charge.completed/pending",
            K.FAILED: "charge.completed/failed",
            K.REFUNDED: "refund.completed/succeeded",
            K.REFUND_FAILED: "refund.completed/failed",
        },
        bodies.flutterwave_body,
    ),
    "flutterwave_v3": _json(
        {
            K.SUCCEEDED: "charge.completed/successful",
            K.PENDING: "charge.completed/pending",
            K.FAILED: "charge.completed/failed",
        },
        bodies.flutterwave_v3_body,
    ),
    "github": _json({K.OTHER: "sponsorship.created"}, bodies.github_body),
    "gocardless": _json(
        {
            K.PENDING: "payments.submitted",
            K.SUCCEEDED: "payments.confirmed",
            K.FAILED: "payments.failed",
            K.REFUNDED: "refunds.paid",
            K.REFUND_FAILED: "refunds.failed",
            K.DISPUTE_LOST: "payments.charged_back",
            K.DISPUTE_WON: "payments.chargeback_cancelled",
        },
        bodies.gocardless_body,
    ),
    "lemonsqueezy": _json(
        {
            K.SUCCEEDED: "order_created/paid",
            K.PENDING: "order_created/pending",
            K.FAILED: "order_created/failed",
            K.REFUNDED: "order_refunded",
        },
        bodies.lemonsqueezy_body,
    ),
    "midtrans": _json(
        {
            K.PENDING: "pending",
            K.AUTHORIZED: "authorize",
            K.SUCCEEDED: "settlement",
            K.FAILED: "deny",
            K.VOIDED: "cancel",
            K.REFUNDED: "refund",
        },
        other_bodies.midtrans_body,
    ),
    "midtrans_snapbi": _json(
        {K.SUCCEEDED: "00", K.PENDING: "03", K.VOIDED: "05", K.FAILED: "06"},
        other_bodies.midtrans_snapbi_body,
    ),
    "mollie": _json(
        {
            K.SUCCEEDED: "payment.paid",
            K.AUTHORIZED: "payment.authorized",
            K.PENDING: "payment.pending",
            K.FAILED: "payment.failed",
        },
        bodies.mollie_body,
    ),
    "mollie_classic": Dialect(
        {K.OTHER: "payment"}, lambda facts: urlencode({"id": bodies.mollie_id(facts)}).encode()
    ),
    "paddle": _json(
        {
            K.SUCCEEDED: "transaction.completed",
            K.FAILED: "transaction.payment_failed",
            K.REFUNDED: "adjustment.updated/refund-approved",
            K.REFUND_FAILED: "adjustment.updated/refund-rejected",
            K.DISPUTE_OPENED: "adjustment.created/chargeback-approved",
            K.DISPUTE_WON: "adjustment.created/chargeback_reverse-approved",
        },
        bodies.paddle_body,
    ),
    "paypal": _json(
        {
            K.AUTHORIZED: "PAYMENT.AUTHORIZATION.CREATED",
            K.VOIDED: "PAYMENT.AUTHORIZATION.VOIDED",
            K.SUCCEEDED: "PAYMENT.CAPTURE.COMPLETED",
            K.PENDING: "PAYMENT.CAPTURE.PENDING",
            K.FAILED: "PAYMENT.CAPTURE.DENIED",
            K.REFUNDED: "PAYMENT.CAPTURE.REFUNDED",
            K.DISPUTE_OPENED: "CUSTOMER.DISPUTE.CREATED",
            K.DISPUTE_WON: "CUSTOMER.DISPUTE.RESOLVED/RESOLVED_SELLER_FAVOUR",
            K.DISPUTE_LOST: "CUSTOMER.DISPUTE.RESOLVED/RESOLVED_BUYER_FAVOUR",
        },
        other_bodies.paypal_body,
    ),
    "paystack": _json(
        {
            K.SUCCEEDED: "charge.success",
            K.FAILED: "charge.failed",
            K.REFUNDED: "refund.processed",
            K.REFUND_FAILED: "refund.failed",
            K.DISPUTE_OPENED: "charge.dispute.create",
            K.DISPUTE_WON: "charge.dispute.resolve/declined",
            K.DISPUTE_LOST: "charge.dispute.resolve/merchant-accepted",
        },
        bodies.paystack_body,
    ),
    "razorpay": _json(
        {
            K.AUTHORIZED: "payment.authorized",
            K.SUCCEEDED: "payment.captured",
            K.FAILED: "payment.failed",
            K.REFUNDED: "refund.processed",
            K.REFUND_FAILED: "refund.failed",
            K.DISPUTE_OPENED: "payment.dispute.created",
            K.DISPUTE_WON: "payment.dispute.won",
            K.DISPUTE_LOST: "payment.dispute.lost",
        },
        bodies.razorpay_body,
    ),
    "shopify": _json(
        {
            K.PENDING: "order.pending",
            K.AUTHORIZED: "order.authorized",
            K.SUCCEEDED: "order.paid",
            K.VOIDED: "order.voided",
            K.FAILED: "order.expired",
            K.REFUNDED: "refund",
        },
        bodies.shopify_body,
    ),
    "square": _json(
        {
            K.PENDING: "payment.created/PENDING",
            K.AUTHORIZED: "payment.updated/APPROVED",
            K.SUCCEEDED: "payment.updated/COMPLETED",
            K.VOIDED: "payment.updated/CANCELED",
            K.FAILED: "payment.updated/FAILED",
            K.REFUNDED: "refund.updated/COMPLETED",
            K.REFUND_FAILED: "refund.updated/FAILED",
            K.DISPUTE_OPENED: "dispute.created/EVIDENCE_REQUIRED",
            K.DISPUTE_WON: "dispute.state.updated/WON",
            K.DISPUTE_LOST: "dispute.state.updated/LOST",
        },
        bodies.square_body,
    ),
    "sslcommerz": Dialect(other_bodies.SSLCOMMERZ, other_bodies.sslcommerz_body),
    "stripe": _json(
        {
            K.PENDING: "payment_intent.processing",
            K.AUTHORIZED: "payment_intent.amount_capturable_updated",
            K.SUCCEEDED: "payment_intent.succeeded",
            K.VOIDED: "payment_intent.canceled",
            K.FAILED: "payment_intent.payment_failed",
            K.REFUNDED: "refund.created/succeeded",
            K.REFUND_FAILED: "refund.failed/failed",
            K.DISPUTE_OPENED: "charge.dispute.created/needs_response",
            K.DISPUTE_WON: "charge.dispute.closed/won",
            K.DISPUTE_LOST: "charge.dispute.closed/lost",
        },
        bodies.stripe_body,
    ),
    "xendit": _json(
        {
            K.AUTHORIZED: "payment.authorization",
            K.SUCCEEDED: "payment.capture",
            K.FAILED: "payment.failure",
            K.REFUNDED: "refund.succeeded",
            K.REFUND_FAILED: "refund.failed",
        },
        other_bodies.xendit_body,
    ),
}
