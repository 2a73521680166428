"""The table refuses rows that no verb makes, whoever writes them."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from tests.factories import NOW, make_event

IMPOSSIBLE = {
    "a state of no meaning": ("pending", {"state": "done", "finished_at": None, "outcome": None}, "state"),
    "in flight without a claim": ("in_flight", {"claim_id": None}, "claim"),
    "in flight without a lease": ("in_flight", {"claimed_until": None}, "claim"),
    "in flight since never": ("in_flight", {"claimed_at": None}, "claim"),
    "pending under a claim": ("pending", {"claim_id": uuid4()}, "claim"),
    "ended under a lease": ("processed", {"claimed_until": NOW}, "claim"),
    "ended at no time": ("failed", {"finished_at": None}, "finish"),
    "ended without an outcome": ("processed", {"outcome": None}, "finish"),
    "pending with an outcome": ("pending", {"outcome": "applied"}, "finish"),
    "pending and finished": ("pending", {"finished_at": NOW}, "finish"),
    "parked since never": ("pending", {"parked_reason": "order_unknown", "parked_at": None}, "parked"),
    "ended and parked": ("failed", {"parked_reason": "order_unknown", "parked_at": NOW}, "parked"),
    "due after the deadline": (
        "pending",
        {"next_attempt_at": NOW + timedelta(hours=73)},
        "due_before_give_up",
    ),
    "fewer than no attempts": ("pending", {"attempts": -1}, "counts"),
    "fewer than no losses": ("pending", {"lost": -1}, "counts"),
    "fewer than no replays": ("pending", {"replays": -1}, "counts"),
    "an empty id": ("pending", {"provider_event_id": ""}, "provider_event_id"),
    "an id too long": ("pending", {"provider_event_id": "x" * 138}, "provider_event_id"),
    "a kind of no meaning": ("pending", {"kind": "paid"}, "kind"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_row_is_refused(session: Session, name: str) -> None:
    """No row can say two things at once."""
    state, columns, check = IMPOSSIBLE[name]

    with pytest.raises(IntegrityError, match=f"ck_webhook_events_{check}"):
        make_event(session, **{"state": state, **columns})  # type: ignore[arg-type]
