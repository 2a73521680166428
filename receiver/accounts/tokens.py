"""Bearer tokens of the merchant's systems: shown once, kept as their SHA-256."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from receiver.accounts.models import ApiToken
from receiver.db import at

SCOPES = ("orders:read", "orders:write", "events:read", "events:replay", "metrics")

PREFIX = "rcv_"
"""What every token begins with, so that scanners of repositories and logs can know one."""

USE_NOTED_EVERY = timedelta(minutes=1)
"""``last_used_at`` is this coarse: a write per request would cost more than the request."""


class TokenExists(Exception):
    """The name is taken, perhaps by a revoked token."""


class UnknownToken(Exception):
    """There is no token of this name."""


class BadToken(ValueError):
    """The name or a scope cannot be used; the text is a sentence for people."""


def create_token(
    session: Session,
    *,
    token_id: UUID,
    name: str,
    scopes: Collection[str],
    text: str | None = None,
    now: datetime | None = None,
) -> str:
    """Make a token and return its text, which is never shown again. Raises TokenExists, BadToken.

    ``text`` is for the caller that keeps one of its own (``receiver up``).
    """
    if not 1 <= len(name) <= 64 or not name.isprintable():
        raise BadToken("a token's name has 1 to 64 printable characters")
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise BadToken(f"a token has one or more of the scopes {', '.join(SCOPES)}")
    text = text or new_token_text()
    statement = (
        insert(ApiToken)
        .values(
            id=token_id,
            name=name,
            token_sha256=_sha256(text),
            scopes=[scope for scope in SCOPES if scope in scopes],
            created_at=at(now),
        )
        .on_conflict_do_nothing(index_elements=["name"])
        .returning(ApiToken.id)
    )
    if session.execute(statement).one_or_none() is None:
        raise TokenExists(f"there is a token {name!r} already")
    return text


def new_token_text() -> str:
    """A new token's text: the prefix and 32 random bytes."""
    return PREFIX + secrets.token_urlsafe(32)


def check_token(session: Session, text: str, now: datetime | None = None) -> ApiToken | None:
    """The token whose text this is, if it was not revoked, or None; notes its use."""
    if not text.startswith(PREFIX) or len(text) > 200:
        return None
    token = session.scalars(
        select(ApiToken).where(ApiToken.token_sha256 == _sha256(text), ApiToken.revoked_at.is_(None))
    ).one_or_none()
    if token is not None:
        session.execute(
            update(ApiToken)
            .where(
                ApiToken.id == token.id,
                or_(ApiToken.last_used_at.is_(None), ApiToken.last_used_at < at(now) - USE_NOTED_EVERY),
            )
            .values(last_used_at=at(now))
            .execution_options(synchronize_session=False)
        )
    return token


def revoke_token(session: Session, name: str, now: datetime | None = None) -> ApiToken:
    """End a token for good; a second time changes nothing. Raises UnknownToken."""
    token = session.scalars(select(ApiToken).where(ApiToken.name == name).with_for_update()).one_or_none()
    if token is None:
        raise UnknownToken(f"there is no token {name!r}")
    if token.revoked_at is None:
        session.execute(
            update(ApiToken)
            .where(ApiToken.id == token.id)
            .values(revoked_at=at(now))
            .execution_options(synchronize_session=False)
        )
        session.refresh(token)
    return token


def list_tokens(session: Session) -> Sequence[ApiToken]:
    """Every token by name, revoked ones too."""
    return session.scalars(select(ApiToken).order_by(ApiToken.name)).all()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
