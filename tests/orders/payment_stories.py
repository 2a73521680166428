"""Stories of payments: what the merchant registers, what the provider tells, how it must end.

Used twice: by the pure rules in memory, and by the acts against the real database. A story's
events may come in any order, any number of times under new event ids, and before the order itself:
the end is always one of ``ends`` (one alone but where several payments keep money), or CANCELLED
where the merchant's cancel got through. Nothing but ``second_payment`` and ``order_cancelled`` is
ever refused in a story, and nothing stays parked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from receiver.providers.payment_event import Kind, PaymentEvent

from .provider_books import End, Provider

Money = tuple[int, str]
CANCELLED = End("cancelled", 0, 0, 0)

NAMELESS_REFUNDS = frozenset(
    {
        Kind.REFUNDED,
        Kind.REFUND_TOTAL,
        Kind.REFUND_FAILED,
        Kind.DISPUTE_OPENED,
        Kind.DISPUTE_WON,
        Kind.DISPUTE_LOST,
    }
)
"""Kinds that some providers send without the order's reference."""


@dataclass(frozen=True)
class Story:
    """One order and what happened to it. ``cancels``: the merchant also tries to cancel, at any time."""

    name: str
    reference: str
    amount_minor: int
    currency: str
    events: tuple[PaymentEvent, ...]
    ends: frozenset[End]
    cancels: bool = False


def stories(reference: str = "o_1") -> list[Story]:
    """Every written story, all of them for an order of this reference."""
    return [_tell(name, reference, *told) for name, told in STORIES.items()]


def story(name: str, reference: str = "o_1") -> Story:
    """The story of this name, for an order of this reference."""
    return _tell(name, reference, *STORIES[name])


def _tell(name: str, reference: str, play: Callable[[Provider], None], money: Money, cancels: bool) -> Story:
    provider = Provider(reference, *money)
    play(provider)
    return Story(name, reference, *money, tuple(provider.events), provider.ends(), cancels)


def _plain(provider: Provider) -> None:
    payment = provider.payment()
    payment.pending()
    payment.succeed()


def _failed_then_paid(provider: Provider) -> None:
    payment = provider.payment()
    payment.fail()
    payment.fail()
    payment.succeed()


def _second_transaction_pays(provider: Provider) -> None:
    provider.payment().fail()
    second = provider.payment()
    second.pending()
    second.succeed()


def _order_named_once(provider: Provider) -> None:
    payment = provider.payment(bare=frozenset(Kind) - {Kind.AUTHORIZED})
    payment.pending()
    payment.authorize()
    payment.succeed()
    payment.refund(300)


def _never_paid(provider: Provider) -> None:
    first, second = provider.payment(), provider.payment(sequenced=False)
    first.pending()
    first.fail()
    second.pending()
    second.fail()


def _failed_then_under_way(provider: Provider) -> None:
    payment = provider.payment()
    payment.fail()
    payment.pending()


def _both_paid(provider: Provider) -> None:
    provider.payment().succeed()
    provider.payment().succeed()


def _both_paid_one_given_back(provider: Provider) -> None:
    first, second = provider.payment(), provider.payment(bare=NAMELESS_REFUNDS)
    first.succeed()
    second.succeed()
    second.refund(400)
    second.refund(provider.amount - 400)


def _both_paid_both_given_back(provider: Provider) -> None:
    first, second = provider.payment(), provider.payment()
    first.succeed()
    second.succeed()
    first.refund_whole()
    second.refund(provider.amount)


def _both_paid_a_refund_fails(provider: Provider) -> None:
    first, second = provider.payment(), provider.payment()
    first.succeed()
    refund = first.refund(provider.amount)
    second.succeed()
    first.fail_refund(refund)
    second.refund(provider.amount)


def _parts_then_refund(provider: Provider) -> None:
    payment = provider.payment()
    payment.authorize()
    payment.capture(1000)
    payment.capture(provider.amount - 1000)
    payment.refund(700)


def _parts_and_void(provider: Provider) -> None:
    payment = provider.payment()
    payment.authorize()
    payment.capture(1000)
    payment.void()


def _parts_and_the_whole(provider: Provider) -> None:
    payment = provider.payment()
    payment.authorize()
    payment.capture(1000)
    payment.capture(provider.amount - 1000)
    payment.succeed()


def _voided(provider: Provider) -> None:
    payment = provider.payment()
    payment.pending()
    payment.authorize()
    payment.void()


def _two_partial_refunds(provider: Provider) -> None:
    payment = provider.payment(bare=NAMELESS_REFUNDS)
    payment.succeed()
    payment.refund(300)
    payment.refund(300)


def _refund_failed(provider: Provider) -> None:
    payment = provider.payment()
    payment.succeed()
    payment.fail_refund(payment.refund(provider.amount))
    payment.refund(provider.amount - 100)


def _totals_and_ids(provider: Provider) -> None:
    payment = provider.payment(refund_totals=True)
    payment.succeed()
    payment.refund(500)
    payment.refund_ids = False
    payment.refund(200)
    payment.refund(300)


def _totals_of_a_failed_refund(provider: Provider) -> None:
    payment = provider.payment(refund_totals=True)
    payment.succeed()
    payment.fail_refund(payment.refund(500))
    payment.refund(200)


def _dispute_won(provider: Provider) -> None:
    payment = provider.payment()
    payment.succeed()
    payment.win(payment.dispute())


def _dispute_lost(provider: Provider) -> None:
    payment = provider.payment()
    payment.succeed()
    payment.lose(payment.dispute())


def _dispute_after_refund(provider: Provider) -> None:
    payment = provider.payment()
    payment.succeed()
    payment.refund(300)
    payment.refund(provider.amount - 300)
    payment.dispute()


def _late_events(provider: Provider) -> None:
    payment = provider.payment(sequenced=False)
    payment.succeed()
    payment.refund_whole()
    payment.pending()
    payment.fail()


def _cancel_races_refund(provider: Provider) -> None:
    payment = provider.payment(bare=NAMELESS_REFUNDS)
    payment.pending()
    payment.succeed()
    payment.refund(provider.amount)


EUR: Money = (2500, "EUR")
JPY: Money = (10000, "JPY")
KWD: Money = (18600, "KWD")

STORIES: dict[str, tuple[Callable[[Provider], None], Money, bool]] = {
    "plain card payment": (_plain, EUR, False),
    "failed, then paid": (_failed_then_paid, EUR, False),
    "first transaction failed, second paid": (_second_transaction_pays, EUR, False),
    "the order is named by the authorization alone": (_order_named_once, EUR, False),
    "two transactions failed": (_never_paid, EUR, False),
    "failed, then under way again": (_failed_then_under_way, EUR, False),
    "two transactions both paid": (_both_paid, EUR, False),
    "both paid, one given back": (_both_paid_one_given_back, EUR, False),
    "both paid, both given back": (_both_paid_both_given_back, EUR, False),
    "both paid, a refund fails": (_both_paid_a_refund_fails, EUR, False),
    "authorized, captured in parts, refunded": (_parts_then_refund, EUR, False),
    "captured in part, the rest let go": (_parts_and_void, EUR, False),
    "captured in parts, then told as a whole": (_parts_and_the_whole, EUR, False),
    "authorized, then voided": (_voided, EUR, False),
    "two partial refunds": (_two_partial_refunds, EUR, False),
    "a refund fails": (_refund_failed, EUR, False),
    "running totals beside refunds by id": (_totals_and_ids, EUR, False),
    "running totals and a failed refund": (_totals_of_a_failed_refund, EUR, False),
    "dispute won": (_dispute_won, EUR, False),
    "dispute lost": (_dispute_lost, EUR, False),
    "dispute after a refund": (_dispute_after_refund, EUR, False),
    "late events after a refund": (_late_events, EUR, False),
    "cancel races a payment": (_plain, EUR, True),
    "cancel races a payment that goes back": (_cancel_races_refund, EUR, True),
    "cancel races a void": (_voided, EUR, True),
    "yen": (_two_partial_refunds, JPY, False),
    "dinar in parts": (_parts_then_refund, KWD, False),
}
