"""Event ids from the door to the order: what makes two events one, and what must not."""

from __future__ import annotations

import pytest

from tests.posting import payment


@pytest.mark.field_case(26)
def test_an_event_without_an_id_is_refused_with_its_type_on_record(door):
    """422, and the operator reads of what type the events are that have no id."""
    body = b'{"type": "account.updated", "data": {}}'

    assert [door.demo(body).status_code for _ in range(2)] == [422, 422]

    (row,) = door.rejections()
    assert (row["reason"], row["count"]) == ("missing_id", 2)
    assert "account.updated" in row["detail"]


@pytest.mark.field_case(27)
def test_two_sources_may_use_one_id(door):
    """An id belongs to its source: two rows, both applied."""
    for source, order in (("demo", "o_1"), ("beta", "o_2")):
        door.order(order)
        assert door.demo(payment("evt_1", order), source=source).status_code == 200

    door.work()

    assert [door.ended("evt_1", source)[:2] for source in ("demo", "beta")] == [("processed", "applied")] * 2
    assert [door.state_of(order) for order in ("o_1", "o_2")] == ["paid", "paid"]


@pytest.mark.field_case(29)
def test_ids_that_differ_in_case_are_two(door):
    """Neither case, nor blanks, nor a composed accent makes two ids one."""
    ids = ["evt_AbC9", "evt_aBc9", "evt_AbC9 ", " evt_AbC9", "evt_é", "evt_e\u0301"]
    for number, event_id in enumerate(ids):
        door.order(f"o_{number}")
        assert door.demo(payment(event_id, f"o_{number}")).status_code == 200

    door.work()

    assert {door.state_of(f"o_{number}") for number in range(len(ids))} == {"paid"}
    for number, event_id in enumerate(ids):
        assert door.event(event_id)["order_reference"] == f"o_{number}"


@pytest.mark.field_case(30)
def test_a_number_is_no_id(door):
    """Large numbers cannot be rounded into one, since none is taken; as texts they are exact."""
    numbers = (b"7615917337495251231", b"7615917337495251232", b"7", b"1.0", b"1e3")

    for number in numbers:
        assert door.demo(b'{"id": %s, "type": "x"}' % number).status_code == 422
    for number in numbers:
        assert door.demo(b'{"id": "%s", "type": "x"}' % number).status_code == 200

    stored = door.rows("SELECT provider_event_id AS id FROM webhook_events")
    assert {row["id"].encode() for row in stored} == set(numbers)


@pytest.mark.field_case(31)
def test_a_zero_byte_is_refused_wherever_it_decides(door):
    """In the id 422; in the order reference a failed row that says so; never a fault."""
    assert door.demo(payment("evt\0a", "o_1")).status_code == 422
    assert door.demo(payment("evt_1", "o_\0")).status_code == 200
    assert door.demo(payment("evt_2", "o_1", type="pay\0ment")).status_code == 200

    door.work()

    assert door.ended("evt_1")[0] == "failed"
    assert door.ended("evt_1")[2] == "unreadable_order_reference"
    assert door.ended("evt_2")[2] == "unreadable_type"
    assert door.client.get("/status?q=%00&state=%00").status_code < 500


@pytest.mark.field_case(35)
def test_one_payment_has_many_events(door):
    """Authorized, captured and refunded for one transaction: three rows, applied in turn."""
    door.order("o_1")
    kinds = {"payment.authorized": {}, "payment.captured": {"capture_id": "cp_1"}, "payment.refunded": {}}
    for number, (kind, data) in enumerate(kinds.items()):
        body = payment(f"evt_{number}", "o_1", type=kind, data={"transaction_id": "tx_7", **data})
        assert door.demo(body).status_code == 200
        door.work()

    assert [door.ended(f"evt_{number}")[:2] for number in range(3)] == [("processed", "applied")] * 3
    assert door.state_of("o_1") == "refunded"


def test_a_standard_id_comes_from_its_signed_header(door):
    """The id in the body does not matter; the signed header does, and it is one of visible characters."""
    from tests.posting import standard

    body = b'{"type": "payment.hologram", "id": "evt_other"}'
    now = int(door.deps.clock.unix())

    assert door.post("standard", body, standard(body, "msg_1", at=now)).status_code == 200
    assert door.event("msg_1", "standard")["receipts"] == 1
    for odd in ("msg 1", "m" * 129):
        assert door.post("standard", body, standard(body, odd, at=now)).status_code == 422
