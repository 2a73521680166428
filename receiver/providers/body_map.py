"""Where a provider's body says what: descriptions, without the reading.

A ``BodyMap`` sorts events by their signed type into ``Meaning``s; each names a kind and, by ``Where``,
the places of its facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from receiver.providers import facts
from receiver.providers.amounts import MINOR, Unit
from receiver.providers.paths import Path, Place
from receiver.providers.payment_event import Kind


@dataclass(frozen=True)
class Where:
    """The places of the facts of one shape of event. A place that is None is not carried by it.

    ``effect_id`` may be TRANSACTION. ``ids`` reads references and ids: ``facts.text``, or
    ``facts.text_or_integer`` where a provider writes them as numbers too. ``mode`` and
    ``time`` read live or test mode and times as the provider spells them.
    """

    order_reference: Place = None
    transaction_id: Place = None
    effect_id: Place = None
    amount: Place = None
    currency: Place = None
    refund_total: Place = None
    sequence: Place = None
    account: Place = None
    live: Place = None
    occurred_at: Place = None
    unit: Unit = MINOR
    ids: facts.Reader = facts.text
    mode: facts.Reader = facts.live
    time: facts.Reader = facts.occurred_at

    def places(self) -> tuple[Place, ...]:
        """Every place that is read: for the test that nothing unsigned is."""
        return tuple(
            place
            for place in (
                self.order_reference,
                self.transaction_id,
                self.effect_id,
                self.amount,
                self.currency,
                self.refund_total,
                self.sequence,
                self.account,
                self.live,
                self.occurred_at,
            )
            if place
        )


@dataclass(frozen=True)
class Meaning:
    """What a type says, where every condition of ``when`` holds.

    A condition is a place and the values (texts; ``true`` and ``false`` for booleans) that it takes: for
    types that cover several outcomes. A ``refunded`` that carries a running total and not both a
    refund's id and its amount is read as ``refund_total``.
    """

    kind: Kind
    where: Where
    when: tuple[tuple[Place, frozenset[str]], ...] = ()


@dataclass(frozen=True)
class BodyMap:
    """How the events of a protocol are read.

    ``meanings`` maps the signed type to its meaning, or to several of which the first that holds is
    it; what is not in it, or none holds of, is ``other`` and read by ``otherwise``. ``payment`` names
    the object without which an event has no money meaning, whatever its type. ``changes_on_retry``
    lists the top-level fields of a body that differ from one delivery of an event to the next.
    ``blanks_absent``: empty texts and lists mean "nothing".
    """

    meanings: Mapping[str, Meaning | tuple[Meaning, ...]]
    otherwise: Where
    type: Place = ("type",)
    payment: Path | None = None
    changes_on_retry: frozenset[str] = frozenset()
    blanks_absent: bool = False
    several: Mapping[str, tuple[Meaning, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        several = {
            name: (found,) if isinstance(found, Meaning) else found for name, found in self.meanings.items()
        }
        object.__setattr__(self, "several", several)

    def every_where(self) -> tuple[Where, ...]:
        """Each ``Where`` of the map."""
        return (
            self.otherwise,
            *(meaning.where for several in self.several.values() for meaning in several),
        )

    def changed(self, change: Callable[[Where], Where]) -> BodyMap:
        """The same map with every ``Where`` changed, as a source's options may ask."""
        meanings = {
            name: tuple(replace(meaning, where=change(meaning.where)) for meaning in several)
            for name, several in self.several.items()
        }
        return replace(self, meanings=meanings, otherwise=change(self.otherwise))


def meanings_of(
    kinds: Mapping[str, Kind], where: Where, effects: Mapping[Kind, Path] | None = None
) -> dict[str, Meaning]:
    """One meaning a type, all of one shape but for the place of each kind's effect id."""
    return {
        name: Meaning(kind, replace(where, effect_id=(effects or {}).get(kind)))
        for name, kind in kinds.items()
    }
