"""People who sign in: made by the shell, let in by a password or by a link that works once.

Acts take a session and never commit. Throttling of sign-ins is left to the door, which knows the
address; a session of a browser is valid while its ``session_epoch`` equals the user's.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from uuid import UUID

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from receiver.accounts.models import ROLES, User
from receiver.db import at

PASSWORD_MIN = 12
PASSWORD_MAX = 1024
"""Longer texts are refused before they are hashed."""

NAME_MAX = 64

_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
"""Argon2id at OWASP's figures: a sign-in costs some 20 ms and 19 MiB, which a small web process bears."""


class UserExists(Exception):
    """The name is taken."""


class UnknownUser(Exception):
    """There is no user of this name."""


class BadUser(ValueError):
    """The name or role cannot be used; the text is a sentence for people."""


class WeakPassword(ValueError):
    """The password is refused; the text is a sentence for people."""


def create_user(
    session: Session,
    *,
    user_id: UUID,
    name: str,
    role: str,
    password: str | None = None,
    now: datetime | None = None,
) -> User:
    """Make a user; without a password only a sign-in link lets them in.

    Raises UserExists, BadUser (name or role), WeakPassword.
    """
    if not 1 <= len(name) <= NAME_MAX or name != name.strip() or not name.isprintable():
        raise BadUser(f"a name has 1 to {NAME_MAX} printable characters and no blank at its ends")
    if role not in ROLES:
        raise BadUser(f"the role must be one of {', '.join(ROLES)}")
    statement = (
        insert(User)
        .values(
            id=user_id,
            name=name,
            role=role,
            password_hash=None if password is None else _hash(name, password),
            created_at=at(now),
        )
        .on_conflict_do_nothing(index_elements=["name"])
        .returning(User)
    )
    user = session.scalars(statement).one_or_none()
    if user is None:
        raise UserExists(f"there is a user {name!r} already")
    return user


def sign_in(session: Session, name: str, password: str, now: datetime | None = None) -> User | None:
    """The user whose name and password these are, or None; an unknown name takes the same time."""
    user = _by_name(session, name)
    stored = user.password_hash if user is not None and user.disabled_at is None else None
    if not _holds(stored or _nobodys_hash(), password) or user is None or stored is None:
        return None
    values: dict[str, object] = {"last_signed_in_at": at(now)}
    if _HASHER.check_needs_rehash(stored):
        values["password_hash"] = _HASHER.hash(_bytes(password))
    session.execute(update(User).where(User.id == user.id).values(**values))
    session.refresh(user)
    return user


def set_password(session: Session, name: str, password: str) -> User:
    """Give a user a new password, which ends their open sessions. Raises UnknownUser, WeakPassword."""
    return _change(session, name, password_hash=_hash(name, password), session_epoch=User.session_epoch + 1)


def disable_user(session: Session, name: str, now: datetime | None = None) -> User:
    """Shut a user out: password, link and open sessions end. Raises UnknownUser."""
    return _change(
        session,
        name,
        disabled_at=at(now),
        sign_in_sha256=None,
        sign_in_until=None,
        session_epoch=User.session_epoch + 1,
    )


def enable_user(session: Session, name: str) -> User:
    """Let a disabled user in again; a password they had works again. Raises UnknownUser."""
    return _change(session, name, disabled_at=None)


def set_role(session: Session, name: str, role: str) -> User:
    """Give a user another role, which ends their open sessions. Raises UnknownUser, BadUser."""
    if role not in ROLES:
        raise BadUser(f"the role must be one of {', '.join(ROLES)}")
    return _change(session, name, role=role, session_epoch=User.session_epoch + 1)


def holds_password(user: User, password: str) -> bool:
    """Whether this is the user's password."""
    return user.password_hash is not None and _holds(user.password_hash, password)


def list_users(session: Session) -> Sequence[User]:
    """Every user by name."""
    return session.scalars(select(User).order_by(User.name)).all()


def find_user(session: Session, user_id: UUID) -> User | None:
    """The user of an id, disabled or not, or None."""
    return session.get(User, user_id)


def find_user_named(session: Session, name: str) -> User:
    """The user of a name. Raises UnknownUser."""
    user = _by_name(session, name)
    if user is None:
        raise UnknownUser(f"there is no user {name!r}")
    return user


def issue_sign_in_link(
    session: Session, name: str, lifetime: timedelta, token: str, now: datetime | None = None
) -> None:
    """Let ``token`` sign the user in once within ``lifetime``; an older link of theirs ends.

    The caller makes the token (``secrets.token_urlsafe``) and shows it once. Raises UnknownUser, also
    for a disabled one.
    """
    if find_user_named(session, name).disabled_at is not None:
        raise UnknownUser(f"the user {name!r} is disabled")
    _change(session, name, sign_in_sha256=_sha256(token), sign_in_until=at(now) + lifetime)


def redeem_sign_in_link(session: Session, token: str, now: datetime | None = None) -> User | None:
    """The user whom the link lets in, or None. One statement, so that of two clicks one wins."""
    statement = (
        update(User)
        .where(
            User.sign_in_sha256 == _sha256(token),
            User.sign_in_until > at(now),
            User.disabled_at.is_(None),
        )
        .values(sign_in_sha256=None, sign_in_until=None, last_signed_in_at=at(now))
        .returning(User)
    )
    return session.scalars(statement, execution_options={"populate_existing": True}).one_or_none()


def sign_in_subject(
    session: Session, subject: str, *, user_id: UUID, name: str, role: str, now: datetime | None = None
) -> User | None:
    """The user of an OpenID Connect subject, made at the first time, with the role that the issuer says.

    None for a disabled one. Raises UserExists where the name is a user's of another kind, BadUser.
    """
    user = session.scalars(select(User).where(User.oidc_subject == subject)).one_or_none()
    if user is None:
        user = create_user(session, user_id=user_id, name=name, role=role, now=now)
    elif user.disabled_at is not None:
        return None
    elif user.role != role:
        user = set_role(session, user.name, role)
    return _change(session, user.name, oidc_subject=subject, last_signed_in_at=at(now))


def _change(session: Session, name: str, **values: object) -> User:
    user_id = find_user_named(session, name).id
    statement = update(User).where(User.id == user_id).values(**values).returning(User)
    return session.scalars(statement, execution_options={"populate_existing": True}).one()


def _by_name(session: Session, name: str) -> User | None:
    if not 1 <= len(name) <= NAME_MAX or not name.isprintable():
        # Also what no column could hold: NUL bytes and lone surrogates are not printable.
        return None
    return session.scalars(select(User).where(User.name == name)).one_or_none()


def _hash(name: str, password: str) -> str:
    if not PASSWORD_MIN <= len(password) <= PASSWORD_MAX:
        raise WeakPassword(f"a password has {PASSWORD_MIN} to {PASSWORD_MAX} characters")
    if len(set(password)) < 5 or password.casefold().strip("0123456789!") == name.casefold():
        raise WeakPassword("this password is too easy to guess")
    return _HASHER.hash(_bytes(password))


def _holds(stored: str, password: str) -> bool:
    if len(password) > PASSWORD_MAX:
        return False
    try:
        return _HASHER.verify(stored, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    # One keyboard types é as one character, another as two: both are the same password.
    return unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")


@cache
def _nobodys_hash() -> str:
    return _HASHER.hash("a password that nobody has")


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
