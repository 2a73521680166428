"""Retention in a real process, killed at each step: nothing is lost, nothing is there twice."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from receiver.deps import Deps
from receiver.retention.files import FsspecArchive
from receiver.retention.turn import run
from receiver.retention_settings import RetentionSettings
from tests.conftest import MakeDeps
from tests.retention.gestures import later, old, payloads
from tests.running import ROOT

# The process kills itself at the call of a step: the kernel ends it with everything in its hands.
SCRIPT = """\
import os, signal, sys
from datetime import datetime, timedelta
from receiver.clock import FixedClock
from receiver.deps import Deps
from receiver.retention import archive, turn
from receiver.retention.files import FsspecArchive
from receiver.settings import Settings
from receiver.retention_settings import RetentionSettings
url, folder, now, step = sys.argv[1:]
def dying(real, at):
    calls = [0]
    def act(*more, **named):
        calls[0] += 1
        if calls[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*more, **named)
    return act
archive.FILE_PAYLOADS, archive.ERASE_ROWS = 3, 2
name, at = step.split(":")
for place in (turn, archive, FsspecArchive, os):
    if hasattr(place, name):
        setattr(place, name, dying(getattr(place, name), int(at)))
        break
deps = Deps.build(Settings(url, retention=RetentionSettings(archive_url=folder)),
                  clock=FixedClock(datetime.fromisoformat(now)))
turn.run(deps, FsspecArchive(folder))
print("ended")
"""

STEPS = [
    "write_reserved:1", "fsync:1", "replace:1", "read:1", "_written:1", "erase_written:1", "replace:2",
    "erase_written:2",
]  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step_the_next_run_ends_it(make_deps: MakeDeps, tmp_path: Path, step: str) -> None:
    """After SIGKILL every payload is in the database or in a file; after the next run each is in one file."""
    folder = tmp_path / "archive"
    deps = make_deps(retention=RetentionSettings(archive_url=str(folder)))
    ids = old(deps, 5)
    arguments = [deps.settings.database_url, str(folder), deps.clock.wall().isoformat(), step]
    killed = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    here, lying = payloads(deps), _lying(deps, folder)
    assert all(each in here or str(each) in lying for each in ids)
    later(deps, minutes=20)

    run(deps, FsspecArchive(str(folder)))

    assert payloads(deps) == {}
    assert sorted(_lying(deps, folder)) == sorted(map(str, ids))


def _lying(_deps: Deps, folder: Path) -> list[str]:
    """The events in whole files; what was never renamed into place is no file."""
    paths = sorted(folder.glob("*.gz")) if folder.exists() else []
    lines = [line for path in paths for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [event["id"] for line in lines for event in json.loads(line)["events"]]
