"""Tells what is due: takes one notice, sends it with no transaction open, notes what came of it.

A teller that vanishes between sending and noting has sent; its lease ends and the notice is sent again:
told at least once, never lost. Notices of one alert go over a channel in their order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from receiver.alert_settings import Channel
from receiver.alerts.channels import send
from receiver.alerts.models import Alert
from receiver.deps import Deps
from receiver.logs import logger

LEASE = timedelta(seconds=60)
"""Longer than a send may take: only a teller that vanished loses it."""

BACKOFF = (15, 30, 60, 120, 300)
"""Seconds until the next try; then always the last: a channel that is back is told within minutes."""

MOST_SECONDS = 25.0
"""One round of telling: the next look comes soon."""

Send = Callable[..., str | None]

log = logger("alerts")


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice that this process may send until its lease is over."""

    id: int
    alert_id: int
    claim_id: UUID
    channel: str
    subject: str
    body: str
    level: str
    attempts: int


def tell_due(deps: Deps, *, channel_send: Send = send) -> int:
    """Send what is due, one after another; returns how many were taken by their channels."""
    channels = {channel.name: channel for channel in deps.settings.alerts.channels}
    told, ends = 0, time.monotonic() + MOST_SECONDS
    with deps.sessions.begin() as session:
        _drop_unknown(session, list(channels))
    tried: set[str] = set()
    while time.monotonic() < ends:
        with deps.sessions.begin() as session:
            notice = claim_notice(
                session,
                deps.dice.new_id(),
                [name for name in channels if name not in tried],
                now=deps.clock.now(),
            )
        if notice is None:
            break
        error = channel_send(channels[notice.channel], notice.subject, notice.body, level=notice.level)
        with deps.sessions.begin() as session:
            note(session, notice, error, now=deps.clock.now())
        if error is None:
            told += 1
        else:
            # What is down now is down for the next notice too: each would wait out the time limits.
            tried.add(notice.channel)
            log.warning("alert.not_told", channel=notice.channel, attempts=notice.attempts, error=error)
    return told


_CLAIM = text(
    """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now)
UPDATE alert_notices AS n
SET attempts = n.attempts + 1, claim_id = :claim, claimed_until = t.now + CAST(:lease AS interval)
FROM t
WHERE n.id = (
  SELECT d.id FROM alert_notices d
  WHERE d.state = 'due' AND d.channel = ANY(CAST(:channels AS text[]))
    AND d.due_at <= (SELECT now FROM t)
    AND (d.claimed_until IS NULL OR d.claimed_until <= (SELECT now FROM t))
    AND NOT EXISTS (
      SELECT 1 FROM alert_notices e WHERE e.state = 'due' AND e.channel = d.channel
        AND e.alert_id = d.alert_id AND e.id < d.id
    )
  ORDER BY d.id LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING n.id, n.alert_id, n.claim_id, n.channel, n.subject, n.body, n.level, n.attempts"""
)


def claim_notice(
    session: Session, claim_id: UUID, channels: list[str], *, now: datetime | None = None
) -> Notice | None:
    """Take the oldest notice that is due for one of the channels, for the time of a lease."""
    parameters = {"now": now, "claim": claim_id, "lease": LEASE, "channels": channels}
    row = session.execute(_CLAIM, parameters).one_or_none()
    return None if row is None else Notice(*row)


_NOTE = text(
    """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now),
noted AS (
  UPDATE alert_notices n
  SET state = CASE WHEN CAST(:error AS text) IS NULL THEN 'told' ELSE 'due' END,
      told_at = CASE WHEN CAST(:error AS text) IS NULL THEN t.now END,
      last_error = :error, due_at = t.now + CAST(:wait AS interval),
      claim_id = NULL, claimed_until = NULL
  FROM t WHERE n.id = :id AND n.claim_id = :claim AND n.state = 'due'
  RETURNING n.alert_id, n.told_at
)
UPDATE alerts a SET notified_at = noted.told_at FROM noted
WHERE a.id = noted.alert_id AND noted.told_at IS NOT NULL"""
)


def note(session: Session, notice: Notice, error: str | None, *, now: datetime | None = None) -> None:
    """Note that a notice was taken, or why not and when it is tried again. Nothing if the claim is lost."""
    # The alert first, then its notices, as those who keep alerts do: neither waits for the other in a ring.
    session.execute(select(Alert.id).where(Alert.id == notice.alert_id).with_for_update())
    wait = timedelta(seconds=BACKOFF[min(notice.attempts, len(BACKOFF)) - 1])
    parameters = {"now": now, "id": notice.id, "claim": notice.claim_id, "error": error, "wait": wait}
    session.execute(_NOTE, parameters)


def _drop_unknown(session: Session, channels: list[str]) -> None:
    """What was due for a channel that is configured no more is dropped, and its row says so."""
    session.execute(
        text(
            "UPDATE alert_notices SET state = 'dropped', last_error = 'the channel is configured no more'"
            " WHERE state = 'due' AND channel <> ALL(CAST(:channels AS text[]))"
        ),
        {"channels": channels},
    )


def try_channel(channel: Channel, *, public_url: str, channel_send: Send = send) -> str | None:
    """Send a test over a channel now; None when it was taken, else why not."""
    subject = "[Receiver] test: this channel is told of alerts"
    body = f"This is a test. Nothing is wrong.\n\nPage: {public_url}/alerts"
    return channel_send(channel, subject, body, level="warn")
