"""`receiver retention` at the shell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from receiver.deps import Deps
from receiver.inbox.models import WebhookPayload
from tests.cli.conftest import Shell, answered
from tests.factories import make_event

AT = datetime.now(UTC) - timedelta(days=100)
"""Old enough to be archived, and too young to be forgotten: the shell goes by the database's clock."""


@pytest.fixture
def archived(shell: Shell, tmp_path: Path) -> Shell:
    """The shell with an archive in a folder."""

    def run(*words: str, **more: object) -> object:
        return shell(*words, env={"ARCHIVE_URL": str(tmp_path / "archive")}, **more)

    return run  # type: ignore[return-value]


def _old(session: Session, number: int = 2) -> list[str]:
    ids = [str(make_event(session, state="processed", at=AT).id) for _ in range(number)]
    session.commit()
    return ids


def _left(session: Session) -> int:
    session.rollback()
    return session.scalar(select(func.count()).select_from(WebhookPayload)) or 0


def test_plan_run_verify_restore_erase(archived: Shell, session: Session, tmp_path: Path) -> None:
    """The whole life of an archived payload, command by command, with numbers that scripts can read."""
    first, second = _old(session)
    assert answered(archived("retention", "plan", "--json"))["payloads_in_the_next_file"] == 2
    assert _left(session) == 2
    ran = answered(archived("retention", "run", "--yes", "--json"))
    assert (ran["archived"], ran["erased"], ran["failed"]) == (2, 2, None)
    assert _left(session) == 0
    (file,) = answered(archived("retention", "files", "--json"))
    assert (file["state"], file["payloads"]) == ("done", 2)
    assert answered(archived("retention", "verify", "--json")) == {"files": 1, "payloads": 2, "broken": []}
    assert answered(archived("retention", "restore", first, "--reason", "x", "--json")) == {"restored": 1}
    window = ("--from", AT.isoformat(), "--to", (AT + timedelta(days=1)).isoformat())
    assert answered(archived("retention", "restore", *window, "--reason", "x", "--json")) == {"restored": 1}
    assert _left(session) == 2
    erased = answered(archived("retention", "erase", second, "--reason", "x", "--yes", "--json"))
    assert erased["file_written_anew"] == file["name"]
    assert _left(session) == 1
    assert answered(archived("retention", "verify", "--json"))["payloads"] == 1
    for path in (tmp_path / "archive").glob("*.gz"):
        path.write_bytes(b"broken")
    verdict = archived("retention", "verify")
    assert verdict.exit_code == 1
    assert "checksum differs" in verdict.output


def test_what_cannot_be_done_says_why(shell: Shell, archived: Shell, session: Session, deps: Deps) -> None:
    """No archive, half a window, an unknown event: a sentence and a code."""
    (event_id,) = _old(session, 1)
    assert "ARCHIVE_URL is not set" in shell("retention", "verify").output
    assert shell("retention", "restore", event_id, "--reason", "x").exit_code == 1
    assert archived("retention", "restore", "--from", AT.isoformat(), "--reason", "x").exit_code == 2
    assert "there is no event" in archived("retention", "erase", "nobody", "--reason", "x", "--yes").output
    assert "archived before they are erased" in archived("inbox", "prune", "--yes").output
    assert "no payload is archived or erased" in shell("retention", "plan").output
