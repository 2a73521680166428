"""The archive's files: JSON lines under gzip, one payload a line, in a folder or wherever fsspec reaches.

A file is there whole or not at all: a folder gets it under another name first, synced to the disk, and an
object store takes an object whole. Reading checks the checksum of the manifest before a line is believed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID


class ArchiveBroken(Exception):
    """A file is missing, or its bytes are not those of the manifest. ``code``: archive_missing,
    archive_changed, archive_unreachable.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class ArchivedPayload:
    """One line: the exact bytes and headers of a request, and the events that it carried.

    ``events``: dicts with id, source, provider_event_id, state, outcome as they were.
    """

    id: UUID
    received_at: datetime
    payload: bytes = field(repr=False)
    headers: list[Any] = field(repr=False)
    events: list[dict[str, Any]]

    def line(self) -> bytes:
        """The line of the file."""
        document = {
            "payload_id": str(self.id),
            "received_at": self.received_at.isoformat(),
            "sha256": hashlib.sha256(self.payload).hexdigest(),
            "events": self.events,
            "headers": self.headers,
            "payload_base64": base64.b64encode(self.payload).decode(),
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def packed(payloads: Iterable[ArchivedPayload]) -> bytes:
    """The bytes of a file: the same for the same payloads."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6, mtime=0) as packing:
        for payload in payloads:
            packing.write(payload.line())
    return out.getvalue()


def unpacked(data: bytes) -> Iterator[ArchivedPayload]:
    """The lines of a file. Raises ArchiveBroken where a payload is not what its own checksum says."""
    for line in gzip.decompress(data).splitlines():
        document = json.loads(line)
        payload = base64.b64decode(document["payload_base64"])
        if hashlib.sha256(payload).hexdigest() != document["sha256"]:
            raise ArchiveBroken(
                "archive_changed", f"payload {document['payload_id']} is not what was archived"
            )
        yield ArchivedPayload(
            UUID(document["payload_id"]),
            datetime.fromisoformat(document["received_at"]),
            payload,
            document["headers"],
            document["events"],
        )


class Archive(Protocol):
    """Where files lie."""

    def write(self, name: str, data: bytes) -> None:
        """Put a file there whole, over one of the same name. Raises ArchiveBroken."""

    def read(self, name: str) -> bytes:
        """The bytes of a file. Raises ArchiveBroken."""

    def delete(self, name: str) -> None:
        """Take a file away; one that is gone is no fault. Raises ArchiveBroken."""


class FsspecArchive:
    """Files under a URL that fsspec knows; a plain path is a folder of this machine."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._found: tuple[Any, str, bool] | None = None

    def write(self, name: str, data: bytes) -> None:
        """Put a file there whole, over one of the same name. Raises ArchiveBroken."""
        with _told(f"{name} was not written"):
            place, root, local = self._place()
            if local:
                _write_synced(root, name, data)
            else:
                place.pipe_file(f"{root}/{name}", data)

    def read(self, name: str) -> bytes:
        """The bytes of a file. Raises ArchiveBroken."""
        with _told(f"{name} was not read"):
            place, root, _ = self._place()
            try:
                data: bytes = place.cat_file(f"{root}/{name}")
            except FileNotFoundError as error:
                raise ArchiveBroken("archive_missing", f"there is no {name} in the archive") from error
        return data

    def delete(self, name: str) -> None:
        """Take a file away; one that is gone is no fault. Raises ArchiveBroken."""
        with _told(f"{name} was not deleted"):
            place, root, _ = self._place()
            with suppress(FileNotFoundError):
                place.rm_file(f"{root}/{name}")

    def _place(self) -> tuple[Any, str, bool]:
        """The file system, the folder in it, whether that is of this machine; opened at first use, so that
        a wrong URL or a library that is not installed is told like an archive that is away.
        """
        if self._found is None:
            from fsspec.core import url_to_fs

            place, root = url_to_fs(self._url)
            protocols = place.protocol if isinstance(place.protocol, tuple) else (place.protocol,)
            self._found = place, root, "file" in protocols
        return self._found


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever the place's library raises becomes ArchiveBroken; its text may hold credentials, so that only
    its kind is told.
    """
    try:
        yield
    except ArchiveBroken:
        raise
    except Exception as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise ArchiveBroken("archive_unreachable", f"{what}: {why}") from error


def _write_synced(root: str, name: str, data: bytes) -> None:
    folder, path = Path(root), Path(root, name)
    folder.mkdir(parents=True, exist_ok=True)
    with Path(f"{path}.part").open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    os.replace(f"{path}.part", path)  # noqa: PTH105
    opened = os.open(root, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read_checked(archive: Archive, name: str, sha256: str) -> bytes:
    """A file's bytes, proven to be those of the manifest. Raises ArchiveBroken."""
    data = archive.read(name)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ArchiveBroken("archive_changed", f"{name} is not what was written: its checksum differs")
    return data
