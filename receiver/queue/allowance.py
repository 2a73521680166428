"""How often one key may be replayed by programs: so many a minute, counted in the database."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.queue.table import QueueTable

A_MINUTE = 100
"""Replays of one key by API tokens in any sixty seconds, over all web processes."""

# One row a key holds the times of the last minute, so that the upsert's row lock makes the count true.
_TAKE = text(
    """\
WITH t AS (SELECT coalesce(CAST(:now AS timestamptz), now()) AS now)
INSERT INTO replay_allowances AS a (queue, key, recent)
SELECT :queue, :key, ARRAY[t.now] FROM t
ON CONFLICT (queue, key) DO UPDATE SET recent =
  ARRAY(SELECT r FROM unnest(a.recent) AS r WHERE r > excluded.recent[1] - interval '1 minute')
  || excluded.recent
WHERE (SELECT count(*) FROM unnest(a.recent) AS r WHERE r > excluded.recent[1] - interval '1 minute') < :most
RETURNING 1"""
)


def take_allowance(
    session: Session, table: QueueTable, key: str, *, most: int = A_MINUTE, now: datetime | None = None
) -> bool:
    """Take one replay of the key's minute; False when none is left. Given back by a rollback."""
    parameters = {"queue": table.name, "key": key, "most": most, "now": now}
    return session.execute(_TAKE, parameters).first() is not None
