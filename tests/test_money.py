"""Money: read from people and shown to them in a currency's own decimals, integers in between."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receiver.money import (
    MAX_AMOUNT,
    AmountError,
    UnknownCurrency,
    currency_code,
    format_amount,
    is_currency,
    minor_digits,
    parse_amount,
    parse_money,
)


@pytest.mark.parametrize("code, digits", [("JPY", 0), ("EUR", 2), ("KWD", 3), ("CLF", 4), ("BDT", 2)])
def test_a_currency_has_its_own_decimals(code, digits):
    """The decimals are those of ISO 4217, never two for all."""
    assert minor_digits(code) == digits


@pytest.mark.parametrize("code", ["XTS", "XXX", "XAU", "XDR", "ABC", "usd", "", "USDT"])
def test_codes_without_a_minor_unit_are_no_currency_of_a_payment(code):
    """Test codes, metals and unknown codes are refused by a named exception."""
    assert not is_currency(code)
    with pytest.raises(UnknownCurrency):
        minor_digits(code)


@pytest.mark.field_case(59)
@pytest.mark.parametrize(
    "text, code",
    [("usd", "USD"), ("Usd", "USD"), ("USD", "USD")]
    + [(bad, None) for bad in (" USD", "US$", "USDT", "ınr", "İNR", "ﬁm", "", "u\x00d")],
)
def test_a_currency_matches_in_ascii_of_any_case_only(text, code):
    """Case is folded in ASCII alone, so that a dotless i makes no INR, and nothing is trimmed."""
    assert currency_code(text) == code


@pytest.mark.parametrize(
    "text, minor",
    [
        ("18.600 KWD", 18600),
        ("18.6 KWD", 18600),
        ("10000 JPY", 10000),
        ("599.80 EUR", 59980),
        ("19.99 EUR", 1999),
        ("1.15 EUR", 115),
        ("0.29 EUR", 29),
        ("4.35 usd", 435),
    ],
)
@pytest.mark.field_case(53)
@pytest.mark.field_case(54)
def test_money_is_read_without_a_float(text, minor):
    """Every amount that people write comes out to the last minor unit."""
    assert parse_money(text)[0] == minor


@pytest.mark.field_case(55)
@pytest.mark.parametrize(
    "text",
    [
        "18.4501",
        "1.005",
        "1.000",
        "NaN",
        "-1.00",
        "+1",
        "1e3",
        "1,000.00",
        "1.",
        ".5",
        "",
        " ",
        "٣",
        "0",
        "0.00",
        "10000000000000.01",
        "9" * 5000,
        "1" + "0" * 40,
        "1 0",
        "1_0",
        "0x10",
        "1\x00",
    ],
)
def test_an_amount_that_is_not_plain_is_refused(text):
    """More decimals than the currency has, signs, exponents, grouping and zero are refused at entry."""
    with pytest.raises(AmountError):
        parse_amount(text, "EUR")


@pytest.mark.parametrize("text", ["", "5", "5.00", "EUR 5.00", "5.00 EURO", "5.00  XXX", "5 EUR x"])
def test_money_needs_an_amount_and_a_currency(text):
    """What is not both, in this order, is a named refusal."""
    with pytest.raises((AmountError, UnknownCurrency)):
        parse_money(text)


@pytest.mark.parametrize(
    "minor, code, shown",
    [
        (18600, "KWD", "18.600 KWD"),
        (10000, "JPY", "10000 JPY"),
        (5, "EUR", "0.05 EUR"),
        (0, "KWD", "0.000 KWD"),
        (-250, "EUR", "-2.50 EUR"),
        (7, "ZZZ", "7 minor units ZZZ"),
    ],
)
@pytest.mark.field_case(52)
def test_an_amount_is_shown_in_its_own_decimals(minor, code, shown):
    """No page divides by 100 whatever the currency, and a retired code does not break one."""
    assert format_amount(minor, code) == shown


@given(st.integers(1, MAX_AMOUNT), st.sampled_from(["JPY", "EUR", "KWD", "CLF"]))
def test_what_is_shown_can_be_read_again(minor, code):
    """Writing an amount and reading it back gives the same minor units and currency."""
    assert parse_money(format_amount(minor, code)) == (minor, code)


@given(st.text())
def test_no_text_raises_anything_but_a_named_refusal(text):
    """Whatever is typed, the answer is money or a sentence."""
    try:
        minor, code = parse_money(text)
    except (AmountError, UnknownCurrency):
        return
    assert 1 <= minor <= MAX_AMOUNT
    assert is_currency(code)
