"""The manifest beside the files: what the table `archive_files` says, for who has the archive alone.

The table is the truth; this copy is written after each change of the archive, whole.
"""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy import select

from receiver.deps import Deps
from receiver.retention.files import Archive
from receiver.retention.models import ArchiveFile

NAME = "manifest.json"


def write_manifest(deps: Deps, archive: Archive) -> None:
    """Write the manifest: one object for each file that is proven to be there. Raises ArchiveBroken."""
    with deps.sessions() as session:
        rows = session.scalars(
            select(ArchiveFile).where(ArchiveFile.sha256.is_not(None)).order_by(ArchiveFile.id)
        ).all()
    files = [
        {
            "name": row.name,
            "sha256": row.sha256,
            "bytes": row.bytes,
            "payloads": row.payloads,
            "first_received_at": _instant(row.first_received_at),
            "last_received_at": _instant(row.last_received_at),
            "written_at": _instant(row.written_at),
        }
        for row in rows
    ]
    archive.write(NAME, json.dumps({"files": files}, indent=1).encode())


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
