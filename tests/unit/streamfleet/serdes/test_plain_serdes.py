import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet import serdes


@pytest.mark.parametrize(
    ("serde", "value", "data"),
    [
        (serdes.string(), "aé", b"a\xc3\xa9"),
        (serdes.string(), "", b""),
        (serdes.bytes(), b"\x00\xff", b"\x00\xff"),
        (serdes.short(), -2, b"\xff\xfe"),
        (serdes.integer(), 1, b"\x00\x00\x00\x01"),
        (serdes.integer(), -(2**31), b"\x80\x00\x00\x00"),
        (serdes.long(), 258, b"\x00\x00\x00\x00\x00\x00\x01\x02"),
        (serdes.float_(), 1.5, b"\x3f\xc0\x00\x00"),
        (serdes.double(), -2.0, b"\xc0\x00\x00\x00\x00\x00\x00\x00"),
        (serdes.boolean(), True, b"\x01"),
        (serdes.boolean(), False, b"\x00"),
        (
            serdes.uuid(),
            uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
            b"f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        ),
    ],
    ids=repr,
)
def test_bytes_are_those_of_the_java_serde(serde, value, data):
    assert serde.serialize("t", value) == data
    assert serde.deserialize("t", data) == value


@pytest.mark.parametrize(
    "serde",
    [
        serdes.string(),
        serdes.bytes(),
        serdes.short(),
        serdes.integer(),
        serdes.long(),
        serdes.float_(),
        serdes.double(),
        serdes.boolean(),
        serdes.uuid(),
        serdes.void(),
        serdes.json(),
        serdes.msgpack(),
        serdes.list_of(serdes.long()),
        serdes.windowed(serdes.string(), 10),
        serdes.session_windowed(serdes.string()),
    ],
    ids=repr,
)
def test_null_stays_null(serde):
    assert serde.serialize("t", None) is None
    assert serde.deserialize("t", None) is None


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (serdes.string(), 5),
        (serdes.bytes(), "text"),
        (serdes.long(), "x"),
        (serdes.long(), 1.0),
        (serdes.integer(), b"1"),
        (serdes.double(), "1.0"),
        (serdes.boolean(), 1),
        (serdes.uuid(), "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        (serdes.void(), 0),
    ],
    ids=repr,
)
def test_a_value_of_another_type_is_refused_with_its_type(serde, value):
    with pytest.raises(TypeError, match=type(value).__name__) as raised:
        serde.serialize("t", value)
    assert serde.name in str(raised.value)


@pytest.mark.parametrize(
    ("serde", "value"),
    [(serdes.short(), 2**15), (serdes.integer(), 2**31), (serdes.long(), -(2**63) - 1), (serdes.float_(), 1e300)],
    ids=repr,
)
def test_a_number_out_of_range_is_refused_with_the_range(serde, value):
    with pytest.raises(ValueError, match="cannot hold"):
        serde.serialize("t", value)


@pytest.mark.parametrize(
    ("serde", "data"),
    [
        (serdes.long(), b"\x00"),
        (serdes.integer(), b"12345"),
        (serdes.double(), b""),
        (serdes.boolean(), b"\x02"),
        (serdes.boolean(), b""),
        (serdes.uuid(), b"no uuid"),
        (serdes.string(), b"\xff"),
        (serdes.void(), b""),
    ],
    ids=repr,
)
def test_bytes_that_cannot_be_read_are_refused(serde, data):
    with pytest.raises(ValueError, match=serde.name):
        serde.deserialize("t", data)


def test_bytes_takes_other_buffers_and_copies_them():
    buffer = bytearray(b"ab")
    data = serdes.bytes().serialize("t", buffer)
    buffer[0] = 0
    assert data == b"ab"


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs_survive(value):
    assert serdes.long().deserialize("t", serdes.long().serialize("t", value)) == value


@given(st.text())
def test_text_survives(value):
    assert serdes.string().deserialize("t", serdes.string().serialize("t", value)) == value


@pytest.mark.parametrize(
    ("serde", "value"),
    [
        (serdes.string(), 5),
        (serdes.bytes(), "text"),
        (serdes.boolean(), 1),
        (serdes.long(), "5"),
        (serdes.uuid(), "text"),
        (serdes.list_of(serdes.long()), 5),
        (serdes.windowed(serdes.string(), size=5), "key"),
        (serdes.json(dict), []),
    ],
)
def test_a_value_of_another_kind_is_told_from_one_that_cannot_be_written(serde, value):
    with pytest.raises(serdes.WrongTypeError):
        serde.serialize("t", value)


def test_a_number_out_of_range_is_of_the_right_type():
    with pytest.raises(ValueError, match="cannot hold"):
        serdes.short().serialize("t", 1 << 20)
