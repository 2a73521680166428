"""Users: sign-in by password and by a link that works once."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from receiver.accounts.users import (
    BadUser,
    UnknownUser,
    UserExists,
    WeakPassword,
    create_user,
    disable_user,
    find_user,
    issue_sign_in_link,
    list_users,
    redeem_sign_in_link,
    set_password,
    sign_in,
)
from receiver.deps import Deps
from tests.conftest import NOW

PASSWORD = "correct horse battery"


@pytest.fixture
def ada(deps: Deps, session: Session) -> str:
    """A user `ada` with a password."""
    create_user(session, user_id=deps.dice.new_id(), name="ada", role="operator", password=PASSWORD, now=NOW)
    return "ada"


def test_the_right_password_signs_in(session: Session, ada: str) -> None:
    """Name and password together let in, and the time is noted."""
    user = sign_in(session, ada, PASSWORD, NOW)

    assert user is not None
    assert (user.name, user.role, user.last_signed_in_at) == ("ada", "operator", NOW)
    assert PASSWORD not in (user.password_hash or "")


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ada", "wrong horse battery"),
        ("ada", ""),
        ("bob", PASSWORD),
        ("", PASSWORD),
        ("ada\0", PASSWORD),
        ("ada\ud800", PASSWORD),
        ("ada", "\ud800" * 20),
        ("ada", "x" * 100_000),
    ],
)
def test_anything_else_is_refused(session: Session, ada: str, name: str, password: str) -> None:
    """A wrong password, an unknown or unusable name: None, never an error."""
    assert sign_in(session, name, password, NOW) is None


def test_both_spellings_of_an_accent_are_one_password(session: Session, deps: Deps) -> None:
    """A composed and a decomposed é are the same character of a password."""
    create_user(session, user_id=deps.dice.new_id(), name="zoe", role="viewer", password="caf\u00e9 au lait!")

    assert sign_in(session, "zoe", "cafe\u0301 au lait!") is not None


def test_a_disabled_user_is_out(session: Session, ada: str) -> None:
    """Disabling ends password, link and open sessions."""
    before = sign_in(session, ada, PASSWORD, NOW)
    assert before is not None
    epoch = before.session_epoch
    issue_sign_in_link(session, ada, timedelta(minutes=5), "token-1", NOW)

    disabled = disable_user(session, ada, NOW)

    assert disabled.session_epoch == epoch + 1
    assert sign_in(session, ada, PASSWORD, NOW) is None
    assert redeem_sign_in_link(session, "token-1", NOW) is None
    with pytest.raises(UnknownUser):
        issue_sign_in_link(session, ada, timedelta(minutes=5), "token-2", NOW)


def test_a_new_password_ends_the_old_one_and_the_sessions(session: Session, ada: str) -> None:
    """After a change only the new password lets in."""
    user = set_password(session, ada, "another fine password")

    assert user.session_epoch == 2
    assert sign_in(session, ada, PASSWORD, NOW) is None
    assert sign_in(session, ada, "another fine password", NOW) is not None


def test_a_user_without_a_password_needs_a_link(session: Session, deps: Deps) -> None:
    """No password is no password: nothing typed lets such a user in."""
    create_user(session, user_id=deps.dice.new_id(), name="admin", role="admin", now=NOW)

    assert sign_in(session, "admin", "", NOW) is None
    assert sign_in(session, "admin", "a password that nobody has", NOW) is None


def test_a_link_works_once_and_in_time(session: Session, ada: str) -> None:
    """A link lets in once, within its lifetime, and a newer link replaces it."""
    issue_sign_in_link(session, ada, timedelta(minutes=5), "token-1", NOW)
    assert redeem_sign_in_link(session, "token-2", NOW) is None
    user = redeem_sign_in_link(session, "token-1", NOW + timedelta(minutes=4))
    assert user is not None
    assert user.name == "ada"
    assert redeem_sign_in_link(session, "token-1", NOW + timedelta(minutes=4)) is None

    issue_sign_in_link(session, ada, timedelta(minutes=5), "token-3", NOW)
    assert redeem_sign_in_link(session, "token-3", NOW + timedelta(minutes=5)) is None

    issue_sign_in_link(session, ada, timedelta(minutes=5), "token-4", NOW)
    issue_sign_in_link(session, ada, timedelta(minutes=5), "token-5", NOW)
    assert redeem_sign_in_link(session, "token-4", NOW) is None
    assert redeem_sign_in_link(session, "token-5", NOW) is not None


def test_of_two_clicks_one_wins(deps: Deps) -> None:
    """Two processes that redeem one link at once let one browser in."""
    with deps.sessions.begin() as session:
        create_user(session, user_id=deps.dice.new_id(), name="ada", role="admin", now=NOW)
        issue_sign_in_link(session, "ada", timedelta(minutes=5), "token", NOW)
    let_in: list[bool] = []
    together = threading.Barrier(4)

    def click() -> None:
        together.wait()
        with deps.sessions.begin() as session:
            let_in.append(redeem_sign_in_link(session, "token", NOW) is not None)

    threads = [threading.Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(let_in) == [False, False, False, True]


def test_a_name_is_taken_once(session: Session, deps: Deps, ada: str) -> None:
    """A second user of one name is refused, and the transaction goes on."""
    with pytest.raises(UserExists):
        create_user(session, user_id=deps.dice.new_id(), name=ada, role="viewer", now=NOW)

    assert [user.name for user in list_users(session)] == ["ada"]


@pytest.mark.parametrize(
    ("name", "role"),
    [("", "admin"), (" ada", "admin"), ("a\0b", "admin"), ("x" * 65, "admin"), ("ada", "root")],
)
def test_unusable_names_and_roles_are_refused(session: Session, deps: Deps, name: str, role: str) -> None:
    """A name that cannot be shown or a role that does not exist is refused with a sentence."""
    with pytest.raises(BadUser):
        create_user(session, user_id=deps.dice.new_id(), name=name, role=role, now=NOW)


@pytest.mark.parametrize("password", ["short", "x" * 1025, "aaaaaaaaaaaaaaaa", "administrator1"])
def test_weak_passwords_are_refused(session: Session, deps: Deps, password: str) -> None:
    """Too short, too long or too plain: refused with a sentence that does not repeat it."""
    with pytest.raises(WeakPassword) as refused:
        create_user(
            session, user_id=deps.dice.new_id(), name="administrator", role="admin", password=password
        )

    assert password not in str(refused.value)


def test_a_user_is_found_by_id(session: Session, deps: Deps) -> None:
    """Pages find the signed-in user by id; an unknown id is None."""
    user_id = deps.dice.new_id()
    create_user(session, user_id=user_id, name="ada", role="viewer", now=NOW)

    found = find_user(session, user_id)
    assert found is not None
    assert found.name == "ada"
    assert find_user(session, deps.dice.new_id()) is None
