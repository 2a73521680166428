"""`receiver tokens`: bearer tokens of the API."""

from __future__ import annotations

import click

from receiver.accounts import tokens as accounts
from receiver.accounts.actions import record
from receiver.accounts.tokens import SCOPES, BadToken, TokenExists, UnknownToken
from receiver.cli.desk import desk
from receiver.cli.output import actor, confirm, json_option, print_json, print_table, refusals, yes_option


@click.group()
def tokens() -> None:
    """Bearer tokens of the API."""


@tokens.command("add")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    required=True,
    help="What the token may do; may stand several times.",
)
@json_option
def add(name: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Make a token and print its text, which is never shown again."""
    with desk() as deps, refusals(TokenExists, BadToken), deps.sessions.begin() as session:
        text = accounts.create_token(session, token_id=deps.dice.new_id(), name=name, scopes=scopes)
        record(
            session,
            actor=actor(),
            action="token.add",
            target=f"token:{name}",
            criteria={"scopes": list(scopes)},
        )
    if as_json:
        print_json({"name": name, "scopes": list(scopes), "token": text})
        return
    click.echo(text)
    click.echo("Keep it now: it is not shown again.", err=True)


@tokens.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Every token; their texts are not kept."""
    with desk() as deps, deps.sessions() as session:
        rows = accounts.list_tokens(session)
    if as_json:
        keys = ("name", "scopes", "created_at", "last_used_at", "revoked_at")
        print_json([{key: getattr(token, key) for key in keys} for token in rows])
        return
    print_table(
        ["name", "scopes", "made", "last used", "revoked"],
        [(t.name, t.scopes, t.created_at, t.last_used_at, t.revoked_at) for t in rows],
        empty="there are no tokens yet: receiver tokens add NAME --scope orders:write",
    )


@tokens.command("revoke")
@click.argument("name")
@yes_option
@json_option
def revoke(name: str, yes: bool, as_json: bool) -> None:
    """End a token for good."""
    confirm(f"Revoke the token {name}?", yes)
    with desk() as deps, refusals(UnknownToken), deps.sessions.begin() as session:
        token = accounts.revoke_token(session, name)
        record(session, actor=actor(), action="token.revoke", target=f"token:{name}")
    if as_json:
        print_json({"name": name, "revoked_at": token.revoked_at})
    else:
        click.echo(f"the token {name} is revoked")
