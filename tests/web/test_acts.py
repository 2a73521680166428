"""What people do on the pages: each act is done once, recorded, and refused with a sentence."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from receiver.accounts.actions import list_actions
from receiver.inbox.models import WebhookEvent
from receiver.orders.models import Order
from receiver.queue.pauses import list_pauses
from tests.factories import make_event, make_ledger_entry, make_order, make_pause
from tests.web.conftest import SignIn, fresh, post


def _text(response: object) -> str:
    return response.get_data(as_text=True)  # type: ignore[attr-defined]


def _refused(session: Session, **columns: object) -> WebhookEvent:
    event = make_event(session, state="failed", order_reference="ord_r", amount_minor=2600, **columns)
    session.commit()
    return event


def test_a_replay_sends_the_event_round_again(sign_in: SignIn, session: Session) -> None:
    """303, a sentence, the row pending, and who did it and why."""
    event = _refused(session)
    client = sign_in("operator", name="olga")
    path = f"/events/{event.id}"

    response = post(client, f"{path}/replay", path, row_version="1", reason="order corrected")

    assert (response.status_code, response.headers["Location"]) == (303, path)
    assert "Sent round again" in _text(client.get(path))
    assert (fresh(session, event).state, event.replays) == ("pending", 1)
    act = list_actions(session)[0]
    assert (act.actor, act.action, act.target, act.reason) == (
        "olga",
        "event.replay",
        f"event:{event.id}",
        "order corrected",
    )


@pytest.mark.field_case(106)
def test_a_stale_page_replays_nothing(sign_in: SignIn, session: Session) -> None:
    """The row changed after the page was opened: refused with a sentence, and no act is recorded."""
    event = _refused(session, row_version=7)
    client = sign_in("admin")
    path = f"/events/{event.id}"

    response = post(client, f"{path}/replay", path, row_version="6", reason="again")

    assert response.status_code == 303
    assert "the row changed" in _text(client.get(path))
    assert fresh(session, event).state == "failed"
    assert [act.action for act in list_actions(session)] == ["user.sign_in_link"]


def test_only_an_admin_replays_a_processed_event(sign_in: SignIn, session: Session) -> None:
    """An operator is told so; the admin's replay is done."""
    event = make_event(session, state="processed")
    session.commit()
    path = f"/events/{event.id}"
    client = sign_in("operator")
    assert "Needs the role admin" in _text(client.get(path))
    post(client, f"{path}/replay", path, row_version="1", reason="x")
    assert "Not replayed: only an admin" in _text(client.get(path))
    admin = sign_in("admin")
    post(admin, f"{path}/replay", path, row_version="1", reason="x")
    assert fresh(session, event).state == "pending"


def test_a_pending_event_offers_no_replay(sign_in: SignIn, session: Session) -> None:
    """It goes round by itself; a post anyway is refused with a sentence."""
    event = make_event(session)
    session.commit()
    path = f"/events/{event.id}"
    client = sign_in("admin")
    assert "Send it round again" not in _text(client.get(path))
    post(client, f"{path}/replay", path, row_version="1", reason="x")
    assert "goes round by itself" in _text(client.get(path))


@pytest.mark.parametrize("version", ["", "x", "-1", "9" * 20, "１"])
def test_a_bad_version_is_a_400(sign_in: SignIn, session: Session, version: str) -> None:
    """Never a 500."""
    event = _refused(session)
    client = sign_in("operator")
    response = post(client, f"/events/{event.id}/replay", row_version=version, reason="x")
    assert response.status_code == 400


def test_the_event_page_says_what_a_replay_would_do(sign_in: SignIn, session: Session) -> None:
    """Before: the same refusal with both amounts. After the correction: it would be applied."""
    order = make_order(session, reference="ord_r")
    event = _refused(session)
    client = sign_in("admin")
    assert "order 25.00 EUR, event 26.00 EUR" in _text(client.get(f"/events/{event.id}"))

    response = post(
        client,
        "/order/correct",
        "/orders/ord_r",
        reference="ord_r",
        amount="26.00",
        currency="eur",
        reason="registered too low",
    )

    assert (response.status_code, response.headers["Location"]) == (303, "/orders/ord_r")
    assert "Corrected. 1 refused event may be replayed" in _text(client.get("/orders/ord_r"))
    assert fresh(session, order).amount_minor == 2600
    assert "pending → paid" in _text(client.get(f"/events/{event.id}"))
    assert [act.action for act in list_actions(session, limit=1)] == ["order.correct"]


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"amount": "18.6001", "currency": "KWD"}, "Not corrected"),
        ({"amount": "-1", "currency": "EUR"}, "Not corrected"),
        ({"amount": "1.00", "currency": "XXZ"}, "Not corrected"),
        ({"amount": "", "currency": ""}, "Not corrected"),
        ({"amount": "25.00", "currency": "EUR"}, "has these facts already"),
        ({"amount": "9" * 30, "currency": "EUR"}, "Not corrected"),
    ],
)
def test_a_correction_that_cannot_be_is_a_sentence(
    sign_in: SignIn, session: Session, fields: dict[str, str], sentence: str
) -> None:
    """The order stays as it was."""
    order = make_order(session, reference="ord_c")
    session.commit()
    client = sign_in("admin")
    response = post(client, "/order/correct", "/orders/ord_c", reference="ord_c", reason="x", **fields)
    assert response.status_code == 303
    assert sentence in _text(client.get("/orders/ord_c"))
    assert (fresh(session, order).amount_minor, order.currency) == (2500, "EUR")


def test_an_order_with_money_is_neither_corrected_nor_cancelled(sign_in: SignIn, session: Session) -> None:
    """Its page offers neither, and a post is refused with a sentence."""
    order = make_order(session, state="paid", reference="ord_m")
    make_ledger_entry(session, order)
    session.commit()
    client = sign_in("admin")
    page = _text(client.get("/orders/ord_m"))
    assert "Correct the order" not in page
    assert "Cancel the order" not in page
    post(client, "/order/correct", reference="ord_m", amount="1.00", currency="EUR", reason="x")
    assert "can no longer be changed" in _text(client.get("/orders/ord_m"))
    post(client, "/order/cancel", reference="ord_m", reason="x")
    assert "Not cancelled" in _text(client.get("/orders/ord_m"))
    assert fresh(session, order).state == "paid"


def test_sources_of_an_order_are_corrected(sign_in: SignIn, session: Session) -> None:
    """Boxes ticked name them; none ticked means any source."""
    order = make_order(session, reference="ord_s", sources=["demo"])
    session.commit()
    client = sign_in("admin")
    fields = {"reference": "ord_s", "amount": "25.00", "currency": "EUR", "reason": "x"}
    post(client, "/order/correct", sources=["lesson", "standard"], **fields)
    assert fresh(session, order).sources == ["lesson", "standard"]
    post(client, "/order/correct", **fields)
    assert fresh(session, order).sources is None


def test_an_order_is_cancelled_once(sign_in: SignIn, session: Session) -> None:
    """With its reason in history and record; afterwards the form is gone."""
    make_order(session, reference="ord_x")
    session.commit()
    client = sign_in("admin")
    post(client, "/order/cancel", "/orders/ord_x", reference="ord_x", reason="changed their mind")
    page = _text(client.get("/orders/ord_x"))
    assert "Cancelled." in page
    assert "changed their mind" in page
    assert "Cancel the order" not in page
    assert session.query(Order).filter_by(reference="ord_x").one().state == "cancelled"


def test_a_source_is_paused_and_resumed(sign_in: SignIn, session: Session) -> None:
    """Held rows are counted while it is paused and released by the resume; both stand in the record."""
    make_event(session)
    session.commit()
    client = sign_in("operator", name="olga")
    post(client, "/sources/demo/pause", "/sources/demo", reason="maintenance")
    assert "1</b> held" in _text(client.get("/sources/demo"))
    assert [(pause.key, pause.by) for pause in list_pauses(session)] == [("demo", "olga")]
    post(client, "/sources/demo/pause", "/sources/demo", reason="again")
    assert "paused already" in _text(client.get("/sources/demo"))
    post(client, "/sources/demo/resume", "/sources/demo", reason="over")
    assert "1 held event released" in _text(client.get("/sources/demo"))
    session.rollback()
    assert list_pauses(session) == []
    assert [act.action for act in list_actions(session, limit=2)] == ["source.resume", "source.pause"]
    post(client, "/sources/demo/resume", "/sources/demo", reason="over")
    assert "It is not paused" in _text(client.get("/sources/demo"))


def test_the_record_of_acts_is_a_page(sign_in: SignIn, session: Session) -> None:
    """Who, what, on what and why."""
    make_pause(session, "demo")
    session.commit()
    client = sign_in("operator", name="olga")
    post(client, "/sources/demo/resume", reason="<b>over</b>")
    page = _text(client.get("/audit"))
    assert "source.resume" in page
    assert "&lt;b&gt;over&lt;/b&gt;" in page


def test_a_reason_with_nul_or_without_end_is_a_400(sign_in: SignIn) -> None:
    """Never a 500."""
    client = sign_in("operator")
    assert post(client, "/sources/demo/pause", reason="a\0b").status_code == 400
    assert post(client, "/sources/demo/pause", reason="x" * 501).status_code == 400
    assert post(client, "/sources/demo/pause", reason="x" * 100_000).status_code == 413
