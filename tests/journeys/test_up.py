"""`receiver up` as a newcomer meets it: a real process, real children, the printed lines pasted."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests

from receiver.cli.home import read_env

pytestmark = pytest.mark.slow

RECEIVER = [sys.executable, "-c", "from receiver.cli.main import main; main()"]


def until(holds: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until it holds, and return what it gave."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "did not come about in time"
        time.sleep(0.05)
    return found


class Up:
    """One `receiver up` in a home of its own."""

    def __init__(self, home: Path, *words: str, database_url: str | None = None) -> None:
        self.home = home
        self.out = home.parent / f"{home.name}.out"
        names = (
            "DATABASE_URL",
            "RECEIVER_SOURCES",
            "RECEIVER_HOME",
            "SECRET_KEY",
            "RECEIVER_URL",
            "HOST",
            "PORT",
        )
        self.environ = {key: value for key, value in os.environ.items() if key not in names}
        started_with = {**self.environ, "DATABASE_URL": database_url} if database_url else self.environ
        with self.out.open("ab") as out:
            self.process = subprocess.Popen(
                [*RECEIVER, "up", "--home", str(home), *words],
                stdout=out,
                stderr=out,
                env=started_with,
                start_new_session=True,
            )

    def said(self) -> str:
        """Everything printed so far."""
        return self.out.read_text()

    def wait_until_it_is_up(self) -> None:
        """Wait for the last line of the greeting."""
        until(lambda: "Ctrl-C" in self.said() or self.process.poll() is not None, 120)
        assert self.process.poll() is None, self.said()

    def line(self, pattern: str) -> str:
        """The first printed line that matches."""
        return next(line for line in self.said().splitlines() if re.search(pattern, line))

    def receiver(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another `receiver` command of the same home."""
        environ = {**self.environ, "RECEIVER_HOME": str(self.home)}
        return subprocess.run([*RECEIVER, *words], env=environ, capture_output=True, text=True, check=False)

    def order(self, reference: str) -> dict[str, Any]:
        """An order as the shell shows it."""
        shown: dict[str, Any] = json.loads(self.receiver("orders", "show", reference, "--json").stdout)
        return shown

    def children(self) -> dict[str, int]:
        """The process ids of web and worker by name."""
        listed = subprocess.run(
            ["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)], capture_output=True, text=True
        )
        found = {}
        for line in listed.stdout.splitlines():
            pid, _, arguments = line.strip().partition(" ")
            if "gunicorn" in arguments:
                found["web"] = int(pid)
            elif "worker.py" in arguments:
                found["worker"] = int(pid)
        return found

    def postgres(self) -> int:
        """The process id of the embedded server."""
        return int((self.home / "pg" / "postmaster.pid").read_text().splitlines()[0])

    def processes(self) -> list[str]:
        """Every living process whose environment or folder names this home."""
        return [
            entry.name
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and entry.name != str(os.getpid()) and self._is_ours(entry)
        ]

    def _is_ours(self, entry: Path) -> bool:
        with contextlib.suppress(OSError):
            named = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            folder = str((entry / "cwd").readlink())
            return str(self.home).encode() in named or folder.startswith(str(self.home))
        return False

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A running `receiver up` that the tests of this module share."""
    if not Path("/proc").is_dir() or shutil.which("ps") is None:
        pytest.skip("needs Linux' /proc and ps to look at processes")
    started = Up(tmp_path_factory.mktemp("up") / "home", "--port", "0")
    try:
        started.wait_until_it_is_up()
        yield started
    finally:
        started.stop()


def paste(line: str, shell: str) -> dict[str, Any]:
    """What a printed line prints when it is pasted."""
    done = subprocess.run([shell, "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def needs(*programs: str) -> None:
    """Skip, and say why, where a program is not there."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def test_the_printed_lines_work_when_pasted(up: Up) -> None:
    """The curl line gives one receipt however often, the next command moves the order to paid."""
    needs("sh", "bash", "curl", "openssl")
    demo = up.line(r"curl .*/webhooks/demo")
    receipts = {paste(demo, shell)["receipt"] for shell in ("sh", "bash", "sh")}
    assert len(receipts) == 1
    lesson = up.line(r"curl .*/webhooks/lesson")
    assert paste(lesson, "sh") == paste(lesson, "bash")

    registered = re.search(r"orders register (\S+) --amount '([^']+)'", up.said())
    assert registered is not None
    assert up.receiver("orders", "register", registered[1], "--amount", registered[2]).returncode == 0
    until(lambda: up.order(registered[1])["state"] == "paid")


def test_one_changed_byte_is_refused(up: Up) -> None:
    """The printed line with one byte of its body changed after signing: 401, one generic answer."""
    needs("sh", "curl", "openssl")
    line = up.line(r"curl .*/webhooks/demo")
    sound = line.replace("curl -sS", "curl -sS -o /dev/null -w '%{http_code}'")
    forged = sound.replace('--data-binary "$body"', '--data-binary "$body "')
    answers = [subprocess.run(["sh", "-c", text], capture_output=True, text=True) for text in (sound, forged)]

    assert [answer.stdout.strip() for answer in answers] == ["200", "401"]


def test_the_sign_in_link_works_once(up: Up) -> None:
    """The link lets one browser in; the second visitor is not."""
    link = re.search(r"http://\S+/sign-in/\S+", up.said())
    assert link is not None
    with requests.Session() as first, requests.Session() as second:
        first.get(link[0], timeout=10)
        second.get(link[0], timeout=10)
        url = read_env(up.home)["RECEIVER_URL"]
        inside, outside = (s.get(f"{url}/status", timeout=10, allow_redirects=False) for s in (first, second))

    assert inside.status_code == 200
    assert outside.status_code in (302, 303, 401)


def test_secrets_are_kept_from_others_and_from_logs(up: Up) -> None:
    """`env` is 0600, and no log holds a secret of it."""
    kept = read_env(up.home)
    assert stat.S_IMODE((up.home / "env").stat().st_mode) == 0o600
    logs = "".join((up.home / name).read_text() for name in ("web.log", "worker.log"))
    for name in ("SECRET_KEY", "RECEIVER_DEMO_SECRET", "RECEIVER_LESSON_SECRET", "RECEIVER_API_TOKEN"):
        assert kept[name] not in logs


def test_a_second_up_of_the_same_home_refuses(up: Up) -> None:
    """One sentence and code 1; the first one goes on."""
    second = up.receiver("up", "--home", str(up.home))

    assert second.returncode == 1
    assert "already" in second.stderr
    assert up.process.poll() is None


def test_a_busy_port_gives_the_next_one(up: Up, tmp_path: Path) -> None:
    """A second home beside the first takes the next free port and says so."""
    port = int(read_env(up.home)["RECEIVER_URL"].rpartition(":")[2])
    other = Up(tmp_path / "other", "--port", str(port))
    try:
        other.wait_until_it_is_up()
        assert f"port {port} is busy" in other.said()
        url = read_env(other.home)["RECEIVER_URL"]
        assert requests.get(f"{url}/healthz", timeout=10).status_code == 200
    finally:
        assert other.stop(signal.SIGINT) == 0
    assert other.processes() == []


def test_a_triggered_run_ends_as_it_should(up: Up) -> None:
    """Every scenario and fault is answered as expected, and the summary says what became of each."""
    ran = up.receiver(
        "trigger",
        "demo",
        "payment.succeeded",
        "--count",
        "30",
        "--fault",
        "duplicate",
        "--seed",
        "7",
        "--json",
    )
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["answers"], report["events"], report["orders"]) == (
        {"200": 60},
        {"applied": 30},
        {"paid": 30},
    )

    for words, events, orders in (
        (["demo", "dispute.lost"], {"applied": 3}, {"charged_back": 1}),
        (["demo", "payment.captured", "--fault", "reorder"], {"applied": 3}, {"paid": 1}),
        (["demo", "payment.succeeded", "--fault", "wrong-amount"], {"failed (amount)": 1}, {"pending": 1}),
        (["demo", "payment.refunded", "--fault", "illegal"], {"parked (before_capture)": 1}, {"pending": 1}),
        (["demo", "payment.succeeded", "--fault", "tamper"], {}, {"pending": 1}),
        (["lesson", "payment.succeeded", "--fault", "stale"], {}, {"pending": 1}),
        (["demo", "payment.succeeded", "--fault", "future"], {}, {"pending": 1}),
        (["lesson", "payment.voided"], {"applied": 2}, {"pending": 1}),
    ):
        ran = up.receiver("trigger", *words, "--json")
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
        report = json.loads(ran.stdout)
        assert (report["events"], report["orders"]) == (events, orders), words


def test_a_wrong_amount_is_repaired_at_the_shell(up: Up) -> None:
    """Registered wrongly, refused with both amounts, corrected, replayed, paid."""
    up.receiver("orders", "register", "shop/9", "--amount", "10.00 EUR")
    refused = up.receiver(
        "trigger", "demo", "payment.succeeded", "--order", "shop/9", "--fault", "wrong-amount"
    )
    assert "order 10.00 EUR, event 11.00 EUR" in refused.stdout

    words = ["orders", "correct", "shop/9", "--amount", "11.00 EUR", "--reason", "typo", "--yes", "--json"]
    (event,) = json.loads(up.receiver(*words).stdout)["replayable"]
    assert up.receiver("inbox", "retry", event, "--reason", "order corrected").returncode == 0
    until(lambda: up.order("shop/9")["state"] == "paid")


@pytest.mark.field_case(143)
def test_a_lost_callback_is_found_at_the_trials_own_provider(up: Up) -> None:
    """The callback is never sent, the provider's API knows of it, and asking for the order pays it."""
    up.receiver("orders", "register", "shop/10", "--amount", "10.00 EUR")
    lost = up.receiver("trigger", "demo", "payment.succeeded", "--order", "shop/10", "--fault", "lost")
    assert "1 event not sent, but known at the provider: receiver reconcile --order shop/10" in lost.stdout
    assert up.order("shop/10")["state"] == "pending"

    (found,) = json.loads(up.receiver("reconcile", "--order", "shop/10", "--json").stdout)
    assert (found["source"], found["result"], found["posted"]) == ("demo", "posted", 1)
    until(lambda: up.order("shop/10")["state"] == "paid")
    caught = up.receiver("reconcile", "--catch-up", "demo", "--from", "2026-01-01", "--json")
    assert json.loads(caught.stdout)["state"] == "done"


def test_trigger_says_what_was_not_answered_as_expected(up: Up) -> None:
    """A service that knows another secret refuses: the summary says so, and the code is 1."""
    environ = {**up.environ, "RECEIVER_HOME": str(up.home), "RECEIVER_DEMO_SECRET": "dsec_another"}
    words = ["trigger", "demo", "payment.succeeded"]
    ran = subprocess.run([*RECEIVER, *words], env=environ, capture_output=True, text=True, check=False)

    assert ran.returncode == 1
    assert "answered 401, expected 200" in ran.stderr
    away = up.receiver(*words, "--url", "http://127.0.0.1:1")
    assert away.returncode == 1
    assert "no answer from http://127.0.0.1:1" in away.stderr
    assert "Traceback" not in away.stderr


def test_a_killed_child_is_back_by_itself(up: Up) -> None:
    """kill -9 of worker, web and PostgreSQL one after the other: all come back, events go on."""
    for name in ("worker", "web"):
        killed = up.children()[name]
        os.kill(killed, signal.SIGKILL)
        until(lambda name=name, killed=killed: up.children().get(name, killed) != killed)
        assert f"{name} ended (SIGKILL)" in up.said()
    killed = up.postgres()
    os.kill(killed, signal.SIGKILL)
    until(lambda: "PostgreSQL is back" in up.said(), 150)
    until(lambda: up.receiver("check").returncode == 0)

    ran = up.receiver("trigger", "demo", "payment.succeeded", "--count", "5", "--json")
    assert json.loads(ran.stdout)["orders"] == {"paid": 5}


def test_psql_reads_the_view_of_the_inbox(up: Up) -> None:
    """`receiver psql` opens the embedded database; one id stands there once."""
    up.receiver("trigger", "demo", "payment.succeeded", "--seed", "11", "--fault", "duplicate")
    query = "SELECT count(*), count(DISTINCT (source, provider_event_id)) FROM webhook_inbox"
    counted = up.receiver("psql", "-At", "-F", " ", "-c", query)

    assert counted.returncode == 0, counted.stderr
    rows, ids = counted.stdout.split()
    assert rows == ids != "0"


def test_a_database_of_the_users_own_is_taken(tmp_path: Path, database_url: str) -> None:
    """With DATABASE_URL no server is started, and other commands of the home find that database."""
    own = Up(tmp_path / "home", "--port", "0", database_url=database_url)
    try:
        own.wait_until_it_is_up()
        ran = own.receiver("trigger", "demo", "payment.succeeded", "--count", "9", "--rate", "40", "--json")
    finally:
        assert own.stop() == 0
    assert not (own.home / "pg").exists()
    report = json.loads(ran.stdout)
    assert report["orders"] == {"paid": 9}
    assert report["seconds"] >= 8 / 40
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM orders").fetchone() == (9,)


def test_stopping_leaves_no_process_and_the_next_start_finds_everything(tmp_path: Path) -> None:
    """SIGTERM ends all in order; after kill -9 of `up` the next start cleans up; data and secrets stay."""
    home = tmp_path / "home"
    first = Up(home, "--port", "0")
    first.wait_until_it_is_up()
    first.receiver("orders", "register", "kept", "--amount", "1.00 EUR")
    secret = read_env(home)["RECEIVER_DEMO_SECRET"]
    assert first.stop() == 0
    assert first.processes() == []

    second = Up(home, "--port", "0")
    until(lambda: second.said().count("Ctrl-C") == 2, 120)
    assert second.order("kept")["state"] == "pending"
    assert read_env(home)["RECEIVER_DEMO_SECRET"] == secret
    second.process.kill()
    second.process.wait(10)

    third = Up(home, "--port", "0")
    until(lambda: third.said().count("Ctrl-C") == 3, 120)
    assert third.order("kept")["state"] == "pending"
    assert third.stop() == 0
    until(lambda: third.processes() == [])
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(read_env(home)["RECEIVER_UP_DATABASE_URL"], connect_timeout=2)
