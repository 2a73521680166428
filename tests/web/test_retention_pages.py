"""The page of the archive, and restore and erase as buttons."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from receiver.app import create_app
from receiver.deps import Deps
from receiver.retention.files import FsspecArchive
from receiver.retention.turn import run
from receiver.retention_settings import RetentionSettings
from tests.conftest import MakeDeps
from tests.retention.gestures import old, payloads
from tests.web.conftest import SignIn, post


@pytest.fixture
def deps(make_deps: MakeDeps, tmp_path: Path) -> Deps:
    """A process whose archive is a folder."""
    return make_deps(retention=RetentionSettings(archive_url=str(tmp_path / "archive")))


def test_the_archive_is_shown_and_a_payload_comes_back(
    sign_in: SignIn, deps: Deps, session: Session, tmp_path: Path
) -> None:
    """Files with their checksums; an archived payload says where it lies, is restored, and erased."""
    event_id, other = old(deps, 2)
    admin = sign_in("admin")
    page = admin.get("/retention").get_data(as_text=True)
    assert "Nothing is archived yet." in page
    assert "Payloads are archived after 90 days" in page
    before = payloads(deps)[event_id]

    run(deps, FsspecArchive(str(tmp_path / "archive")))

    page = admin.get("/retention").get_data(as_text=True)
    assert "2 payloads in 1 files" in page
    assert "sha256" in page
    shown = admin.get(f"/events/{event_id}").get_data(as_text=True)
    assert "Archived in" in shown
    assert admin.get(f"/events/{event_id}/payload").status_code == 404
    path = f"/events/{event_id}"
    assert post(admin, f"{path}/restore", path, reason="dispute").status_code == 303
    assert "it stays for a week" in admin.get(path).get_data(as_text=True)
    assert admin.get(f"{path}/payload").get_data() == before

    assert post(admin, f"{path}/erase", path, reason="asked for").status_code == 303
    page = admin.get(path).get_data(as_text=True)
    assert "Erased for good" in page
    assert post(admin, f"{path}/restore", "/account", reason="again").status_code == 303
    assert "Not restored" in admin.get(path).get_data(as_text=True)
    assert set(payloads(deps)) == set()
    assert "Archived in" in admin.get(f"/events/{other}").get_data(as_text=True)


def test_only_an_admin_restores_and_erases(sign_in: SignIn, deps: Deps, session: Session) -> None:
    """An operator sees the page and no button; the acts are refused."""
    (event_id,) = old(deps, 1)
    operator = sign_in("operator")
    path = f"/events/{event_id}"
    assert operator.get("/retention").status_code == 200
    assert "Erase for good" not in operator.get(path).get_data(as_text=True)
    for act in ("restore", "erase"):
        assert post(operator, f"{path}/{act}", "/account", reason="x").status_code == 403
    assert set(payloads(deps)) == {event_id}


def test_an_archive_that_is_away_is_said(
    sign_in: SignIn, deps: Deps, session: Session, tmp_path: Path
) -> None:
    """The file is gone: restore says so, and nothing else happens."""
    (event_id,) = old(deps, 1)
    run(deps, FsspecArchive(str(tmp_path / "archive")))
    for file in (tmp_path / "archive").glob("*.gz"):
        file.unlink()
    admin, path = sign_in("admin"), f"/events/{event_id}"
    post(admin, f"{path}/restore", path, reason="dispute")
    assert "there is no payloads-" in admin.get(path).get_data(as_text=True)


def test_without_an_archive_the_page_says_what_happens(sign_in: SignIn, make_deps: MakeDeps) -> None:
    """Nothing is erased by itself, and it says why."""
    bare = make_deps()
    app = create_app(bare)
    from tests.factories import make_user

    with bare.sessions.begin() as session:
        make_user(session, name="vera", role="viewer")
        from datetime import timedelta

        from receiver.accounts.users import issue_sign_in_link
        from tests.conftest import NOW

        issue_sign_in_link(session, "vera", timedelta(minutes=10), "link-of-vera", now=NOW)
    client = app.test_client()
    client.get("/sign-in/link-of-vera")
    assert "No payload is erased by itself" in client.get("/retention").get_data(as_text=True)
