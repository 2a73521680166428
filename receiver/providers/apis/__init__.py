"""The payment APIs that can be asked here, by the provider's name.

A description is imported when it is first asked for. Adyen has no call that reads a payment back, and
the others that are missing have none that this version knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from receiver.settings import Source

if TYPE_CHECKING:
    import requests

    from receiver.providers.described_api import ApiDescription
    from receiver.providers.payment_api import PaymentAPI

_APIS: Mapping[str, tuple[str, str]] = {
    "bkash": ("bkash", "BKASH_API"),
    "checkout_com": ("checkout_com", "CHECKOUT_COM_API"),
    "demo": ("demo", "DEMO_API"),
    "flutterwave_v3": ("flutterwave", "FLUTTERWAVE_V3_API"),
    "gocardless": ("gocardless", "GOCARDLESS_API"),
    "midtrans": ("midtrans", "MIDTRANS_API"),
    "mollie": ("mollie", "MOLLIE_API"),
    "mollie_classic": ("mollie", "MOLLIE_CLASSIC_API"),
    "paddle": ("paddle", "PADDLE_API"),
    "paypal": ("paypal", "PAYPAL_API"),
    "paystack": ("paystack", "PAYSTACK_API"),
    "razorpay": ("razorpay", "RAZORPAY_API"),
    "square": ("square", "SQUARE_API"),
    "sslcommerz": ("sslcommerz", "SSLCOMMERZ_API"),
    "stripe": ("stripe", "STRIPE_API"),
    "xendit": ("xendit", "XENDIT_API"),
}
"""By the provider's name: the module in this folder, and the description's name in it."""


def names() -> tuple[str, ...]:
    """The providers whose API is known here, sorted."""
    return tuple(sorted(_APIS))


def description(provider_name: str) -> ApiDescription | None:
    """How the provider's API is asked; None where none is known."""
    if provider_name not in _APIS:
        return None
    module, name = _APIS[provider_name]
    found: ApiDescription = getattr(import_module(f"receiver.providers.apis.{module}"), name)
    return found


def missing_credentials(source: Source) -> tuple[str, ...]:
    """The names of the credentials that the source's API needs and that are not there."""
    known = description(source.provider)
    return () if known is None else tuple(name for name in known.needs if name not in source.api)


def can_be_asked(source: Source) -> bool:
    """Whether the source's API is known and its credentials are there."""
    return description(source.provider) is not None and not missing_credentials(source)


def payment_api(source: Source, http: requests.Session) -> PaymentAPI | None:
    """The source's API; None where none is known, or its credentials are not there."""
    known = description(source.provider)
    if known is None or missing_credentials(source):
        return None
    from receiver.providers.described_api import DescribedApi

    return DescribedApi(known, source, http)
