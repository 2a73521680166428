"""The archive: every byte is kept, nothing is there twice, and a death at any step costs nothing."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, text

from receiver.deps import Deps
from receiver.retention import archive as archive_module
from receiver.retention.archive import owed, verify_file
from receiver.retention.files import ArchiveBroken, FsspecArchive, packed, unpacked
from receiver.retention.models import ArchivedEvent, ArchiveFile
from receiver.retention.turn import TurnTaken, run, run_due
from receiver.retention_settings import RetentionSettings
from tests.conftest import MakeDeps

from .gestures import DAY, Breaking, later, old, payloads


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the archive lies."""
    return tmp_path / "archive"


@pytest.fixture
def kept(make_deps: MakeDeps, folder: Path) -> Deps:
    """A process whose archive is a folder."""
    return make_deps(retention=RetentionSettings(archive_url=str(folder)))


def in_archive(folder: Path) -> list[dict[str, Any]]:
    """Every line of every file that is there."""
    lines: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.gz")):
        lines += [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return lines


def files(deps: Deps) -> list[ArchiveFile]:
    """The manifest."""
    with deps.sessions() as session:
        return list(session.scalars(select(ArchiveFile).order_by(ArchiveFile.id)))


def test_old_payloads_are_archived_then_erased(kept: Deps, folder: Path) -> None:
    """Bytes and headers lie in the file to the letter, the database holds them no more, younger ones stay."""
    ids, young = old(kept, 3), old(kept, 2, days=89)
    before = payloads(kept)

    ran = run(kept, FsspecArchive(str(folder)))

    assert (ran.files, ran.archived, ran.erased, ran.failed) == (1, 3, 3, None)
    assert set(payloads(kept)) == set(young)
    with (folder / files(kept)[0].name).open("rb") as file:
        found = {UUID(p.events[0]["id"]): p for p in unpacked(file.read())}
    assert {event_id: p.payload for event_id, p in found.items()} == {each: before[each] for each in ids}
    assert all("v1=0" in str(p.headers) for p in found.values())
    (file_row,) = files(kept)
    data = (folder / file_row.name).read_bytes()
    assert (file_row.state, file_row.payloads, file_row.bytes) == ("done", 3, len(data))
    assert file_row.sha256 == hashlib.sha256(data).hexdigest()
    assert run(kept, FsspecArchive(str(folder))).archived == 0
    (listed,) = json.loads((folder / "manifest.json").read_bytes())["files"]
    assert (listed["name"], listed["sha256"], listed["payloads"]) == (file_row.name, file_row.sha256, 3)


@pytest.mark.parametrize(
    "columns",
    [
        {"state": "pending"},
        {"state": "in_flight"},
        {"state": "failed", "reason": "amount"},
        {"state": "expired", "reason": "order_unknown"},
    ],
)
def test_what_somebody_still_needs_stays(kept: Deps, folder: Path, columns: dict[str, Any]) -> None:
    """A payload whose event has not ended, or is a dead letter that nobody acknowledged, is never old."""
    ids = old(kept, 1, **columns)

    assert run(kept, FsspecArchive(str(folder))).archived == 0
    assert set(payloads(kept)) == set(ids)


def test_without_an_archive_nothing_is_erased_and_none_erases(make_deps: MakeDeps) -> None:
    """An archive that nobody configured keeps everything; `none` erases by age alone, open ones stay."""
    bare, none = make_deps(), make_deps(retention=RetentionSettings(archive_url="none"))
    old(bare, 2)
    (open_one,) = old(bare, 1, state="failed", reason="amount")

    assert run(bare, None).erased == 0
    assert run(none, None).erased == 2
    assert set(payloads(none)) == {open_one}


@pytest.mark.parametrize(
    ("step", "at"), [("before write", 1), ("after write", 1), ("read", 1), ("before write", 2), ("read", 2)]
)
def test_a_death_at_any_step_loses_nothing_and_doubles_nothing(
    kept: Deps, folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, at: int
) -> None:
    """Broken off anywhere, the next run ends with each payload in one file, and none in the database."""
    monkeypatch.setattr(archive_module, "FILE_PAYLOADS", 2)
    ids = old(kept, 5)
    before = payloads(kept)

    broken = run(kept, Breaking(str(folder), step, at))
    assert broken.failed is not None
    here = payloads(kept)
    lying = {line["events"][0]["id"] for line in in_archive(folder)} if folder.exists() else set()
    assert all(each in here or str(each) in lying for each in ids)
    # More became old meanwhile: the file that was reserved is written with its own payloads alone.
    ids += old(kept, 1)
    before |= {each: body for each, body in payloads(kept).items() if each not in before}

    run(kept, FsspecArchive(str(folder)))

    assert payloads(kept) == {}
    lines = in_archive(folder)
    assert sorted(line["events"][0]["id"] for line in lines) == sorted(map(str, ids))
    assert {line["sha256"] for line in lines} == {
        hashlib.sha256(body).hexdigest() for body in before.values()
    }
    assert sorted(path.name for path in folder.glob("*.gz")) == sorted(file.name for file in files(kept))
    for file in files(kept):
        assert verify_file(kept, FsspecArchive(str(folder)), file.id) == file.payloads


def test_a_death_between_archive_and_erase(kept: Deps, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is written and not erased is erased by the next run, and not archived again."""
    old(kept, 3)

    def gone(*_more: object) -> int:
        raise ConnectionError("the process died")

    with monkeypatch.context() as patch:
        patch.setattr("receiver.retention.turn.erase_written", gone)
        with pytest.raises(ConnectionError):
            run(kept, FsspecArchive(str(folder)))
    assert (len(payloads(kept)), len(in_archive(folder))) == (3, 3)
    later(kept, minutes=20)

    ran = run(kept, FsspecArchive(str(folder)))

    assert (ran.archived, ran.erased) == (0, 3)
    assert (payloads(kept), len(in_archive(folder))) == ({}, 3)


def test_a_payload_replayed_between_archive_and_erase_stays_until_it_ended(
    kept: Deps, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event that goes round again keeps its bytes; when it has ended the next run erases them."""
    (event_id,) = old(kept, 1)
    with monkeypatch.context() as patch:
        patch.setattr("receiver.retention.turn.erase_written", lambda *_more: 0)
        run(kept, FsspecArchive(str(folder)))
    _set_state(kept, event_id, "pending")
    assert run(kept, FsspecArchive(str(folder))).erased == 0
    assert set(payloads(kept)) == {event_id}
    _set_state(kept, event_id, "processed")

    assert run(kept, FsspecArchive(str(folder))).erased == 1
    with kept.sessions() as session:
        assert owed(session) == []


def _set_state(deps: Deps, event_id: UUID, state: str) -> None:
    ended = state == "processed"
    with deps.sessions.begin() as session:
        session.execute(
            text(
                "UPDATE webhook_events SET state = :state, outcome = :outcome,"
                " finished_at = CASE WHEN :ended THEN received_at END WHERE id = :id"
            ),
            {"state": state, "outcome": "applied" if ended else None, "ended": ended, "id": event_id},
        )


def test_the_same_payloads_give_the_same_file() -> None:
    """No time and no name of a machine stands in a file, so that a second writing changes nothing."""
    assert packed([]) == packed([])
    assert list(unpacked(packed([]))) == []


def test_one_turn_at_a_time_and_once_an_hour(kept: Deps, folder: Path) -> None:
    """While one runs another finds the turn taken; the duty waits an hour from run to run."""
    old(kept, 1)
    seen: list[str] = []

    class Looking(FsspecArchive):
        def write(self, name: str, data: bytes) -> None:
            with pytest.raises(TurnTaken):
                run(kept, FsspecArchive(str(folder)))
            seen.append(name.rpartition(".")[2])
            super().write(name, data)

    run(kept, Looking(str(folder)))
    assert seen == ["gz", "json"]
    assert run_due(kept) is None
    later(kept, minutes=61)
    assert run_due(kept) is not None


def test_a_file_that_changed_is_never_believed(kept: Deps, folder: Path) -> None:
    """One flipped byte, a missing file: verification names it."""
    old(kept, 2)
    run(kept, FsspecArchive(str(folder)))
    (file,) = files(kept)
    path = folder / file.name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ArchiveBroken, match="checksum differs"):
        verify_file(kept, FsspecArchive(str(folder)), file.id)
    path.unlink()
    with pytest.raises(ArchiveBroken, match="there is no payloads-"):
        verify_file(kept, FsspecArchive(str(folder)), file.id)


def test_a_batch_of_events_shares_its_line(kept: Deps, folder: Path) -> None:
    """One request with several events is one line that names them all."""
    first, second = old(kept, 2)
    with kept.sessions.begin() as session:
        session.execute(
            text(
                "UPDATE webhook_events e SET payload_id = f.payload_id, item = 1 FROM webhook_events f"
                " WHERE f.id = :a AND e.id = :b"
            ),
            {"a": first, "b": second},
        )

    run(kept, FsspecArchive(str(folder)))

    (line,) = in_archive(folder)
    assert [event["id"] for event in line["events"]] == [str(first), str(second)]
    with kept.sessions() as session:
        assert len(session.scalars(select(ArchivedEvent)).all()) == 2


def test_the_look_for_old_payloads_reads_no_young_ones(kept: Deps) -> None:
    """Beside many young payloads the hourly choice goes by an index over their age."""
    with kept.sessions.begin() as session:
        session.execute(
            text(
                "INSERT INTO webhook_payloads (id, payload, headers, received_at)"
                " SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid), '{}', '[]',"
                " CAST(:now AS timestamptz) - n * interval '1 minute' FROM generate_series(1, 20000) AS n"
            ),
            {"now": kept.clock.now()},
        )
        session.execute(text("ANALYZE webhook_payloads"))
        asked = {"now": kept.clock.now(), "age": 90 * DAY, "rows": 2000, "bytes": 1 << 25}
        plan = session.execute(text(f"EXPLAIN {archive_module._CHOOSE}"), asked).scalars().all()

    assert any("ix_webhook_payloads_received_at" in line for line in plan), plan
