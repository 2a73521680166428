"""PostgreSQL arrays as parameters of set statements, sent in binary and always of one type.

psycopg picks a list's type by its values (``int2[]`` or ``int8[]``, text for a list of None) and
spells many types as text: each mix would be another prepared statement, and the spelling costs more
than the statement. Wrapped in one of these, a list has one type and is packed here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEAD = struct.Struct("!iiIii")
_LENGTH = struct.Struct("!i").pack
_BIGINT = struct.Struct("!q").pack
_INTEGER = struct.Struct("!i").pack
_INTERVAL = struct.Struct("!qii").pack
_EMPTY = struct.Struct("!iiI").pack
_NULL = _LENGTH(-1)
_TRUE, _FALSE = b"\1", b"\0"

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _of_uuid(value: UUID) -> bytes:
    return value.bytes


def _of_boolean(value: bool) -> bytes:
    return _TRUE if value else _FALSE


def _of_time(value: datetime) -> bytes:
    return _BIGINT((value - _EPOCH) // _MICROSECOND)


def _of_interval(value: timedelta) -> bytes:
    return _INTERVAL(value // _MICROSECOND, 0, 0)


class Array:
    """One list of values or None. ``oid`` is the element's type, ``array_oid`` the array's."""

    __slots__ = ("values",)

    oid: ClassVar[int]
    array_oid: ClassVar[int]
    encode: ClassVar[Callable[[Any], bytes]]

    def __init__(self, values: Iterable[object]) -> None:
        self.values = tuple(values)

    def packed(self) -> bytes:
        """The array in PostgreSQL's binary format."""
        if not self.values:
            return _EMPTY(0, 0, self.oid)
        encode = type(self).encode
        parts = [b""]
        add = parts.append
        nulls = 0
        # Columns of a batch repeat themselves: the same object is packed once in a row.
        last, item = None, _NULL
        for value in self.values:
            if value is not last:
                if value is None:
                    item = _NULL
                else:
                    data = encode(value)
                    item = _LENGTH(len(data)) + data
                last = value
            if value is None:
                nulls = 1
            add(item)
        parts[0] = _HEAD.pack(1, nulls, self.oid, len(self.values), 1)
        return b"".join(parts)


class Texts(Array):
    """``text[]``."""

    __slots__ = ()
    oid, array_oid = 25, 1009
    encode = str.encode


class Uuids(Array):
    """``uuid[]``."""

    __slots__ = ()
    oid, array_oid = 2950, 2951
    encode = _of_uuid


class Bigints(Array):
    """``bigint[]``."""

    __slots__ = ()
    oid, array_oid = 20, 1016
    encode = _BIGINT


class Integers(Array):
    """``int[]``."""

    __slots__ = ()
    oid, array_oid = 23, 1007
    encode = _INTEGER


class Booleans(Array):
    """``boolean[]``."""

    __slots__ = ()
    oid, array_oid = 16, 1000
    encode = _of_boolean


class Blobs(Array):
    """``bytea[]``."""

    __slots__ = ()
    oid, array_oid = 17, 1001
    encode = bytes


class Times(Array):
    """``timestamptz[]``, of aware datetimes."""

    __slots__ = ()
    oid, array_oid = 1184, 1185
    encode = _of_time


class Intervals(Array):
    """``interval[]``, of timedeltas."""

    __slots__ = ()
    oid, array_oid = 1186, 1187
    encode = _of_interval


def _dumper_of(array: type[Array]) -> type[Dumper]:
    class ArrayDumper(Dumper):
        format = Format.BINARY
        oid = array.array_oid

        def dump(self, obj: Array) -> bytes:
            return obj.packed()

    return ArrayDumper


for _each in (Texts, Uuids, Bigints, Integers, Booleans, Blobs, Times, Intervals):
    psycopg.adapters.register_dumper(_each, _dumper_of(_each))
