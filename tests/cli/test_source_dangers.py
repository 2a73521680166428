"""`receiver check` tells what is dangerous in a source: windows, keys of the wrong mode, no credentials."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from receiver.cli.source_dangers import dangers
from receiver.providers.registry import names, provider_of
from receiver.settings import Secret, Source


def said(provider: str, **source: Any) -> list[tuple[str, str]]:
    """The dangers of a source ``shop``."""
    made = Source("shop", provider, **source)
    return list(dangers(made, provider_of(made)))


def keys(**values: str) -> dict[str, Secret]:
    """Credentials of a payment API."""
    return {name: Secret(f"env:{name.upper()}", value) for name, value in values.items()}


@pytest.mark.parametrize("provider", ["bkash", "paypal"])
def test_a_window_narrower_than_the_retries_is_a_fault(provider: str) -> None:
    """A retry that keeps its first time would be refused, and the payment lost."""
    found = said(provider, tolerance=timedelta(seconds=300))

    assert any(verdict == "fault" and "late retries are refused" in text for verdict, text in found)
    assert not any("retries" in text for _, text in said(provider, tolerance=timedelta(days=4)))
    assert not any("retries" in text for _, text in said(provider))


def test_a_window_of_seconds_is_worth_knowing() -> None:
    """Paddle's own window is 5 s."""
    assert [verdict for verdict, text in said("paddle") if "5 s" in text] == ["note"]
    assert said("paddle", tolerance=timedelta(seconds=60)) == []
    assert said("stripe") == []


@pytest.mark.parametrize(
    "value,live,verdicts",
    [
        ("sk_test_secret", True, ["fault"]),
        ("sk_test_secret", None, ["note"]),
        ("sk_test_secret", False, []),
        ("sk_live_secret", False, ["fault"]),
        ("sk_live_secret", True, []),
    ],
)
def test_keys_of_the_other_mode_are_told(value: str, live: bool | None, verdicts: list[str]) -> None:
    """In the credentials and among the secrets, by reference and never by value."""
    for found in (
        said("stripe", api=keys(key=value), live=live),
        said("paystack", secrets=(Secret("env:KEY", value),), live=live),
    ):
        assert [verdict for verdict, _ in found] == verdicts
        assert value not in str(found)


def test_missing_credentials_are_a_fault_where_events_must_be_read_back() -> None:
    """Without them every event of the source fails."""
    assert said("xendit")[0][1].endswith("without api.key all fail `unconfirmed`")
    assert said("xendit", api=keys(key="x")) == []
    assert [verdict for verdict, _ in said("mollie")] == ["note"]
    assert said("razorpay") == []
    assert [verdict for verdict, _ in said("razorpay", api=keys(key_id="x"))] == ["fault"]


def test_what_the_api_does_not_take_is_a_fault() -> None:
    """A misspelt name would be left out in silence."""
    found = said("stripe", api=keys(secret="x"), missing_api=("env:GONE",))

    assert [text for _, text in found] == [
        "the API credential env:GONE is not set",
        "api.secret is no credential of stripe: key",
        "the payment API cannot be asked without api.key",
    ]
    assert said("adyen", api=keys(key="x"))[0][1].endswith("adyen: this version asks no API of it")


@pytest.mark.parametrize("provider", sorted(set(names()) - {"hmac"}))
def test_every_provider_that_must_be_read_back_can_be(provider: str) -> None:
    """No provider whose events never count."""
    assert not any("this version cannot ask" in text for _, text in said(provider))
