"""Real processes over a real mail server: many look, and each thing is told once."""

from __future__ import annotations

import psycopg
import pytest

from tests.alerts.mailbox import Mailbox, mail_server
from tests.posting import demo
from tests.running import rows, run_web, run_worker, wait_for

HISTORY = """\
INSERT INTO inbox_minutes (source, minute, result, count)
SELECT 'demo', date_trunc('minute', now()) - n * interval '1 minute', 'new', 2
FROM generate_series(40, 3 * 1440) AS n"""


def _about(box: Mailbox, text: str) -> list[str]:
    return [subject for subject in box.subjects if text in subject]


@pytest.mark.field_case(122)
def test_each_thing_is_told_once_by_any_number_of_processes(database_url: str) -> None:
    """No worker is left: one of the web's processes says so. Two workers come: that is over, and a source
    gone silent is told; it speaks again, and one recovery is told.
    """
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(HISTORY)
    with mail_server() as box:
        environment = {
            "SUPPORT_EMAIL": "support@shop.example",
            "SMTP_URL": f"smtp://127.0.0.1:{box.port}",
            "WORKER_STALE_SECONDS": "5",
            "ALERT_LOOK_SECONDS": "0.3",
            "ALERT_RECOVERY_SECONDS": "0",
        }
        with run_web(database_url, environment=environment) as web:
            wait_for(lambda: _about(box, "no worker"), 30, "the web told that no worker is alive")
            with (
                run_worker(database_url, environment=environment),
                run_worker(database_url, environment=environment),
            ):
                wait_for(lambda: _about(box, "over: no worker"), 20, "a worker's coming was told")
                wait_for(lambda: _about(box, "demo: nothing received"), 20, "the silence was told")
                body = b'{"id":"evt_back","type":"balance.available"}'
                assert web.post("demo", body, demo(body)).status_code == 200
                wait_for(lambda: _about(box, "over: demo: nothing received"), 20, "the recovery was told")
        subjects = sorted(box.subjects)
    assert subjects == sorted(
        [
            "[Receiver] URGENT no worker is alive: events are stored, and nothing is applied",
            "[Receiver] over: no worker is alive: events are stored, and nothing is applied",
            *_about(box, "URGENT demo: nothing received since ")[:1],
            *_about(box, "over: demo: nothing received since ")[:1],
        ]
    )
    told = rows(
        database_url, "SELECT a.kind, n.turn, n.state FROM alerts a JOIN alert_notices n ON n.alert_id = a.id"
    )
    assert sorted((row["kind"], row["turn"], row["state"]) for row in told) == [
        ("no_worker", "opened", "told"),
        ("no_worker", "recovered", "told"),
        ("silence", "opened", "told"),
        ("silence", "recovered", "told"),
    ]
