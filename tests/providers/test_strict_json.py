"""The one JSON parser: what is refused, by which code, and that nothing else ever comes out of it."""

import json
import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receiver.providers.strict_json import RepeatingObject, Unreadable, canonical, parse_object


def refusal(body: bytes) -> str:
    with pytest.raises(Unreadable) as caught:
        parse_object(body)
    assert caught.value.detail
    return caught.value.code


@pytest.mark.field_case(48)
@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"",
        b"  \n",
        b'{"id":',
        b'{"id":"a"}{"id":"b"}',
        b'{"id":"a"} x',
        b"{'id':'a'}",
        b'{"id":"a",}',
        b'{"a":"\x01"}',
        b'{"a":01}',
        b'{"a":+1}',
        b'{"a":.5}',
        b'{"a":1.}',
        b'\xef\xbb\xbf\xef\xbb\xbf{"a":1}',
    ],
)
def test_what_is_no_json_is_refused(body):
    """Text, nothing, blanks, a cut document, two documents and loose spellings are not JSON."""
    assert refusal(body) == "not_json"


@pytest.mark.field_case(47)
@pytest.mark.parametrize("body", [b"[]", b"[1]", b'"x"', b"42", b"null", b"true", b"1.5"])
def test_json_that_is_no_object_is_refused(body):
    """A provider's body is an object."""
    assert refusal(body) == "not_an_object"


@pytest.mark.parametrize(
    "body", [b'{"a":"\xe9"}', b'{"a":"\xed\xa0\x80"}', b"\xff\xfe{\x00}\x00", b'{"a":"\xc0\xaf"}']
)
def test_what_is_not_utf8_is_refused(body):
    """Latin-1, UTF-16, encoded surrogates and overlong forms are not UTF-8."""
    assert refusal(body) == "not_utf8"


def test_a_leading_bom_is_skipped():
    """Some senders put one; it is signed and kept, and it says nothing."""
    assert parse_object(b'\xef\xbb\xbf{"id":"a"}') == {"id": "a"}


@pytest.mark.field_case(41)
@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_bounded(opening, closing):
    """64 levels are read, one more is refused, and 20,000 cost no stack."""

    def nested(levels):
        return b'{"a":' + opening * (levels - 1) + b"1" + closing * (levels - 1) + b"}"

    assert parse_object(nested(64))
    assert refusal(nested(65)) == "too_deep"
    assert refusal(nested(20_000)) == "too_deep"
    assert refusal(opening * 20_000) == "too_deep"


def test_brackets_in_texts_do_not_nest_and_many_flat_ones_are_no_depth():
    """Depth is counted outside strings, whatever is escaped in them."""
    assert parse_object(json.dumps({"a": '\\"[{' * 500, "b": [[]] * 500}).encode())["b"] == [[]] * 500


@pytest.mark.parametrize(
    "body", [b'"\\"' * 300_000, b'{"a":"' + b'\\"[' * 300_000, b'"[' * 400_000, b"[]" * 400_000]
)
def test_the_scan_for_depth_is_linear(body):
    """A megabyte made to be searched again and again is refused in well under a second or two."""
    started = time.process_time()
    refusal(body)
    assert time.process_time() - started < 2


@pytest.mark.field_case(43)
@pytest.mark.parametrize("key", [b"amount", b"unused"])
@pytest.mark.parametrize(
    "number, code",
    [
        (b"9" * 41, "number_too_long"),
        (b"9" * 5000, "number_too_long"),
        (b"-" + b"9" * 5000, "number_too_long"),
        (b"1." + b"9" * 40, "number_too_long"),
        (b"1e31", "exponent_too_large"),
        (b"1e-31", "exponent_too_large"),
        (b"1E+400", "exponent_too_large"),
        (b"1e" + b"9" * 5000, "exponent_too_large"),
        (b"0e999999999", "exponent_too_large"),
    ],
)
def test_numbers_are_bounded(key, number, code):
    """An endless number is refused wherever it stands, and never as a plain ValueError."""
    assert refusal(b'{"id":"a","%s":%s}' % (key, number)) == code


@pytest.mark.field_case(46)
@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_python_s_own_numbers_are_no_json(number):
    """NaN and Infinity are refused before anything could compare them."""
    assert refusal(b'{"amount":%s}' % number) == "not_finite"


def test_numbers_are_exact():
    """Whole numbers are int, all others Decimal: no digit is lost to a float."""
    read = parse_object(b'{"a":9007199254740993,"b":0.1,"c":1e3,"d":-0,"e":%s,"f":1e0000030}' % (b"9" * 40))

    assert read == {
        "a": 2**53 + 1,
        "b": Decimal("0.1"),
        "c": Decimal(1000),
        "d": 0,
        "e": 10**40 - 1,
        "f": 10**30,
    }
    assert type(read["c"]) is Decimal


def test_a_repeated_key_counts_last_and_is_remembered():
    """Repeated keys are legal; whoever reads one can see that it was."""
    read = parse_object(b'{"id":"a","m":{"x":1,"x":2,"y":3},"id":"b"}')

    assert read == {"id": "b", "m": {"x": 2, "y": 3}}
    assert isinstance(read, RepeatingObject)
    assert read.repeated == {"id"}
    assert read["m"].repeated == {"x"}


@pytest.mark.field_case(39)
def test_lone_surrogates_and_zero_characters_are_read():
    """They are legal in JSON; only a fact that must be stored may refuse them."""
    assert parse_object(rb'{"name":"\ud800","memo":"ab\u0000cd"}') == {"name": "\ud800", "memo": "ab\0cd"}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=6), st.booleans())
def test_what_a_sender_writes_is_what_is_read(value, escaped):
    """Escaped or raw, the same object comes out, and its canonical form does not depend on the spelling."""
    body = json.dumps(value, ensure_ascii=escaped, indent=1).encode("utf-8", "surrogatepass")
    read = parse_object(body)

    assert read == value
    assert canonical(read) == canonical(dict(reversed(read.items())))


def test_canonical_tells_values_apart_and_spellings_not():
    """1.10 is 1.1 and 1e2 is 100, but a number is not its text, and true is not 1."""

    def of(text):
        return canonical(parse_object(b'{"v":%s}' % text))

    assert of(b"1.10") == of(b"1.1") == of(b"11e-1")
    assert of(b"1e2") == of(b"100") == of(b"100.0")
    assert (
        len({of(t) for t in (b"1", b'"1"', b"true", b"1.1", b'"1.1"', b"-1.1", b"11", b"null", rb'"\ud800"')})
        == 9
    )


@given(st.binary() | st.text(alphabet='{}[]",:0123456789eE+-.\\ntrufalsNI ').map(str.encode))
def test_no_bytes_raise_anything_but_unreadable(body):
    """Whatever the bytes, the answer is an object or a named refusal."""
    try:
        read = parse_object(body)
    except Unreadable:
        return
    assert isinstance(read, dict)
