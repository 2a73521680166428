"""Amounts in the provider's unit become minor units by ISO 4217, or are flawed; nothing is rounded."""

from decimal import Decimal

import pytest

from receiver.providers import adyen, checkout_com, stripe
from receiver.providers.amounts import MAJOR_NUMBER, MAJOR_TEXT, MINOR_ANY, MINOR_TEXT


@pytest.mark.parametrize(
    "unit, value, currency, minor",
    [
        (MAJOR_TEXT, "516.50", "BDT", 51650),
        (MAJOR_TEXT, "516.5", "BDT", 51650),
        (MAJOR_TEXT, "18.600", "KWD", 18600),
        (MAJOR_TEXT, "500", "JPY", 500),
        (MAJOR_TEXT, "500.00", "JPY", 500),
        (MAJOR_TEXT, "500.50", "JPY", None),
        (MAJOR_TEXT, "1.005", "EUR", None),
        (MAJOR_TEXT, "1,005.00", "EUR", None),
        (MAJOR_TEXT, "-1.00", "EUR", None),
        (MAJOR_TEXT, "1e3", "EUR", None),
        (MAJOR_TEXT, " 1.00", "EUR", None),
        (MAJOR_TEXT, "১.০০", "EUR", None),
        (MAJOR_TEXT, 1, "EUR", None),
        (MAJOR_TEXT, "0.00", "EUR", None),
        (MAJOR_TEXT, "99999999999999.00", "EUR", None),
        (MAJOR_NUMBER, 1880, "NGN", 188000),
        (MAJOR_NUMBER, Decimal("26.32"), "NGN", 2632),
        (MAJOR_NUMBER, Decimal("26.325"), "NGN", None),
        (MAJOR_NUMBER, True, "NGN", None),
        (MAJOR_NUMBER, "26.32", "NGN", None),
        (MINOR_TEXT, "46000", "USD", 46000),
        (MINOR_TEXT, "460.00", "USD", None),
        (MINOR_TEXT, 46000, "USD", None),
        (MINOR_ANY, 46000, "USD", 46000),
        (MINOR_ANY, Decimal("46000.0"), "USD", None),
        (MINOR_ANY, "46000", None, None),
        (MINOR_ANY, "46000", "XXX", None),
        (stripe.UNIT, 500, "ISK", 5),
        (stripe.UNIT, 501, "ISK", None),
        (stripe.UNIT, 500, "UGX", 5),
        (stripe.UNIT, 5, "MGA", 500),
        (stripe.UNIT, 500, "JPY", 500),
        (stripe.UNIT, 18600, "KWD", 18600),
        (adyen.UNIT, 500, "CLP", 5),
        (adyen.UNIT, 5, "IDR", 500),
        (adyen.UNIT, 500, "ISK", 5),
        (checkout_com.UNIT, 500, "CLP", 5),
    ],
)
def test_an_amount_is_read_in_the_providers_unit(unit, value, currency, minor):
    """Zero and three decimals, texts and numbers, and each provider's exceptions."""
    assert unit.read(value, currency) == minor


def test_a_running_total_may_be_nothing():
    """A total of 0 is a total; an amount of 0 is none."""
    assert MAJOR_TEXT.read("0.00", "EUR", lowest=0) == 0
