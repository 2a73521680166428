"""`receiver orders`: the order's life at the shell."""

from __future__ import annotations

import pytest

from receiver.accounts.actions import list_actions
from receiver.deps import Deps
from tests.cli.conftest import Shell, answered
from tests.factories import make_event, make_ledger_entry, make_order


def test_an_order_is_registered_once(shell: Shell) -> None:
    """The same facts again change nothing; other facts are refused with what is registered."""
    first = answered(shell("orders", "register", "ord_1", "--amount", "18.600 KWD", "--json"))
    again = answered(shell("orders", "register", "ord_1", "--amount", "18.600 KWD", "--json"))
    other = shell("orders", "register", "ord_1", "--amount", "18.601 KWD")

    assert (first["amount_minor"], first["currency"], first["created"]) == (18600, "KWD", True)
    assert again["created"] is False
    assert other.exit_code == 1
    assert "18.600 KWD" in other.stderr
    assert "Traceback" not in other.output


@pytest.mark.field_case(53)
@pytest.mark.parametrize(
    "amount", ["18.601 EUR", "1860.5 JPY", "-1.00 EUR", "1e3 EUR", "NaN EUR", "18.60", "5 XYZ"]
)
def test_an_amount_that_the_currency_cannot_have_is_refused(shell: Shell, amount: str) -> None:
    """More decimals than the currency has, signs, exponents, no currency: a usage error, code 2."""
    result = shell("orders", "register", "ord_1", "--amount", amount)

    assert result.exit_code == 2
    assert answered(shell("orders", "list", "--json")) == []


def test_an_unknown_source_is_refused(shell: Shell) -> None:
    """An order cannot ask for a source that is not configured."""
    result = shell("orders", "register", "ord_1", "--amount", "1.00 EUR", "--source", "dmeo")

    assert result.exit_code == 1
    assert "demo, lesson" in result.stderr


def test_orders_are_listed_by_state_and_limit(shell: Shell, deps: Deps) -> None:
    """`list --json` is an array, newest first, over more than one page."""
    with deps.sessions.begin() as session:
        for number in range(5):
            make_order(session, reference=f"ord_{number}", state="paid" if number % 2 else "pending")

    everything = answered(shell("orders", "list", "--json"))
    paid = answered(shell("orders", "list", "--state", "paid", "--limit", "1", "--json"))
    assert [order["reference"] for order in everything] == [f"ord_{n}" for n in (4, 3, 2, 1, 0)]
    assert [order["reference"] for order in paid] == ["ord_3"]
    assert "ord_4" in shell("orders", "list").stdout


def test_an_order_shows_its_ledger_and_events(shell: Shell, deps: Deps) -> None:
    """`show` says the state, the money lines and what each event did."""
    with deps.sessions.begin() as session:
        order = make_order(session, reference="ord_1", state="paid", amount_minor=2500)
        event = make_event(session, state="processed", outcome="applied", order_reference="ord_1")
        make_ledger_entry(session, order, event_id=event.id)

    shown = answered(shell("orders", "show", "ord_1", "--json"))
    assert shown["state"] == "paid"
    assert [line["kind"] for line in shown["ledger"]] == ["capture"]
    assert [e["outcome"] for e in shown["events"]] == ["applied"]
    assert "25.00 EUR" in shell("orders", "show", "ord_1").stdout


def test_controls_in_a_reference_never_reach_the_terminal(shell: Shell, deps: Deps) -> None:
    """A reference with terminal controls or markup is shown as text."""
    with deps.sessions.begin() as session:
        make_order(session, reference="\x1b[31mred [bold]x[/bold]")

    for command in (["list"], ["show", "\x1b[31mred [bold]x[/bold]"]):
        shown = shell("orders", *command)
        assert "\x1b" not in shown.stdout
        assert "[bold]x[/bold]" in shown.stdout


@pytest.mark.parametrize("reference", ["nobody", "\0", "\ud800", "x" * 5000])
def test_an_unknown_order_is_a_sentence(shell: Shell, reference: str) -> None:
    """Code 1 and a sentence for every reference that is not there, whatever it holds."""
    result = shell("orders", "show", reference)

    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert result.stderr.startswith("Error: ")


def test_a_wrong_order_is_corrected_with_a_reason(shell: Shell, deps: Deps) -> None:
    """Correcting changes the facts, offers the refused events, and leaves an audit row."""
    with deps.sessions.begin() as session:
        make_order(session, reference="ord_1", amount_minor=2600)
        event = make_event(session, state="failed", reason="amount", order_reference="ord_1")

    corrected = answered(
        shell("orders", "correct", "ord_1", "--amount", "25.00 EUR", "--reason", "typo", "--yes", "--json")
    )
    assert (corrected["amount_minor"], corrected["replayable"]) == (2500, [str(event.id)])
    with deps.sessions() as session:
        (action,) = list_actions(session)
    assert (action.action, action.reason) == ("order.correct", "typo")
    assert action.actor.startswith("cli:")


def test_money_in_the_ledger_forbids_a_correction(shell: Shell, deps: Deps) -> None:
    """Once money is recorded the facts stand: refused with a sentence, code 1."""
    with deps.sessions.begin() as session:
        make_ledger_entry(session, make_order(session, reference="ord_1", state="paid"))

    result = shell("orders", "correct", "ord_1", "--amount", "1.00 EUR", "--reason", "typo", "--yes")
    assert result.exit_code == 1
    assert "money is recorded" in result.stderr


def test_destructive_commands_ask_first(shell: Shell, deps: Deps) -> None:
    """Without --yes a no, and also no answer at all, changes nothing."""
    with deps.sessions.begin() as session:
        make_order(session, reference="ord_1")

    assert shell("orders", "cancel", "ord_1", "--reason", "gone", input="n\n").exit_code == 1
    assert shell("orders", "cancel", "ord_1", "--reason", "gone").exit_code == 1
    assert answered(shell("orders", "show", "ord_1", "--json"))["state"] == "pending"
    done = answered(shell("orders", "cancel", "ord_1", "--reason", "gone", "--yes", "--json"))
    assert done["state"] == "cancelled"


@pytest.mark.parametrize(
    "words",
    [
        ["correct", "ord_1", "--reason", "x", "--yes"],
        ["correct", "ord_1", "--source", "demo", "--any-source", "--reason", "x", "--yes"],
        ["correct", "ord_1", "--amount", "1.00 EUR", "--yes"],
        ["list", "--state", "nonsense"],
        ["list", "--limit", "0"],
    ],
)
def test_wrong_usage_is_code_2(shell: Shell, words: list[str]) -> None:
    """What cannot be asked ends with code 2 and says why."""
    assert shell("orders", *words).exit_code == 2
