"""The view `webhook_inbox`: a whole event in one row, for people in psql."""

from __future__ import annotations

from sqlalchemy import DDL, event

from receiver.db import Base

WEBHOOK_INBOX = """\
CREATE VIEW webhook_inbox AS
SELECT e.id, e.source, e.provider_event_id, e.event_type, e.state, e.state AS status, e.outcome, e.reason,
       e.order_reference, e.transaction_id, e.amount_minor, e.currency, e.attempts, e.next_attempt_at,
       e.give_up_at, e.parked_reason, e.last_error_code, e.last_error, e.receipts, e.variants,
       e.received_at, e.finished_at, p.payload, p.headers
FROM webhook_events e LEFT JOIN webhook_payloads p ON p.id = e.payload_id"""
"""Kept beside the models so that the migrations' schema and theirs can be compared to the letter."""

event.listen(Base.metadata, "after_create", DDL(WEBHOOK_INBOX))  # type: ignore[no-untyped-call]
event.listen(Base.metadata, "before_drop", DDL("DROP VIEW IF EXISTS webhook_inbox"))  # type: ignore[no-untyped-call]
