"""`receiver inbox`: dead letters, replay, pauses and thresholds at the shell."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, text

from receiver.accounts.actions import list_actions
from receiver.deps import Deps
from receiver.inbox.models import WebhookEvent, WebhookPayload
from receiver.queue.pauses import list_pauses
from tests.cli.conftest import Shell, answered
from tests.factories import make_attempt, make_event, make_order


def test_events_are_listed_by_filter(shell: Shell, deps: Deps) -> None:
    """The options are the pages' filter: state, source, code, order and the id's beginning."""
    with deps.sessions.begin() as session:
        make_event(session, provider_event_id="evt_a1", state="failed", reason="amount", order_reference="o1")
        make_event(session, provider_event_id="evt_a2", state="processed", outcome="applied", source="lesson")
        make_event(session, provider_event_id="evt_b1", parked_reason="order_unknown", order_reference="o2")

    def ids(*words: str) -> list[str]:
        return [row["provider_event_id"] for row in answered(shell("inbox", "list", *words, "--json"))]

    assert ids() == ["evt_b1", "evt_a2", "evt_a1"]
    assert ids("--state", "failed") == ids("--code", "amount") == ids("--order", "o1") == ["evt_a1"]
    assert ids("--source", "lesson") == ids("--outcome", "applied") == ["evt_a2"]
    assert ids("--id", "evt_a*") == ["evt_a2", "evt_a1"]
    assert ids("--parked") == ids("--expires-before", "2026-03-05") == ["evt_b1"]
    assert ids("--expires-before", "2026-03-02") == []
    assert ids("--limit", "1") == ["evt_b1"]
    assert "evt_a1" in shell("inbox", "list").stdout


@pytest.mark.parametrize(
    "words", [["--from", "yesterday"], ["--id", "x" * 300], ["--order", "a\0"], ["--state", "x"]]
)
def test_a_filter_that_cannot_be_asked_is_code_2(shell: Shell, words: list[str]) -> None:
    """A sentence and code 2, never a traceback."""
    result = shell("inbox", "list", *words)

    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_one_event_is_shown_by_receipt_and_by_the_providers_id(shell: Shell, deps: Deps) -> None:
    """Both ids find it; one that several sources have must be named with its source."""
    with deps.sessions.begin() as session:
        event = make_event(session, provider_event_id="evt_1", state="failed", reason="amount")
        make_attempt(session, event)
        make_event(session, provider_event_id="evt_2", source="demo")
        make_event(session, provider_event_id="evt_2", source="lesson")

    by_receipt = answered(shell("inbox", "show", str(event.id), "--json"))
    by_provider = answered(shell("inbox", "show", "evt_1", "--json"))
    assert by_receipt == by_provider
    assert len(by_receipt["attempts_made"]) == 1
    assert shell("inbox", "show", "evt_1").exit_code == 0
    assert "demo:evt_2, lesson:evt_2" in shell("inbox", "show", "evt_2").stderr
    assert answered(shell("inbox", "show", "lesson:evt_2", "--json"))["source"] == "lesson"
    for unknown in ("evt_9", "\0", "0190b2f4-0000-7000-8000-000000000000"):
        assert shell("inbox", "show", unknown).exit_code == 1


def test_the_payload_is_written_byte_for_byte(shell: Shell, deps: Deps) -> None:
    """`show --payload` gives the exact bytes, whatever they are."""
    body = b'{"id": "evt_1",\r\n "x": "\xc3\xa9"}\n'
    with deps.sessions.begin() as session:
        make_event(session, provider_event_id="evt_1", payload=body)

    assert shell("inbox", "show", "evt_1", "--payload").stdout_bytes == body


def test_a_failed_event_goes_round_again(shell: Shell, deps: Deps) -> None:
    """Retry makes it pending with a reason kept; --dry-run says what would happen and does nothing."""
    with deps.sessions.begin() as session:
        make_order(session, reference="ord_1", amount_minor=2500)
        event = make_event(
            session, state="failed", reason="amount", order_reference="ord_1", amount_minor=2500
        )

    would = answered(shell("inbox", "retry", str(event.id), "--dry-run", "--json"))
    assert "pending → paid" in would[str(event.id)]
    with deps.sessions() as session:
        assert session.get_one(WebhookEvent, event.id).state == "failed"

    done = answered(shell("inbox", "retry", str(event.id), "--reason", "corrected", "--json"))
    assert done == {"done": [str(event.id)], "refused": {}}
    with deps.sessions() as session:
        row = session.get_one(WebhookEvent, event.id)
        assert (row.state, row.replays, row.attempts) == ("pending", 1, 0)
        assert [(a.action, a.reason) for a in list_actions(session)] == [("event.replay", "corrected")]


def test_retry_all_takes_the_filtered_dead_letters(shell: Shell, deps: Deps) -> None:
    """`all` counts first and asks; acknowledged ones stay where they are."""
    with deps.sessions.begin() as session:
        for reason in ("amount", "amount", "currency"):
            make_event(session, state="failed", reason=reason)
        make_event(session, state="failed", reason="amount", acknowledged_at=deps.clock.now())

    words = ["inbox", "retry", "all", "--code", "amount", "--reason", "corrected"]
    assert shell(*words, input="n\n").exit_code == 1
    assert len(answered(shell(*words, "--yes", "--json"))["done"]) == 2
    with deps.sessions() as session:
        pending = session.scalars(select(WebhookEvent).where(text("state = 'pending'"))).all()
    assert len(pending) == 2


def test_a_pending_event_is_not_replayed(shell: Shell, deps: Deps) -> None:
    """It goes round by itself: refused with a sentence, code 1."""
    with deps.sessions.begin() as session:
        make_event(session, provider_event_id="evt_1")

    result = shell("inbox", "retry", "evt_1", "--reason", "x")
    assert result.exit_code == 1
    assert "goes round by itself" in result.stderr


def test_forget_and_flush_acknowledge_and_keep_the_key(shell: Shell, deps: Deps) -> None:
    """Dead letters leave the list, payloads go if asked, the rows stay as keys."""
    with deps.sessions.begin() as session:
        first, *_ = [make_event(session, state="failed", reason="amount") for _ in range(3)]

    assert len(answered(shell("inbox", "failed", "--json"))) == 3
    shell("inbox", "forget", str(first.id), "--erase", "--reason", "a test", "--yes")
    assert len(answered(shell("inbox", "failed", "--json"))) == 2
    assert answered(shell("inbox", "flush", "--reason", "clean", "--yes", "--json")) == {"flushed": 2}
    assert answered(shell("inbox", "failed", "--json")) == []
    assert len(answered(shell("inbox", "failed", "--acknowledged", "--json"))) == 3
    with deps.sessions() as session:
        assert len(session.scalars(select(WebhookPayload)).all()) == 2
    assert shell("inbox", "show", str(first.id), "--payload").exit_code == 1


def test_prune_erases_old_payloads_of_ended_events_alone(shell: Shell, deps: Deps) -> None:
    """Pending ones keep theirs however old; every row stays."""
    with deps.sessions.begin() as session:
        long_ago = session.execute(text("SELECT now() - interval '100 days'")).scalar_one()
        make_event(session, state="processed", outcome="applied", at=long_ago)
        make_event(session, state="pending", at=long_ago)
        make_event(session, state="processed", outcome="applied", at=long_ago + timedelta(days=50))

    assert answered(shell("inbox", "prune", "--yes", "--json")) == {"erased": 1}
    assert len(answered(shell("inbox", "list", "--json"))) == 3


def test_a_source_is_paused_and_resumed(shell: Shell, deps: Deps) -> None:
    """A pause is a row with a reason; twice is refused, as is a source that is not configured."""
    with deps.sessions.begin() as session:
        make_event(session)

    assert shell("inbox", "pause", "demo", "--reason", "provider drill").exit_code == 0
    with deps.sessions() as session:
        assert [(p.key, p.reason) for p in list_pauses(session)] == [("demo", "provider drill")]
    assert "paused already" in shell("inbox", "pause", "demo", "--reason", "again").stderr
    assert "no source dmeo" in shell("inbox", "pause", "dmeo", "--reason", "x").stderr
    assert answered(shell("inbox", "resume", "demo", "--json")) == {"source": "demo", "held": 1}
    assert shell("inbox", "resume", "demo").exit_code == 1
    with deps.sessions() as session:
        assert [a.action for a in list_actions(session)] == ["source.resume", "source.pause"]


def test_monitor_ends_with_1_when_a_threshold_is_passed(shell: Shell, deps: Deps) -> None:
    """Backlog, age and dead letters each have a threshold; held events do not count as backlog."""
    with deps.sessions.begin() as session:
        make_event(session)
        make_event(session, state="failed", reason="amount")

    assert shell("inbox", "monitor").exit_code == 0
    assert shell("inbox", "monitor", "--max-pending", "0").exit_code == 1
    assert shell("inbox", "monitor", "--max-age", "60").exit_code == 1
    assert shell("inbox", "monitor", "--max-failed", "0", "--json").exit_code == 1
    assert shell("inbox", "monitor", "--max-expiring", "0").exit_code == 1
    shell("inbox", "pause", "demo", "--reason", "drill")
    assert answered(shell("inbox", "monitor", "--max-pending", "0", "--json"))["held"] == 1
