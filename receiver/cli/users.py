"""`receiver users`: people who sign in."""

from __future__ import annotations

import secrets
import sys
from datetime import timedelta

import click

from receiver.accounts import users as accounts
from receiver.accounts.actions import record
from receiver.accounts.models import ROLES
from receiver.accounts.users import BadUser, UnknownUser, UserExists, WeakPassword
from receiver.cli.desk import desk
from receiver.cli.home import environment
from receiver.cli.output import actor, confirm, json_option, print_json, print_table, refusals, yes_option

LINK_MINUTES = 60


@click.group()
def users() -> None:
    """People who sign in."""


@users.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="viewer", show_default=True)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--no-password", is_flag=True, help="Let the user in by a sign-in link alone.")
@json_option
def add(name: str, role: str, password_stdin: bool, no_password: bool, as_json: bool) -> None:
    """Make a user; asks for the password."""
    password = None if no_password else _password(password_stdin)
    with (
        desk() as deps,
        refusals(UserExists, BadUser, WeakPassword),
        deps.sessions.begin() as session,
    ):
        user = accounts.create_user(
            session, user_id=deps.dice.new_id(), name=name, role=role, password=password
        )
        record(session, actor=actor(), action="user.add", target=f"user:{name}", criteria={"role": role})
    _said(as_json, {"name": user.name, "role": user.role}, f"made the {role} {name}")


@users.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Every user."""
    with desk() as deps, deps.sessions() as session:
        rows = accounts.list_users(session)
    if as_json:
        print_json(
            [
                {
                    "name": user.name,
                    "role": user.role,
                    "has_password": user.password_hash is not None,
                    "disabled_at": user.disabled_at,
                    "last_signed_in_at": user.last_signed_in_at,
                }
                for user in rows
            ]
        )
        return
    print_table(
        ["name", "role", "password", "last signed in", "disabled"],
        [
            (u.name, u.role, "yes" if u.password_hash else "no", u.last_signed_in_at, u.disabled_at)
            for u in rows
        ],
        empty="there are no users yet: receiver users add NAME --role admin",
    )


@users.command("password")
@click.argument("name")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@json_option
def password_(name: str, password_stdin: bool, as_json: bool) -> None:
    """Give a user a new password, which ends their open sessions."""
    with desk() as deps, refusals(UnknownUser, WeakPassword):
        with deps.sessions() as session:
            accounts.find_user_named(session, name)
        password = _password(password_stdin)
        with deps.sessions.begin() as session:
            accounts.set_password(session, name, password)
            record(session, actor=actor(), action="user.password", target=f"user:{name}")
    _said(as_json, {"name": name}, f"{name} has a new password; open sessions ended")


@users.command("link")
@click.argument("name")
@click.option("--minutes", type=click.IntRange(1, 7 * 24 * 60), default=LINK_MINUTES, show_default=True)
@json_option
def link(name: str, minutes: int, as_json: bool) -> None:
    """Make a link that signs a user in once; the one before it ends."""
    token = secrets.token_urlsafe(32)
    with desk() as deps, refusals(UnknownUser), deps.sessions.begin() as session:
        accounts.issue_sign_in_link(session, name, timedelta(minutes=minutes), token)
        record(session, actor=actor(), action="user.link", target=f"user:{name}")
    base = environment().get("RECEIVER_URL", "").rstrip("/")
    _said(as_json, {"name": name, "link": f"{base}/sign-in/{token}"}, f"{base}/sign-in/{token}")


@users.command("disable")
@click.argument("name")
@yes_option
@json_option
def disable(name: str, yes: bool, as_json: bool) -> None:
    """Shut a user out: password, links and open sessions end."""
    confirm(f"Shut out {name}?", yes)
    with desk() as deps, refusals(UnknownUser), deps.sessions.begin() as session:
        accounts.disable_user(session, name)
        record(session, actor=actor(), action="user.disable", target=f"user:{name}")
    _said(as_json, {"name": name}, f"{name} is shut out")


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    text: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return text


def _said(as_json: bool, value: dict[str, object], text: str) -> None:
    if as_json:
        print_json(value)
    else:
        click.echo(text)
