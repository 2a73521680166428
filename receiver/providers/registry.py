"""The providers that are spoken here, by name.

A provider's file is imported when it is first asked for, so that one provider's dependencies are never
another's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module

from receiver.providers.provider import Provider
from receiver.settings import Source

_PROVIDERS: Mapping[str, tuple[str, str]] = {
    "adyen": ("adyen", "ADYEN"),
    "adyen_banking": ("adyen", "ADYEN_BANKING"),
    "bkash": ("bkash", "BKASH"),
    "braintree": ("braintree", "BRAINTREE"),
    "checkout_com": ("checkout_com", "CHECKOUT_COM"),
    "coinbase_commerce": ("coinbase_commerce", "COINBASE_COMMERCE"),
    "demo": ("demo", "DEMO"),
    "flutterwave": ("flutterwave", "FLUTTERWAVE"),
    "flutterwave_v3": ("flutterwave", "FLUTTERWAVE_V3"),
    "github": ("github", "GITHUB"),
    "gocardless": ("gocardless", "GOCARDLESS"),
    "hmac": ("described", "HMAC"),
    "lemonsqueezy": ("lemonsqueezy", "LEMONSQUEEZY"),
    "lesson": ("lesson", "LESSON"),
    "midtrans": ("midtrans", "MIDTRANS"),
    "midtrans_snapbi": ("midtrans_snapbi", "MIDTRANS_SNAPBI"),
    "mollie": ("mollie", "MOLLIE"),
    "mollie_classic": ("mollie", "MOLLIE_CLASSIC"),
    "paddle": ("paddle", "PADDLE"),
    "paypal": ("paypal", "PAYPAL"),
    "paystack": ("paystack", "PAYSTACK"),
    "razorpay": ("razorpay", "RAZORPAY"),
    "shopify": ("shopify", "SHOPIFY"),
    "square": ("square", "SQUARE"),
    "sslcommerz": ("sslcommerz", "SSLCOMMERZ"),
    "standard": ("standard", "STANDARD"),
    "stripe": ("stripe", "STRIPE"),
    "xendit": ("xendit", "XENDIT"),
}
"""By name: the module in this room, and the description's name in it."""


class UnknownProvider(KeyError):
    """No provider of that name is described here."""

    def __str__(self) -> str:
        return f"unknown provider {self.args[0]!r}: known are {', '.join(names())}"


@lru_cache(maxsize=128)
def provider(name: str) -> Provider:
    """The provider ``name``, without any source's options. Raises UnknownProvider."""
    if name not in _PROVIDERS:
        raise UnknownProvider(name)
    module, attribute = _PROVIDERS[name]
    found = getattr(import_module(f"receiver.providers.{module}"), attribute)
    assert isinstance(found, Provider)  # noqa: S101 (what the table above says)
    return found


def provider_of(source: Source) -> Provider:
    """The provider as ``source`` speaks it, its options heeded. Raises UnknownProvider."""
    if not source.options:
        return provider(source.provider)
    return _configured(source.provider, json.dumps(source.options, sort_keys=True, default=str))


@lru_cache(maxsize=256)
def _configured(name: str, options: str) -> Provider:
    return provider(name).of_source(json.loads(options))


def names() -> tuple[str, ...]:
    """All names, sorted."""
    return tuple(sorted(_PROVIDERS))
