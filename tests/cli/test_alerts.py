"""`receiver alerts`: what is wrong, how it was told, and a test over every channel."""

from __future__ import annotations

from receiver.accounts.actions import list_actions
from receiver.alerts.models import AlertNotice
from receiver.deps import Deps
from tests.alerts.mailbox import hook_server, mail_server
from tests.cli.conftest import Shell, answered
from tests.factories import NOW, make_alert


def test_alerts_are_listed_and_acknowledged(shell: Shell, deps: Deps) -> None:
    """Open ones, on demand those that are over too, each with how it was told; an act leaves its row."""
    with deps.sessions.begin() as session:
        alert = make_alert(session)
        make_alert(session, kind="conflict", facts={"count": 2}, closed_at=NOW)
        session.add(
            AlertNotice(
                alert_id=alert.id,
                turn="opened",
                level="page",
                channel="CHAT_URL",
                subject="s",
                body="b",
                created_at=NOW,
                due_at=NOW,
            )
        )

    (row,) = answered(shell("alerts", "list", "--json"))
    assert (row["kind"], row["key"], row["notices"][0]["state"]) == ("silence", "demo", "due")
    assert "waits for CHAT_URL" in shell("alerts", "list").stdout
    assert [row["kind"] for row in answered(shell("alerts", "list", "--all", "--json"))] == [
        "silence",
        "conflict",
    ]
    assert shell("alerts", "acknowledge", str(alert.id), "--reason", "on it").exit_code == 0
    assert answered(shell("alerts", "list", "--json"))[0]["acknowledged_by"].startswith("cli:")
    assert shell("alerts", "acknowledge", "999", "--reason", "on it").exit_code == 1
    with deps.sessions() as session:
        assert list_actions(session)[0].action == "alert.acknowledge"


def test_a_test_goes_over_every_channel(shell: Shell) -> None:
    """Each says whether it took it; one that did not makes code 1, and nothing of its URL is shown."""
    with mail_server() as box, hook_server() as hook:
        env: dict[str, str | None] = {
            "SUPPORT_EMAIL": "support@shop.example",
            "SMTP_URL": f"smtp://127.0.0.1:{box.port}",
            "ALERT_URLS": "env:CHAT_URL",
            "CHAT_URL": hook.url,
        }
        assert shell("alerts", "test", env=env).exit_code == 0
        assert (len(box.mails), len(hook.posts)) == (1, 1)
        hook.status = 403
        result = shell("alerts", "test", "--json", env=env)
    assert result.exit_code == 1
    assert '"taken": false' in result.stdout
    assert "t0ken" not in result.output


def test_no_channel_is_code_1(shell: Shell) -> None:
    """Nobody would be told: a script must notice."""
    assert shell("alerts", "test").exit_code == 1


def test_channels_are_named_never_written_down(shell: Shell) -> None:
    """A literal URL is refused without being repeated; so are a mail address or server that are none."""
    for env in (
        {"ALERT_URLS": "slack://t0ken/a/b"},
        {"SUPPORT_EMAIL": "a@b.example, c@d.example", "SMTP_URL": "smtp://127.0.0.1"},
        {"SUPPORT_EMAIL": "a@b.example", "SMTP_URL": "mail://u:t0ken@host"},
        {"SUPPORT_EMAIL": "a@b.example"},
        {"PUBLIC_URL": "javascript:alert(1)"},
    ):
        result = shell("alerts", "list", env=env)
        assert (result.exit_code, "t0ken" in result.output) == (1, False), env
