"""Money from the door to the order: minor units of the order's own currency, compared exactly."""

from __future__ import annotations

import pytest

from receiver.inbox.register_order import OrderRefused
from receiver.money import AmountError, format_amount, parse_amount
from tests.posting import payment


def pay(door, number: int, order: str, amount: object, currency: str = "EUR", **data: object) -> None:
    body = payment(f"evt_{number}", order, data={"amount": amount, "currency": currency, **data})
    assert door.demo(body).status_code == 200
    door.work()


@pytest.mark.field_case(52)
def test_yen_have_no_decimals(door):
    """¥10,000 is 10000; a hundredfold or a hundredth is another amount."""
    for order in ("o_1", "o_2", "o_3"):
        door.order(order, 10_000, "JPY")

    for number, amount in enumerate((10_000, 1_000_000, 100), start=1):
        pay(door, number, f"o_{number}", amount, "JPY")

    assert [door.state_of(f"o_{n}") for n in (1, 2, 3)] == ["paid", "pending", "pending"]
    assert [door.ended(f"evt_{n}") for n in (2, 3)] == [("failed", "amount", "amount")] * 2
    assert format_amount(10_000, "JPY") == "10000 JPY"


@pytest.mark.field_case(53)
def test_dinars_have_three_decimals(door):
    """18.600 KWD is 18600, and nothing else pays it."""
    amount = parse_amount("18.600", "KWD")
    for number, given in enumerate((18_600, 1_860, 186_000), start=1):
        door.order(f"o_{number}", amount, "KWD")
        pay(door, number, f"o_{number}", given, "KWD")

    assert [door.state_of(f"o_{n}") for n in (1, 2, 3)] == ["paid", "pending", "pending"]
    assert format_amount(18_600, "KWD") == "18.600 KWD"


@pytest.mark.field_case(54)
def test_amounts_are_never_floats(door):
    """Amounts that floats get wrong pay exactly; one with a part of a cent is refused."""
    for number, text in enumerate(("599.80", "19.99", "1.15", "0.29", "4.35")):
        minor = int(text.replace(".", ""))
        door.order(f"o_{number}", parse_amount(text, "EUR"))
        pay(door, number, f"o_{number}", minor)
        assert door.state_of(f"o_{number}") == "paid"

    with pytest.raises(AmountError):
        parse_amount("1.005", "EUR")


@pytest.mark.field_case(55)
def test_an_order_is_in_whole_minor_units(door):
    """A total with parts of a cent is refused when the order is made, so that no remainder stays for ever."""
    with pytest.raises(AmountError):
        parse_amount("18.4501", "EUR")
    with pytest.raises(OrderRefused):
        door.order("o_x", 1845.01)  # type: ignore[arg-type]

    door.order("o_1", parse_amount("18.45", "EUR"))
    pay(door, 1, "o_1", 1845)

    assert door.state_of("o_1") == "paid"


@pytest.mark.field_case(56)
def test_parts_add_up_exactly(door):
    """Captures of 0.10 three times and 34.70, refunds of 0.01, 0.01 and 0.02: sums without a remainder."""
    door.order("o_1", 3500)
    number = 0
    for kind, key, parts in (
        ("payment.captured", "capture_id", (10, 10, 10, 3470)),
        ("payment.refunded", "refund_id", (1, 1, 2)),
    ):
        for part in parts:
            number += 1
            data = {"amount": part, key: f"part_{number}"}
            assert door.demo(payment(f"evt_{number}", "o_1", type=kind, data=data)).status_code == 200
    door.work()

    (order,) = door.rows("SELECT captured_minor, refunded_minor, state FROM orders")
    assert order == {"captured_minor": 3500, "refunded_minor": 4, "state": "partially_refunded"}


@pytest.mark.field_case(57)
def test_the_currency_is_compared_with_the_order(door):
    """Whatever else is sold in another currency."""
    door.order("o_usd", 2500, "USD")
    door.order("o_1")
    door.order("o_2")

    pay(door, 1, "o_1", 2500, "EUR")
    pay(door, 2, "o_2", 2500, "USD")

    assert [door.state_of(order) for order in ("o_1", "o_2")] == ["paid", "pending"]
    assert door.ended("evt_2") == ("failed", "currency", "currency")


@pytest.mark.field_case(59)
@pytest.mark.parametrize("currency", ["usd", "Usd", "USD"])
def test_the_case_of_a_currency_does_not_matter(door, currency):
    """ASCII case only."""
    door.order("o_1", 2500, "USD")
    pay(door, 1, "o_1", 2500, currency)
    assert door.state_of("o_1") == "paid"


@pytest.mark.field_case(59)
@pytest.mark.parametrize("currency", [" USD", "USD ", "US$", "USDT", "ınr", "INR\u0130", "", "ＵＳＤ"])
def test_what_is_no_currency_fails_with_its_value_shown(door, currency):
    """Nothing is trimmed or folded beyond ASCII; the operator sees what was sent."""
    door.order("o_1", 2500, "USD")
    pay(door, 1, "o_1", 2500, currency)

    assert door.ended("evt_1") == ("failed", "unreadable_currency", "unreadable_currency")
    shown = door.event("evt_1")["last_error"]
    assert currency in shown or currency.encode("ascii", "backslashreplace").decode() in shown
    assert door.state_of("o_1") == "pending"


@pytest.mark.field_case(65)
def test_the_agreed_amount_is_compared_and_no_other(door):
    """A presentment in another currency, a fee and a net amount beside it decide nothing."""
    for order in ("o_1", "o_2"):
        door.order(order, 2500, "USD")
    beside = {"presentment": {"amount": 2310, "currency": "EUR"}, "fee": 73, "net": 2427}

    pay(door, 1, "o_1", 2500, "USD", **beside)
    pay(door, 2, "o_2", None, "USD", **beside)

    assert door.state_of("o_1") == "paid"
    (order,) = door.rows("SELECT captured_minor FROM orders WHERE reference = 'o_1'")
    assert order == {"captured_minor": 2500}
    assert door.state_of("o_2") == "pending"
    assert door.ended("evt_2")[0] == "failed"
