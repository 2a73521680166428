"""Users, API tokens and the record of what people did."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index, Text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from receiver.db import Base, Instant

ROLES = ("viewer", "operator", "admin", "customer")


class User(Base):
    """A person who signs in. ``password_hash`` is argon2; None: only a sign-in link works.

    ``oidc_subject`` is ``<issuer> <sub>`` of one who comes from an OpenID Connect issuer.
    """

    __tablename__ = "users"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    role: Mapped[str] = mapped_column(Text)
    password_hash: Mapped[str | None] = mapped_column(Text)
    sign_in_sha256: Mapped[str | None] = mapped_column(Text)
    sign_in_until: Mapped[datetime | None] = mapped_column(Instant)
    session_epoch: Mapped[int] = mapped_column(default=1, server_default="1")
    disabled_at: Mapped[datetime | None] = mapped_column(Instant)
    created_at: Mapped[datetime] = mapped_column(Instant)
    last_signed_in_at: Mapped[datetime | None] = mapped_column(Instant)
    oidc_subject: Mapped[str | None] = mapped_column(Text, unique=True)

    __table_args__ = (CheckConstraint(f"role IN ({', '.join(repr(role) for role in ROLES)})", name="role"),)


class ApiToken(Base):
    """A bearer token, kept as its SHA-256. ``scopes``: see tokens.SCOPES."""

    __tablename__ = "api_tokens"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Text, unique=True)
    token_sha256: Mapped[str] = mapped_column(Text, unique=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))
    created_at: Mapped[datetime] = mapped_column(Instant)
    last_used_at: Mapped[datetime | None] = mapped_column(Instant)
    revoked_at: Mapped[datetime | None] = mapped_column(Instant)


class OperatorAction(Base):
    """One act of a person (or of the shell, or of `system`), written in the act's transaction."""

    __tablename__ = "operator_actions"

    id: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    at: Mapped[datetime] = mapped_column(Instant)
    actor: Mapped[str] = mapped_column(Text)
    action: Mapped[str] = mapped_column(Text)
    target: Mapped[str] = mapped_column(Text)
    criteria: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    count: Mapped[int] = mapped_column(default=1, server_default="1")
    reason: Mapped[str | None] = mapped_column(Text)

    __table_args__ = (
        Index("ix_operator_actions_target", "target", "id"),
        Index("ix_operator_actions_actor", "actor", "id"),
        Index("ix_operator_actions_action", "action", "id"),
    )
