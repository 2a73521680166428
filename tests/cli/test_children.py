"""Child processes of `receiver up`, with real ones."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from receiver.cli.children import Backoff, Child, stop_all
from receiver.cli.trial import free_port

SLEEPER = "import time; print('here', flush=True); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"
PARENT = (
    "import subprocess, sys, time; "
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    "print(p.pid, flush=True); time.sleep(600)"
)


def until(holds: Callable[[], object], seconds: float = 20) -> None:
    """Poll until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "did not come about in time"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], Child]]:
    """Start a child that runs a program; it has said a word when this returns."""
    made: list[Child] = []

    def start(program: str) -> Child:
        log = tmp_path / f"{len(made)}.log"
        child = Child("child", [sys.executable, "-c", program], os.environ, log, tmp_path)
        made.append(child)
        child.start()
        until(lambda: log.stat().st_size)
        return child

    yield start
    stop_all(made, hurry=lambda: True)


def pid_of(child: Child) -> int:
    """The process id of a running child."""
    assert child.process is not None
    return child.process.pid


def test_a_child_that_dies_is_started_again(make: Callable[[str], Child]) -> None:
    """The death is said with its signal, the comeback too, and it is another process."""
    child = make(SLEEPER)
    first = pid_of(child)
    assert child.look() is None

    os.kill(first, signal.SIGKILL)
    said: list[str] = []
    until(lambda: said.append(child.look() or "") or "back" in said[-1])
    assert any("SIGKILL" in text for text in said)
    assert pid_of(child) != first


def test_stopping_leaves_nothing_behind(make: Callable[[str], Child]) -> None:
    """Also what a child had started itself, and one that does not listen."""
    parent, deaf = make(PARENT), make(DEAF)
    grandchild = int(parent.log.read_text())
    pids = [pid_of(parent), pid_of(deaf), grandchild]
    hurried = iter([False] * 5)
    stop_all([parent, deaf], hurry=lambda: next(hurried, True))

    until(lambda: not any(runs(pid) for pid in pids))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent was killed")
def test_a_killed_parent_takes_its_children_along(tmp_path: Path) -> None:
    """SIGKILL of `up` itself ends the children too."""
    program = (
        "import os, sys, time; from pathlib import Path; from receiver.cli.children import Child; "
        f"c = Child('c', [sys.executable, '-c', {SLEEPER!r}], os.environ, Path('c.log'), Path('.')); "
        "c.start(); print(c.process.pid, flush=True); time.sleep(600)"
    )
    outer = Child("outer", [sys.executable, "-c", program], os.environ, tmp_path / "outer.log", tmp_path)
    outer.start()
    until(lambda: outer.log.read_text().strip())
    inner = int(outer.log.read_text())
    os.kill(pid_of(outer), signal.SIGKILL)

    until(lambda: not runs(inner))
    stop_all([outer], hurry=lambda: True)


def test_the_back_off_grows_and_starts_anew() -> None:
    """A first death is answered at once, the next ones later and later, a steady life forgives."""
    backoff = Backoff()

    assert [backoff.after(0.1) for _ in range(8)] == [0, 1, 2, 4, 8, 16, 30, 30]
    assert backoff.after(3600) == 0


def test_a_busy_port_gives_the_next_free_one() -> None:
    """A port on which somebody listens is passed over; 0 takes any."""
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        taken = busy.getsockname()[1]

        assert free_port("127.0.0.1", taken) > taken
    assert free_port("127.0.0.1", 0) > 0
