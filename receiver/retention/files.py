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
from dataclasses import dataclass, field
from datetime import datetime
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
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packing:
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
        from fsspec.core import url_to_fs

        self._fs, self._root = url_to_fs(url)
        self._local = "file" in (self._fs.protocol if isinstance(self._fs.protocol, tuple) else ())

    def write(self, name: str, data: bytes) -> None:
        path = f"{self._root}/{name}"
        try:
            if not self._local:
                self._fs.pipe_file(path, data)
                return
            self._fs.makedirs(self._root, exist_ok=True)
            with open(f"{path}.part", "wb") as out:  # noqa: PTH123 (synced, which fsspec cannot)
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.replace(f"{path}.part", path)  # noqa: PTH105
            folder = os.open(self._root, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise ArchiveBroken("archive_unreachable", f"{name} was not written: {error.strerror}") from error

    def read(self, name: str) -> bytes:
        try:
            data: bytes = self._fs.cat_file(f"{self._root}/{name}")
        except FileNotFoundError as error:
            raise ArchiveBroken("archive_missing", f"there is no {name} in the archive") from error
        except OSError as error:
            raise ArchiveBroken("archive_unreachable", f"{name} was not read: {error.strerror}") from error
        return data

    def delete(self, name: str) -> None:
        try:
            self._fs.rm_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return
        except OSError as error:
            raise ArchiveBroken("archive_unreachable", f"{name} was not deleted: {error.strerror}") from error


def read_checked(archive: Archive, name: str, sha256: str) -> bytes:
    """A file's bytes, proven to be those of the manifest. Raises ArchiveBroken."""
    data = archive.read(name)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ArchiveBroken("archive_changed", f"{name} is not what was written: its checksum differs")
    return data
