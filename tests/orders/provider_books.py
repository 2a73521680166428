"""A payment provider with books of its own: what truly happened, and the events that tell of it.

Written from a provider's view, with running balances in true order. It knows nothing of the
receiver's ledger, decisions or transitions, so that it can say independently how an order must end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from receiver.providers.payment_event import Kind, PaymentEvent


@dataclass(frozen=True)
class End:
    """How an order ends: its state and its totals in minor units."""

    state: str
    authorized_minor: int
    captured_minor: int
    refunded_minor: int


@dataclass
class Payment:
    """One payment at the provider. Every verb changes the balance and tells it by events.

    ``sequenced``: status events carry growing sequences. ``refund_ids``: each refund is told by its
    id; ``refund_totals``: each refund is followed by the running total. ``bare``: kinds whose events
    name no order, as some providers leave it out of refunds and disputes.
    """

    provider: Provider
    id: str
    sequenced: bool = True
    refund_ids: bool = True
    refund_totals: bool = False
    bare: frozenset[Kind] = frozenset()

    captured: int = 0
    refunded: int = 0
    authorized: bool = False
    voided: bool = False
    status: str | None = None
    refunds: dict[str, int] = field(default_factory=dict)
    disputes: dict[str, str] = field(default_factory=dict)
    told: int = 0

    @property
    def held(self) -> int:
        """What the merchant has of this payment."""
        return self.captured - self.refunded

    def pending(self) -> None:
        """The payment is under way."""
        if self.sequenced or self.status is None:
            self.status = "pending"
        self._tell(Kind.PENDING, status=True)

    def fail(self) -> None:
        """A try to pay failed; the payment may still succeed."""
        self.status = "failed"
        self._tell(Kind.FAILED, status=True)

    def authorize(self) -> None:
        """The whole amount is set aside."""
        self.authorized = True
        self._tell(Kind.AUTHORIZED, amount=self.provider.amount)

    def succeed(self) -> None:
        """The whole amount is captured, or is said to be after its parts were."""
        self.captured = self.provider.amount
        self._tell(Kind.SUCCEEDED, amount=self.provider.amount)

    def capture(self, amount: int) -> None:
        """A part is captured."""
        self.captured += amount
        self._tell(Kind.CAPTURED, amount=amount, effect=self._id("cap"))

    def void(self) -> None:
        """What was set aside and not captured is let go."""
        self.voided = True
        self._tell(Kind.VOIDED)

    def refund(self, amount: int) -> str:
        """Give back a part; returns the refund's id."""
        refund = self._id("rf")
        self.refunds[refund] = amount
        self.refunded += amount
        if self.refund_ids:
            self._tell(Kind.REFUNDED, amount=amount, effect=refund)
        if self.refund_totals:
            self._tell(Kind.REFUND_TOTAL, total=self.refunded)
        return refund

    def refund_whole(self) -> None:
        """Give everything back, told without an id of the refund."""
        self.refunded = self.captured
        self._tell(Kind.REFUNDED, amount=self.provider.amount)

    def fail_refund(self, refund: str) -> None:
        """A refund comes back: the money is held again."""
        amount = self.refunds.pop(refund)
        self.refunded -= amount
        self._tell(Kind.REFUND_FAILED, amount=amount, effect=refund)

    def dispute(self) -> str:
        """The customer's bank disputes the payment; returns the dispute's id."""
        dispute = self._id("dp")
        self.disputes[dispute] = "open"
        self._tell(Kind.DISPUTE_OPENED, amount=self.held, effect=dispute)
        return dispute

    def win(self, dispute: str) -> None:
        """The dispute ends for the merchant."""
        self.disputes[dispute] = "won"
        self._tell(Kind.DISPUTE_WON, effect=dispute)

    def lose(self, dispute: str) -> None:
        """The dispute ends for the customer."""
        self.disputes[dispute] = "lost"
        self._tell(Kind.DISPUTE_LOST, effect=dispute)

    def end(self) -> End:
        """How the order ends if it is this payment that pays it."""
        authorized = self.provider.amount if self.authorized else 0
        return End(self._state(), authorized, self.captured, self.refunded)

    def _state(self) -> str:
        outcomes = set(self.disputes.values())
        if self.held == 0:
            return "refunded"
        if "lost" in outcomes:
            return "charged_back"
        if "open" in outcomes:
            return "disputed"
        if self.refunded > 0:
            return "partially_refunded"
        return "paid" if self.captured == self.provider.amount else "partially_paid"

    def _id(self, prefix: str) -> str:
        self.told += 1
        return f"{prefix}_{self.id}_{self.told}"

    def _tell(
        self,
        kind: Kind,
        *,
        amount: int | None = None,
        effect: str | None = None,
        total: int | None = None,
        status: bool = False,
    ) -> None:
        self.provider.events.append(
            PaymentEvent(
                source=self.provider.source,
                kind=kind,
                order_reference=None if kind in self.bare else self.provider.reference,
                transaction_id=self.id,
                effect_id=effect,
                amount_minor=amount,
                currency=self.provider.currency,
                refund_total_minor=total,
                sequence=len(self.provider.events) + 1 if status and self.sequenced else None,
            )
        )


@dataclass
class Provider:
    """The provider's books for one order: its payments, and every event in the order it happened."""

    reference: str
    amount: int
    currency: str
    source: str = "demo"
    payments: list[Payment] = field(default_factory=list)
    events: list[PaymentEvent] = field(default_factory=list)

    def payment(
        self,
        *,
        sequenced: bool = True,
        refund_ids: bool = True,
        refund_totals: bool = False,
        bare: frozenset[Kind] = frozenset(),
    ) -> Payment:
        """Begin another payment of the order."""
        name = f"tx_{self.reference}_{len(self.payments) + 1}"
        payment = Payment(self, name, sequenced, refund_ids, refund_totals, bare)
        self.payments.append(payment)
        return payment

    def ends(self) -> frozenset[End]:
        """Every right end. More than one only where several payments hold money: any of them may pay."""
        captured = [payment for payment in self.payments if payment.captured > 0]
        holding = [payment for payment in captured if payment.held > 0]
        if holding:
            return frozenset(payment.end() for payment in holding)
        if captured:
            most = max(payment.captured for payment in captured)
            return frozenset(payment.end() for payment in captured if payment.captured == most)
        if any(payment.authorized and not payment.voided for payment in self.payments):
            return frozenset({End("authorized", self.amount, 0, 0)})
        statuses = [payment.status for payment in self.payments if payment.status and not payment.authorized]
        failed = bool(statuses) and set(statuses) == {"failed"}
        return frozenset({End("failed" if failed else "pending", 0, 0, 0)})
