"""What `receiver check` finds dangerous in a source that would work: each a verdict and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Literal

from receiver.providers import apis
from receiver.providers.authentication import MacAuthentication
from receiver.providers.provider import Provider
from receiver.settings import Source

Said = tuple[Literal["note", "fault"], str]

KEEPS_ITS_TIME = {"bkash": timedelta(hours=1), "paypal": timedelta(days=3)}
"""Providers whose retries carry the first attempt's signed time, and for how long they retry."""

NARROW = timedelta(seconds=60)
"""A window below this refuses sound callbacks after a slow network or a small skew of the clocks."""

TEST_KEYS = (
    "sk_test_", "rk_test_", "rzp_test_", "test_", "pdl_sdbx_", "xnd_development_", "sandbox_",
    "FLWSECK_TEST", "SB-Mid-", "sk_sbox_",
)  # fmt: skip
LIVE_KEYS = (
    "sk_live_", "rk_live_", "rzp_live_", "live_", "pdl_live_", "xnd_production_", "Mid-server-",
)  # fmt: skip
"""How the providers' keys begin, as far as they tell their mode."""


def dangers(source: Source, provider: Provider) -> Iterator[Said]:
    """The window, the keys' mode, and the credentials of the payment API."""
    yield from _window(source, provider)
    yield from _modes(source)
    yield from _credentials(source, provider)


def _window(source: Source, provider: Provider) -> Iterator[Said]:
    retried = KEEPS_ITS_TIME.get(source.provider)
    if retried is not None and source.tolerance is not None and source.tolerance < retried:
        yield (
            "fault",
            (
                f"its window of {_seconds(source.tolerance)} is narrower than {source.provider} retries "
                f"({_seconds(retried)}) with the time of the first attempt: late retries are refused"
            ),
        )
    if not isinstance(provider.authentication, MacAuthentication):
        return
    stamp = provider.authentication.schemes[0].timestamp
    if stamp is None:
        return
    own = timedelta(seconds=stamp.past) if stamp.past is not None else None
    window = source.tolerance or own
    if window is not None and window < NARROW:
        yield (
            "note",
            (
                f"its window is {_seconds(window)}: a slow network or a skew of the clocks refuses sound "
                "callbacks; tolerance_seconds widens it"
            ),
        )


def _modes(source: Source) -> Iterator[Said]:
    for secret in (*source.secrets, *source.api.values()):
        if secret.value.startswith(TEST_KEYS) and source.live is not False:
            verdict: Literal["note", "fault"] = "fault" if source.live else "note"
            stated = "the source is live" if source.live else "the source does not state `live`"
            yield verdict, f"{secret.reference} is a test key, and {stated}"
        if secret.value.startswith(LIVE_KEYS) and source.live is False:
            yield "fault", f"{secret.reference} is a live key, and the source states `live = false`"


def _credentials(source: Source, provider: Provider) -> Iterator[Said]:
    for reference in source.missing_api:
        yield "fault", f"the API credential {reference} is not set"
    known = apis.description(source.provider)
    needs = () if known is None else known.needs
    for name in sorted(set(source.api) - set(needs)):
        said = ", ".join(needs) or "this version asks no API of it"
        yield "fault", f"api.{name} is no credential of {source.provider}: {said}"
    missing = ", ".join(f"api.{name}" for name in apis.missing_credentials(source))
    if provider.confirm_by_fetch and known is None:
        yield (
            "fault",
            (
                f"events of {source.provider} count only once they are read back, and this version cannot "
                "ask its API: they all fail `unconfirmed`"
            ),
        )
    elif provider.confirm_by_fetch and missing:
        yield (
            "fault",
            f"its events count only once they are read back: without {missing} all fail `unconfirmed`",
        )
    elif provider.confirm_without is not None and missing:
        yield "note", f"its thin events are read back: without {missing} they fail `unconfirmed`"
    elif source.provider == "sslcommerz" and not provider.confirm_by_fetch:
        yield (
            "note",
            (
                "SSLCommerz asks every merchant to have payments confirmed by its API: set api.store_id, "
                "api.store_password and options.read_back = true"
            ),
        )
    elif source.api and missing:
        yield "fault", f"the payment API cannot be asked without {missing}"


def _seconds(span: timedelta) -> str:
    return f"{int(span.total_seconds())} s"
