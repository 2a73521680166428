"""Post what is missing here into the inbox, unless its callback waits there to be worked already."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.post_facts import Learnt, Posted, post_facts
from receiver.inbox.replay import RowChanged, replay_event
from receiver.providers.payment_event import PaymentEvent
from receiver.queue.table import DEAD_LETTERS
from receiver.reconciliation.ask import Subject


def effect_of(fact: PaymentEvent) -> tuple[str | None, str, str | None]:
    """What tells one money fact of a source from another, whatever event told it."""
    return fact.transaction_id, str(fact.kind), fact.effect_id


def waiting_effects(
    session: Session, subject: Subject, facts: Sequence[PaymentEvent]
) -> set[tuple[str | None, str, str | None]]:
    """Facts whose callback has come meanwhile and waits to be worked: they are not missing."""
    if not facts:
        return set()
    rows = session.execute(
        text(
            "SELECT transaction_id, kind, effect_id FROM webhook_events"
            " WHERE source = :source AND transaction_id = ANY(:transactions)"
            " AND state IN ('pending', 'in_flight')"
        ),
        {
            "source": subject.source,
            "transactions": sorted({fact.transaction_id for fact in facts if fact.transaction_id}),
        },
    )
    return {(row[0], row[1], row[2]) for row in rows} & {effect_of(fact) for fact in facts}


def post_missing(
    session: Session, deps: Deps, learnt: Sequence[Learnt], now: datetime | None
) -> list[Posted]:
    """Post; what was posted before and ended as a dead letter goes round again, since it would apply now."""
    posted = post_facts(
        session, learnt, origin="reconcile", dice=deps.dice, give_up=deps.settings.give_up, now=now
    )
    for one in posted:
        if one.new or one.state not in DEAD_LETTERS:
            continue
        try:
            replay_event(
                session,
                one.id,
                row_version=one.row_version,
                actor="system",
                reason="the provider's API still says so",
                give_up=deps.settings.give_up,
                now=now,
            )
        except RowChanged:
            continue
    return posted
