"""Serdes over serdes: windowed keys, lists, changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet import serdes
from streamfleet.records import Change, SessionWindow, TimeWindow, Windowed
from streamfleet.serdes.change import change
from streamfleet.serdes.varint import read_varint, write_varint


def test_time_windowed_keys_end_in_the_window_start():
    serde = serdes.windowed(serdes.string(), size=10)
    data = b"a" + b"\x00" * 7 + b"\x05"
    assert serde.serialize("t", Windowed("a", TimeWindow(5, 15))) == data
    assert serde.deserialize("t", data) == Windowed("a", TimeWindow(5, 15))


def test_time_windowed_keys_cannot_be_read_without_the_size():
    with pytest.raises(ValueError, match="give the size"):
        serdes.windowed(serdes.string()).deserialize("t", b"a" + bytes(8))


def test_session_windowed_keys_end_in_end_and_start():
    serde = serdes.session_windowed(serdes.string())
    data = b"a" + b"\x00" * 7 + b"\x0a" + b"\x00" * 7 + b"\x05"
    assert serde.serialize("t", Windowed("a", SessionWindow(5, 10))) == data
    assert serde.deserialize("t", data) == Windowed("a", SessionWindow(5, 10))


@pytest.mark.parametrize("serde", [serdes.windowed(serdes.string(), 1), serdes.session_windowed(serdes.string())])
def test_windowed_serdes_refuse_plain_keys_and_short_data(serde):
    with pytest.raises(TypeError, match="Windowed"):
        serde.serialize("t", "a")
    with pytest.raises(ValueError, match="bytes of time"):
        serde.deserialize("t", b"1234567")


def test_a_window_does_not_end_after_time_itself():
    serde = serdes.windowed(serdes.string(), size=10)
    key = Windowed("a", TimeWindow(2**63 - 2, 0))
    assert serde.deserialize("t", serde.serialize("t", key)).window.end == 2**63 - 1


def test_lists_of_variable_length_items_carry_lengths():
    serde = serdes.list_of(serdes.string())
    data = b"\x01\x00\x00\x00\x03" + b"\x00\x00\x00\x02ab" + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00"
    assert serde.serialize("t", ["ab", None, ""]) == data
    assert serde.deserialize("t", data) == ["ab", None, ""]


def test_lists_of_fixed_length_items_carry_the_indexes_of_nulls():
    serde = serdes.list_of(serdes.short())
    data = b"\x00" + b"\x00\x00\x00\x01" + b"\x00\x00\x00\x01" + b"\x00\x00\x00\x03" + b"\x00\x05\x00\x06"
    assert serde.serialize("t", [5, None, 6]) == data
    assert serde.deserialize("t", data) == [5, None, 6]


@pytest.mark.parametrize(
    "data", [b"", b"\x01", b"\x01\x00\x00\x00\x01", b"\x01\x00\x00\x00\x01\x00\x00\x00\x05a", b"\x07"]
)
def test_broken_lists_are_refused(data):
    with pytest.raises(ValueError, match="list_of"):
        serdes.list_of(serdes.string()).deserialize("t", data)


@pytest.mark.parametrize("inner", [serdes.long(), serdes.json()], ids=repr)
@given(values=st.lists(st.none() | st.integers(-(2**31), 2**31)))
def test_lists_survive(inner, values):
    serde = serdes.list_of(inner)
    assert serde.deserialize("t", serde.serialize("t", values)) == values


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (Change("a1", None), b"a1\x01"),
        (Change(None, "a2"), b"a2\x00"),
        (Change("a2", "a1"), b"\x04a2a1\x02"),
    ],
)
def test_changes_are_written_as_kafka_streams_does(value, data):
    assert change(serdes.string()).serialize("t", value) == data
    assert change(serdes.string()).deserialize("t", data) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"a\x01\x03", Change(None, "a", is_latest=True)),
        (b"a\x00\x04", Change("a", None, is_latest=False)),
        (b"\x02ab\x00\x05", Change("a", "b", is_latest=False)),
    ],
)
def test_changes_that_say_whether_they_are_the_latest_are_read(data, value):
    assert change(serdes.string()).deserialize("t", data) == value


def test_a_change_of_nothing_is_refused():
    with pytest.raises(ValueError, match="without old and new"):
        change(serdes.string()).serialize("t", Change(None, None))


@pytest.mark.parametrize("data", [b"", b"a\x06", b"\x03", b"\x08a\x02"])
def test_broken_changes_are_refused(data):
    with pytest.raises(ValueError, match="change"):
        change(serdes.string()).deserialize("t", data)


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints_survive(number):
    data = write_varint(number)
    assert read_varint(b"x" + data, 1) == (number, 1 + len(data))


def test_small_numbers_of_both_signs_take_one_byte():
    assert [write_varint(n) for n in (0, -1, 1, -2, 63, 64)] == [b"\0", b"\1", b"\2", b"\3", b"\x7e", b"\x80\x01"]
