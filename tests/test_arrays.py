"""Arrays in binary arrive as what they were, of one type whatever they hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from receiver.arrays import Array, Bigints, Blobs, Booleans, Integers, Intervals, Texts, Times, Uuids

CASES = [
    (Texts, "text[]", ["a", "", "Zoë \\ \" ' {}", None]),
    (Uuids, "uuid[]", [UUID(int=0), UUID(int=2**128 - 1), None]),
    (Bigints, "bigint[]", [0, -1, 2**63 - 1, None]),
    (Integers, "integer[]", [0, -1, 2**31 - 1, None]),
    (Booleans, "boolean[]", [True, False, None]),
    (Blobs, "bytea[]", [b"", bytes(range(256)), None]),
    (
        Times,
        "timestamp with time zone[]",
        [datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), None],
    ),
    (Intervals, "interval[]", [timedelta(0), timedelta(hours=72, microseconds=1), timedelta(days=-1), None]),
]


@pytest.mark.parametrize(("kind", "name", "values"), CASES, ids=[case[1] for case in CASES])
def test_values_come_back_equal(session: Session, kind: type[Array], name: str, values: list[object]) -> None:
    """Every value, NULL and the empty array come back as they went in."""
    connection = session.connection().connection.driver_connection
    assert isinstance(connection, psycopg.Connection)
    for sent in (values, values[:1], [None], []):
        row = connection.execute("SELECT %s, pg_typeof(%s)::text", [kind(sent), kind(sent)]).fetchone()
        assert row is not None
        got, kind_of = row
        assert got == sent
        assert kind_of == name


@pytest.mark.parametrize(("kind", "name", "values"), CASES, ids=[case[1] for case in CASES])
def test_statements_through_sqlalchemy_take_them(
    session: Session, kind: type[Array], name: str, values: list[object]
) -> None:
    """SQLAlchemy hands the parameter on untouched."""
    got = session.execute(text(f"SELECT CAST(:values AS {name})"), {"values": kind(values)}).scalar_one()
    assert got == values


def test_a_text_that_holds_a_nul_is_refused(session: Session) -> None:
    """A NUL never becomes part of a stored text."""
    with pytest.raises(Exception, match=r"0x00|NUL"):
        session.execute(text("SELECT CAST(:values AS text[])"), {"values": Texts(["a\0b"])})
