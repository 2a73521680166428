"""What `receiver up` makes once and keeps in its home: secrets, sources, the admin, the API token.

No processes here. Everything is repeatable: a second start finds what the first one made.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
import socket
import sys
from datetime import timedelta
from pathlib import Path

from sqlalchemy.orm import Session

from receiver.accounts.tokens import SCOPES, check_token, create_token
from receiver.accounts.users import UnknownUser, UserExists, create_user, issue_sign_in_link
from receiver.dice import Dice

ADMIN = "admin"
_API_URL = re.compile(r'^api_url = "http://[^"/]+/demo-api"$', re.MULTILINE)
LINK_LIFETIME = timedelta(hours=1)
PORTS_TRIED = 100

DEMO_BOOK = "demo-provider.sqlite"
"""In the home: what the demo provider recorded, which its payment API answers from."""

_FIRST_SOURCES = """\
# The sources of `receiver up`. Secrets stand in the file `env` beside this one, never here.
[sources.demo]
provider = "demo"
secrets = ["env:RECEIVER_DEMO_SECRET"]

[sources.lesson]
provider = "lesson"
secrets = ["env:RECEIVER_LESSON_SECRET"]
"""
"""What an older version wrote: untouched by its user, it gets the demo's API too."""

SOURCES = """\
# The sources of `receiver up`. Secrets stand in the file `env` beside this one, never here.
[sources.demo]
provider = "demo"
secrets = ["env:RECEIVER_DEMO_SECRET"]
api = { key = "env:RECEIVER_DEMO_API_KEY" }
api_url = "http://127.0.0.1:8000/demo-api"

[sources.lesson]
provider = "lesson"
secrets = ["env:RECEIVER_LESSON_SECRET"]
"""


def keep_secrets(kept: dict[str, str], home: Path) -> dict[str, str]:
    """The lines of ``env``, completed: what is there stays, what is missing is made."""
    made = {
        "SECRET_KEY": secrets.token_hex(32),
        "RECEIVER_DEMO_API_KEY": "dkey_" + secrets.token_hex(20),
        "RECEIVER_DEMO_SECRET": "dsec_" + secrets.token_hex(20),
        "RECEIVER_LESSON_SECRET": "lsec_" + secrets.token_hex(20),
        "RECEIVER_SOURCES": str(home / "sources.toml"),
    }
    run = int(kept.get("RECEIVER_UP_RUNS", "0") or 0) + 1
    return {**made, **kept, "RECEIVER_UP_RUNS": str(run)}


def keep_sources(home: Path, url: str) -> None:
    """Write ``sources.toml`` unless it is there (the user may have added to it).

    The demo's API is served at ``url``, which may be another one at each start.
    """
    path = home / "sources.toml"
    text = path.read_text(encoding="utf-8") if path.exists() else SOURCES
    if text == _FIRST_SOURCES:
        text = SOURCES
    path.write_text(_API_URL.sub(f'api_url = "{url}/demo-api"', text), encoding="utf-8")


def let_in(session: Session, dice: Dice, api_token: str) -> tuple[str, str | None]:
    """Make the admin and the API token unless they are there.

    Returns the API token that works (another one where the kept one was revoked, or belongs to another
    database) and a sign-in token, None where somebody disabled the admin.
    """
    with contextlib.suppress(UserExists):
        create_user(session, user_id=dice.new_id(), name=ADMIN, role="admin")
    if check_token(session, api_token) is None:
        token_id = dice.new_id()
        api_token = create_token(session, token_id=token_id, name=f"receiver up {token_id}", scopes=SCOPES)
    link = secrets.token_urlsafe(24)
    try:
        issue_sign_in_link(session, ADMIN, LINK_LIFETIME, link)
    except UnknownUser:
        return api_token, None
    return api_token, link


def free_port(host: str, wanted: int) -> int:
    """``wanted``, or the next port on which nothing listens; 0 takes any. Raises OSError."""
    last: OSError | None = None
    for port in range(wanted, min(wanted + PORTS_TRIED, 65536)):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As gunicorn binds: ports of connections just closed are free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                last = error
                continue
            return int(probe.getsockname()[1])
    raise last or OSError(f"no free port from {wanted}")


def program() -> str:
    """How the user called us, so that printed commands work when pasted."""
    called = sys.argv[0]
    if Path(called).name == "receiver" and "/" in called:
        return shlex.quote(called)
    return "receiver"


def demo_line(url: str, secret: str, run: int) -> str:
    """A shell line that pays order ``ord_<run>`` at the source demo: signs the time, in sh and bash."""
    body = (
        f'{{"id":"evt_demo_{run}","type":"payment.succeeded","sequence":1,"data":{{"order_id":"ord_{run}",'
        f'"transaction_id":"txn_demo_{run}","amount":1860,"currency":"EUR"}}}}'
    )
    return (
        f"body='{body}'; ts=$(date +%s); "
        f"""sig=$(printf '%s' "v1:$ts:$body" | openssl dgst -sha256 -hmac '{secret}' | sed 's/^.* //'); """
        f"curl -sS {url}/webhooks/demo -H 'Content-Type: application/json' "
        """-H "X-Timestamp: $ts" -H "X-Signature: v1=$sig" --data-binary "$body"; echo"""
    )


def lesson_line(url: str, secret: str, run: int) -> str:
    """A shell line that posts a lesson event: the body alone is signed, and needs an id alone."""
    body = f'{{"id":"evt_lesson_{run}","type":"lesson.hello"}}'
    return (
        f"body='{body}'; "
        f"""sig=$(printf '%s' "$body" | openssl dgst -sha256 -hmac '{secret}' | sed 's/^.* //'); """
        f"curl -sS {url}/webhooks/lesson -H 'Content-Type: application/json' "
        """-H "X-Signature: $sig" --data-binary "$body"; echo"""
    )


def register_command(run: int, home: Path, default_home: Path) -> str:
    """The next command: it registers the order that the demo line pays."""
    prefix = "" if home == default_home else f"RECEIVER_HOME={shlex.quote(str(home))} "
    return f"{prefix}{program()} orders register ord_{run} --amount '18.60 EUR'"
