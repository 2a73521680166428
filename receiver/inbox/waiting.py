"""What an event waits for, or waited for until its deadline, and what a person can do about it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from receiver.inbox.models import WebhookEvent


@dataclass(frozen=True, slots=True)
class Wait:
    """In words, and the command that gives the event what it waits for, where there is one."""

    text: str
    command: str | None = None


def waits_for(event: WebhookEvent) -> Wait | None:
    """What a parked event waits for, or an expired one waited for; None where that says nothing."""
    reason = event.parked_reason if event.state in ("pending", "in_flight") else None
    if event.state in ("failed", "expired"):
        reason = event.reason
    transaction = event.transaction_id or "that it does not name"
    order = event.order_reference or "that it does not name"
    match reason:
        case "order_unknown":
            return Wait(f"order {order}", register_command(event.order_reference))
        case "transaction_unknown":
            return Wait(f"an earlier event of transaction {transaction}")
        case "before_capture":
            return Wait(f"the capture of transaction {transaction}")
        case "refund_exceeds_captured":
            return Wait(f"a capture that explains the refund of transaction {transaction}")
        case "api_unavailable" | "api_behind" | "not_at_provider":
            return Wait(f"the provider's API to tell of transaction {transaction}")
        case "source_unknown":
            return Wait(f"a worker that knows the source {event.source}")
    return None


def register_command(reference: str | None) -> str | None:
    """The command that registers an order; None where it has no reference that can be pasted.

    The reference came from outside: it is quoted, since the line is there to be pasted into a shell.
    """
    if reference is None or not reference.isprintable():
        return None
    return f"receiver orders register --amount 'AMOUNT CURRENCY' -- {shlex.quote(reference)}"
