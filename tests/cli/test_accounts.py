"""`receiver users` and `receiver tokens`."""

from __future__ import annotations

from receiver.accounts.actions import list_actions
from receiver.accounts.tokens import check_token
from receiver.accounts.users import redeem_sign_in_link, sign_in
from receiver.deps import Deps
from tests.cli.conftest import Shell, answered

PASSWORD = "correct horse battery"


def test_a_user_is_made_with_a_password_from_standard_input(shell: Shell, deps: Deps) -> None:
    """The password is read, never echoed, and lets the user in."""
    result = shell("users", "add", "ada", "--role", "admin", "--password-stdin", input=PASSWORD + "\n")

    assert result.exit_code == 0, result.output
    assert PASSWORD not in result.output
    with deps.sessions.begin() as session:
        assert sign_in(session, "ada", PASSWORD) is not None


def test_a_password_is_asked_for_twice(shell: Shell, deps: Deps) -> None:
    """At a terminal the password is typed twice and not shown."""
    result = shell("users", "add", "ada", input=f"{PASSWORD}\n{PASSWORD}\n")

    assert result.exit_code == 0, result.output
    assert PASSWORD not in result.output


def test_refusals_are_sentences(shell: Shell) -> None:
    """A taken name, a weak password, an unknown user: code 1 and a sentence."""
    assert shell("users", "add", "ada", "--no-password").exit_code == 0
    for words, options in (
        (["users", "add", "ada", "--no-password"], {}),
        (["users", "add", "bob", "--password-stdin"], {"input": "short\n"}),
        (["users", "disable", "nobody", "--yes"], {}),
        (["users", "link", "nobody"], {}),
        (["users", "password", "nobody", "--password-stdin"], {"input": PASSWORD + "\n"}),
        (["tokens", "revoke", "nobody", "--yes"], {}),
    ):
        result = shell(*words, **options)
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: ")


def test_a_link_signs_in_once(shell: Shell, deps: Deps) -> None:
    """The printed link holds the token; its audit row does not."""
    shell("users", "add", "ada", "--no-password")
    link = answered(shell("users", "link", "ada", "--json", env={"RECEIVER_URL": "https://pay.example/"}))[
        "link"
    ]

    assert link.startswith("https://pay.example/sign-in/")
    token = link.rpartition("/")[2]
    with deps.sessions.begin() as session:
        assert redeem_sign_in_link(session, token) is not None
        assert token not in str([vars(action) for action in list_actions(session)])


def test_a_new_password_and_disabling(shell: Shell, deps: Deps) -> None:
    """The list shows who can sign in, and how."""
    shell("users", "add", "ada", "--no-password")
    shell("users", "password", "ada", "--password-stdin", input=PASSWORD + "\n")
    assert [user["has_password"] for user in answered(shell("users", "list", "--json"))] == [True]

    assert shell("users", "disable", "ada", "--yes").exit_code == 0
    (user,) = answered(shell("users", "list", "--json"))
    assert user["disabled_at"] is not None
    assert "ada" in shell("users", "list").stdout
    with deps.sessions.begin() as session:
        assert sign_in(session, "ada", PASSWORD) is None


def test_a_token_is_shown_once(shell: Shell, deps: Deps) -> None:
    """Its text works, is never listed, and ends with a revoke."""
    made = answered(shell("tokens", "add", "shop", "--scope", "orders:read", "--scope", "metrics", "--json"))
    listed = shell("tokens", "list", "--json")

    assert made["token"] not in listed.stdout
    with deps.sessions.begin() as session:
        assert check_token(session, made["token"]) is not None
    assert shell("tokens", "revoke", "shop", "--yes").exit_code == 0
    with deps.sessions.begin() as session:
        assert check_token(session, made["token"]) is None
    assert shell("tokens", "add", "shop", "--scope", "metrics").exit_code == 1
    assert shell("tokens", "add", "x", "--scope", "everything").exit_code == 2
