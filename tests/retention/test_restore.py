"""Restore and erase: an archived payload comes back as it was, and one erased on request never does."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from receiver.accounts.actions import list_actions
from receiver.deps import Deps
from receiver.inbox.models import WebhookConflict, WebhookEvent, WebhookFetch
from receiver.inbox.replay import replay_event
from receiver.retention.archive import RESTORED_STAYS, owed, verify_file
from receiver.retention.files import ArchiveBroken, FsspecArchive
from receiver.retention.models import ArchiveFile
from receiver.retention.restore import NotRestorable, erase_payload, restore_event, restore_window
from receiver.retention.turn import run
from receiver.retention_settings import RetentionSettings
from tests.conftest import MakeDeps
from tests.factories import NOW, make_conflict, make_event
from tests.inbox.gestures import ledger, outcome, register, work

from .gestures import DAY, Breaking, later, old, payloads

WHY = {"actor": "ada", "reason": "asked for"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the archive lies."""
    return tmp_path / "archive"


@pytest.fixture
def kept(make_deps: MakeDeps, folder: Path) -> Deps:
    """A process whose archive is a folder."""
    return make_deps(retention=RetentionSettings(archive_url=str(folder)))


def test_one_event_comes_back_byte_for_byte_and_goes_again_after_a_week(kept: Deps, folder: Path) -> None:
    """Restored it stands as it came, with an audit row; it stays a week, then it is erased again."""
    ids = old(kept, 3)
    before = payloads(kept)
    archive = FsspecArchive(str(folder))
    run(kept, archive)

    restore_event(kept, archive, ids[1], **WHY)

    assert payloads(kept) == {ids[1]: before[ids[1]]}
    with kept.sessions() as session:
        assert hashlib.sha256(before[ids[1]]).digest() == session.get_one(WebhookEvent, ids[1]).payload_sha256
        assert [act.action for act in list_actions(session)] == ["payload.restore"]
    assert run(kept, archive).erased == 0
    later(kept, seconds=RESTORED_STAYS.total_seconds() + 1)
    assert run(kept, archive).erased == 1
    restore_event(kept, archive, ids[1], **WHY)
    assert set(payloads(kept)) == {ids[1]}


def test_a_restored_event_replays_as_a_repeat(kept: Deps, folder: Path) -> None:
    """An applied payment that an admin sends round again after its restore changes nothing."""
    register(kept, "ord_1")
    with kept.sessions.begin() as session:
        event_id = make_event(session, transaction_id="tx_1", effect_id="tx_1").id
    work(kept)
    later(kept, days=91)
    archive = FsspecArchive(str(folder))
    run(kept, archive)
    restore_event(kept, archive, event_id, **WHY)
    with kept.sessions.begin() as session:
        version = session.get_one(WebhookEvent, event_id).row_version
        now = kept.clock.now()
        replay_event(session, event_id, row_version=version, actor="ada", reason="look", admin=True, now=now)
    work(kept)

    assert outcome(kept, event_id)[:2] == ("processed", "repeat")
    assert ledger(kept, "ord_1") == [("capture", 2500)]


def test_a_window_comes_back(kept: Deps, folder: Path) -> None:
    """From an instant to another: what was received in between, from every file that holds some."""
    first, second, third = old(kept, 1, days=120), old(kept, 2, days=100), old(kept, 1, days=95)
    archive = FsspecArchive(str(folder))
    run(kept, archive)

    assert restore_window(kept, archive, NOW - 110 * DAY, NOW - 95 * DAY, **WHY) == 2
    assert set(payloads(kept)) == set(second)
    assert restore_window(kept, archive, NOW - 110 * DAY, NOW - 95 * DAY, **WHY) == 0
    assert {*first, *third}.isdisjoint(payloads(kept))


def test_what_cannot_come_back_says_why(kept: Deps, folder: Path) -> None:
    """Unknown, still there, never archived, erased for good: each has its code."""
    (here,) = old(kept, 1, days=1)
    (bare,) = old(kept, 1, days=1)
    archive = FsspecArchive(str(folder))
    erase_payload(kept, archive, bare, **WHY)
    for event_id, code in (
        (kept.dice.new_id(), "event_unknown"),
        (here, "payload_there"),
        (bare, "not_archived"),
    ):
        with pytest.raises(NotRestorable) as refused:
            restore_event(kept, archive, event_id, **WHY)
        assert refused.value.code == code


def test_a_changed_file_restores_nothing(kept: Deps, folder: Path) -> None:
    """A file whose checksum differs is not believed, and the event stays as it is."""
    (event_id,) = old(kept, 1)
    archive = FsspecArchive(str(folder))
    run(kept, archive)
    (path,) = folder.glob("*.gz")
    path.write_bytes(gzip.compress(b"{}"))

    with pytest.raises(ArchiveBroken, match="checksum differs"):
        restore_event(kept, archive, event_id, **WHY)
    assert payloads(kept) == {}


def lying(folder: Path) -> set[str]:
    """The events whose payloads lie in the archive."""
    lines = [line for path in folder.glob("*.gz") for line in gzip.decompress(path.read_bytes()).splitlines()]
    return {event["id"] for line in lines for event in json.loads(line)["events"]}


def test_erased_on_request_it_is_nowhere(kept: Deps, folder: Path) -> None:
    """Database, what was read back, other bodies, and the archive: the file is written anew without it, the
    old one is gone; its key stays, and it cannot be restored.
    """
    ids = old(kept, 3)
    with kept.sessions.begin() as session:
        session.add(WebhookFetch(event_id=ids[0], fetched_at=NOW, status=200, body=b"{}"))
        make_conflict(session, session.get_one(WebhookEvent, ids[0]))
    archive = FsspecArchive(str(folder))
    run(kept, archive)

    erase_payload(kept, archive, ids[0], **WHY)

    assert lying(folder) == {str(ids[1]), str(ids[2])}
    assert len(list(folder.glob("*.gz"))) == 1
    with kept.sessions() as session:
        assert session.scalars(select(WebhookFetch.body)).all() == [None]
        assert session.scalars(select(WebhookConflict.payload)).all() == [None]
        assert session.get(WebhookEvent, ids[0]) is not None
        assert [act.action for act in list_actions(session)] == ["payload.erase"]
        file = session.scalars(select(ArchiveFile)).one()
        assert (file.version, file.payloads, file.rewrite, file.previous_name) == (2, 2, False, None)
    with pytest.raises(NotRestorable) as refused:
        restore_event(kept, archive, ids[0], **WHY)
    assert refused.value.code == "payload_erased"
    restore_event(kept, archive, ids[1], **WHY)


@pytest.mark.parametrize("step", ["before write", "after write", "read", "before delete"])
def test_an_erasure_that_broke_off_is_finished_by_the_next_run(kept: Deps, folder: Path, step: str) -> None:
    """Wherever it broke, the wish is kept in mind: the next run leaves no file that holds the payload."""
    ids = old(kept, 2)
    run(kept, FsspecArchive(str(folder)))
    with pytest.raises(ArchiveBroken):
        erase_payload(kept, Breaking(str(folder), step), ids[0], **WHY)
    with kept.sessions() as session:
        assert (1, "rewrite") in owed(session)

    run(kept, FsspecArchive(str(folder)))

    assert lying(folder) == {str(ids[1])}
    assert len(list(folder.glob("*.gz"))) == 1


def test_erased_before_it_was_archived_it_never_is(kept: Deps, folder: Path) -> None:
    """A payload erased while its file is reserved and not written is not in the file."""
    ids = old(kept, 2)
    run(kept, Breaking(str(folder), "before write"))
    with pytest.raises(ArchiveBroken):
        erase_payload(kept, Breaking(str(folder), "read"), ids[0], **WHY)
    run(kept, FsspecArchive(str(folder)))

    assert lying(folder) == {str(ids[1])}


def test_erased_twice_the_second_changes_nothing(kept: Deps, folder: Path) -> None:
    """A file whose only payload is erased again stays as it is, and later runs go on."""
    (event_id,) = old(kept, 1)
    archive = FsspecArchive(str(folder))
    run(kept, archive)
    erase_payload(kept, archive, event_id, **WHY)
    before = sorted(folder.glob("*.gz"))

    erase_payload(kept, archive, event_id, **WHY)

    assert sorted(folder.glob("*.gz")) == before
    old(kept, 1)
    ran = run(kept, archive)
    assert (ran.archived, ran.failed) == (1, None)


def test_erased_one_by_one_the_file_stays_whole(kept: Deps, folder: Path) -> None:
    """Each erasure writes the file anew under a name of its own, and what is left can be restored."""
    ids = old(kept, 3)
    archive = FsspecArchive(str(folder))
    run(kept, archive)

    for version, event_id in enumerate(ids[:2], start=2):
        erase_payload(kept, archive, event_id, **WHY)
        (path,) = folder.glob("*.gz")
        assert path.name.endswith(f"-v{version}.jsonl.gz")
        assert path.name.count("-v") == 1
    restore_event(kept, archive, ids[2], **WHY)
    assert set(payloads(kept)) == {ids[2]}


class Meanwhile(FsspecArchive):
    """An archive in a folder during whose first writing something happens."""

    def __init__(self, url: str, act: Callable[[], None]) -> None:
        super().__init__(url)
        self.act: Callable[[], None] | None = act

    def write(self, name: str, data: bytes) -> None:
        act, self.act = self.act, None
        if act is not None:
            act()
        super().write(name, data)


@pytest.mark.parametrize("archived", [False, True], ids=["first writing", "rewriting"])
def test_erased_while_its_file_is_being_written(kept: Deps, folder: Path, archived: bool) -> None:
    """Asked for while another writes the file, an erasure waits for the next run and is not lost; what the
    manifest says of the file holds all the while.
    """
    ids = old(kept, 3)
    archive = FsspecArchive(str(folder))

    def erase() -> None:
        with pytest.raises(ArchiveBroken) as broken:
            erase_payload(kept, archive, ids[0], **WHY)
        assert broken.value.code == "archive_busy"

    if archived:
        run(kept, archive)
        erase_payload(kept, Meanwhile(str(folder), erase), ids[1], **WHY)
    else:
        run(kept, Meanwhile(str(folder), erase))
    assert verify_file(kept, archive, 1) in (2, 3)
    with kept.sessions() as session:
        assert (1, "rewrite") in owed(session)

    run(kept, archive)

    assert lying(folder) == {str(each) for each in ids[1 + archived :]}
    with kept.sessions() as session:
        assert owed(session) == []
    restore_event(kept, archive, ids[2], **WHY)


def test_a_wish_to_erase_outlives_the_age_of_its_key(kept: Deps, folder: Path) -> None:
    """While the archive cannot be reached the key stays, since the wish would go with it."""
    ids = old(kept, 2)
    run(kept, FsspecArchive(str(folder)))
    with pytest.raises(ArchiveBroken):
        erase_payload(kept, Breaking(str(folder), "read"), ids[0], **WHY)
    later(kept, days=401)

    assert run(kept, Breaking(str(folder), "read")).forgotten == {"keys": 1}
    run(kept, FsspecArchive(str(folder)))

    assert str(ids[0]) not in lying(folder)
    with kept.sessions() as session:
        assert session.scalars(select(WebhookEvent.id)).all() == []


def test_a_damaged_file_holds_up_no_other(kept: Deps, folder: Path) -> None:
    """A file that is gone and should be written anew is told; newer payloads are archived all the same."""
    ids = old(kept, 2)
    run(kept, FsspecArchive(str(folder)))
    (path,) = folder.glob("*.gz")
    path.unlink()
    with pytest.raises(ArchiveBroken):
        erase_payload(kept, FsspecArchive(str(folder)), ids[0], **WHY)
    newer = old(kept, 1)

    ran = run(kept, FsspecArchive(str(folder)))

    assert (ran.archived, lying(folder)) == (1, {str(newer[0])})
    assert ran.failed is not None
    assert ran.failed.startswith("archive_missing")


def test_what_was_restored_is_not_erased_again_when_its_file_is_gone(kept: Deps, folder: Path) -> None:
    """A week after a restore the file is read before the payload goes: it may be the last copy."""
    (event_id,) = old(kept, 1)
    archive = FsspecArchive(str(folder))
    run(kept, archive)
    restore_event(kept, archive, event_id, **WHY)
    for path in folder.glob("*.gz"):
        path.unlink()
    later(kept, days=8)

    ran = run(kept, archive)

    assert (ran.erased, set(payloads(kept))) == (0, {event_id})
    assert "archive_missing" in str(ran)


@pytest.mark.parametrize("url", ["nosuch://bucket/place", "file:///proc/nowhere/archive"])
def test_a_place_that_cannot_be_opened_is_told(make_deps: MakeDeps, url: str) -> None:
    """An unknown scheme or a folder that cannot be made stops no run: nothing is erased, and it is told."""
    deps = make_deps(retention=RetentionSettings(archive_url=url))
    ids = old(deps, 1)

    ran = run(deps, FsspecArchive(url))

    assert set(payloads(deps)) == set(ids)
    assert ran.failed is not None
    assert ran.failed.startswith("archive_unreachable")


def test_a_password_in_the_archives_url_is_never_shown() -> None:
    """Pages and the shell show where the archive lies, without the credentials in its URL."""
    settings = RetentionSettings(archive_url="ftp://ada:s3cret@files.example/inbox?token=s3cret")

    assert settings.archive_shown == "ftp://files.example/inbox"
    assert "s3cret" not in repr(settings)
