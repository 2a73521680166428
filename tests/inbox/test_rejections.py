"""Rejections counted in memory: bounded, whatever strangers choose, and kept when a flush fails."""

from __future__ import annotations

from sqlalchemy import text

from receiver.inbox.rejections import MAX_BODY, MAX_KINDS, Rejection, RejectionCounter, write_rejections
from tests.conftest import NOW


def rejection(number: int, body: bytes | None = None, **more: object) -> Rejection:
    values: dict[str, object] = {
        "source": "demo",
        "reason": "not_json",
        "at": NOW,
        "remote_address": "203.0.113.7",
        "length": len(body or b""),
        "sha256": f"{number:064x}",
        "body": body,
        "headers": [("X-A", "1")] if body else None,
        **more,
    }
    return Rejection(**values)  # type: ignore[arg-type]


def test_kinds_and_their_bytes_are_bounded_and_nothing_goes_uncounted():
    """Many addresses and long bodies: past the bound they are counted together, and bodies are cut."""
    counter = RejectionCounter()
    for number in range(2 * MAX_KINDS):
        counter.add(rejection(number, b"x" * 200_000))
        counter.add(rejection(number, None, reason="signature", remote_address=f"10.0.0.{number}"))

    held = counter.take()

    assert len(held) <= MAX_KINDS + 2
    assert max(len(one.body or b"") for one, _ in held.values()) == MAX_BODY
    assert sum(count for _, count in held.values()) == 4 * MAX_KINDS
    assert counter.take() == {}


def test_counts_whose_flush_failed_are_added_to_later_ones(session):
    """Put back, they are neither lost nor counted twice."""
    counter = RejectionCounter()
    counter.add(rejection(1, b"{"))
    counter.add(rejection(1, b"{"))
    taken = counter.take()
    counter.add(rejection(1, b"{"))

    counter.put_back(taken)
    write_rejections(session, counter.take())
    session.commit()

    (row,) = session.execute(text("SELECT count, payload, headers FROM webhook_rejections")).all()
    assert tuple(row) == (3, b"{", [["X-A", "1"]])


def test_a_body_is_kept_once_and_its_counts_add_up(session):
    """A second flush of the same body in the same minute adds to the row."""
    for _ in range(2):
        counter = RejectionCounter()
        counter.add(rejection(1, b"{"))
        write_rejections(session, counter.take())

    (row,) = session.execute(text("SELECT count, payload FROM webhook_rejections")).all()
    assert tuple(row) == (2, b"{")
