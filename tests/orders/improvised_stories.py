"""Stories made up as they go: any run of verbs that a provider could carry out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .payment_stories import NAMELESS_REFUNDS, Story
from .provider_books import Payment, Provider


def improvise(choose: Callable[[Sequence[str]], str], moves: int, reference: str = "o_1") -> Story:
    """A story of at most ``moves`` verbs over one to three payments; ``choose`` picks one of its options."""
    provider = Provider(reference, 2500, "EUR")
    cancels = choose(("stays", "cancels")) == "cancels"
    for _ in range(int(choose(("1", "2", "3")))):
        _begin(
            provider, choose(("ids", "totals", "both")), choose(("named", "bare")), choose(("seq", "noseq"))
        )
    for _ in range(moves):
        options = {
            f"{verb} {number}": (payment, verb)
            for number, payment in enumerate(provider.payments)
            for verb in _possible(payment)
        }
        payment, verb = options[choose(tuple(options))]
        _move(payment, verb)
    name = "improvised"
    return Story(
        name,
        provider.reference,
        provider.amount,
        provider.currency,
        tuple(provider.events),
        provider.ends(),
        cancels,
    )


def _begin(provider: Provider, refunds: str, naming: str, sequences: str) -> None:
    provider.payment(
        sequenced=sequences == "seq",
        refund_ids=refunds in ("ids", "both"),
        refund_totals=refunds in ("totals", "both"),
        bare=NAMELESS_REFUNDS if naming == "bare" else frozenset(),
    )


def _possible(payment: Payment) -> list[str]:
    """What a provider could do next with this payment."""
    amount = payment.provider.amount
    verbs = ["pending", "fail"]
    if not payment.authorized and not payment.captured:
        verbs += ["authorize", "succeed"]
    if payment.authorized and not payment.voided:
        verbs += ["void"]
    if not payment.voided and payment.captured < amount:
        verbs += ["capture part", "capture rest"]
    if payment.captured == amount:
        verbs += ["succeed"]
    if payment.held > 0:
        verbs += ["refund part", "refund rest", "dispute"]
    if payment.captured == amount and payment.refunded == 0:
        verbs += ["refund whole"]
    # A running total says nothing of which refund failed: only those told by id can fail.
    if payment.refunds and payment.refund_ids:
        verbs += ["refund fails"]
    if "open" in payment.disputes.values():
        verbs += ["win", "lose"]
    return verbs


def _move(payment: Payment, verb: str) -> None:
    amount = payment.provider.amount
    match verb:
        case "capture part":
            payment.capture(max(1, (amount - payment.captured) // 3))
        case "capture rest":
            payment.capture(amount - payment.captured)
        case "refund part":
            payment.refund(max(1, payment.held // 3))
        case "refund rest":
            payment.refund(payment.held)
        case "refund whole":
            payment.refund_whole()
        case "refund fails":
            payment.fail_refund(next(iter(payment.refunds)))
        case "win" | "lose":
            opened = next(key for key, outcome in payment.disputes.items() if outcome == "open")
            (payment.win if verb == "win" else payment.lose)(opened)
        case _:
            getattr(payment, verb)()
