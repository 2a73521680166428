"""What an event waits for, or waited for when it expired, and the command that helps."""

from __future__ import annotations

import shlex

import pytest
from sqlalchemy.orm import Session

from receiver.inbox.waiting import Wait, register_command, waits_for
from tests.factories import make_event


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"parked_reason": "transaction_unknown"}, "an earlier event of transaction tx_1"),
        ({"parked_reason": "before_capture"}, "the capture of transaction tx_1"),
        ({"state": "expired", "reason": "before_capture"}, "the capture of transaction tx_1"),
        ({"state": "expired", "reason": "api_unavailable"}, "the provider's API to tell of transaction tx_1"),
        ({"state": "failed", "reason": "amount"}, None),
        ({"state": "processed", "reason": "not_ours"}, None),
        ({}, None),
    ],
)
def test_each_reason_says_what_it_waits_for(
    session: Session, columns: dict[str, str], expected: str | None
) -> None:
    """Parked and expired rows alike; a refused or fresh one waits for nothing."""
    found = waits_for(make_event(session, transaction_id="tx_1", **columns))

    assert (found and found.text) == expected


def test_an_unknown_order_comes_with_its_command(session: Session) -> None:
    """Waiting or expired, the command that registers the order stands beside it."""
    expected = Wait("order ord_9", "receiver orders register --amount 'AMOUNT CURRENCY' -- ord_9")
    for columns in ({"parked_reason": "order_unknown"}, {"state": "expired", "reason": "order_unknown"}):
        assert waits_for(make_event(session, order_reference="ord_9", **columns)) == expected


@pytest.mark.parametrize("reference", ["o'x; rm -rf /", "--help", "$(id)", "a b", "`id`", "é"])
def test_a_foreign_reference_is_one_word(reference: str) -> None:
    """Pasted into a shell, the reference is one argument, whatever it holds."""
    command = register_command(reference)

    assert command is not None
    assert shlex.split(command)[-2:] == ["--", reference]


def test_a_reference_that_cannot_be_pasted_has_no_command() -> None:
    """Line breaks and other controls are never put into a command."""
    assert register_command("a\nb") is None
    assert register_command(None) is None
