"""How scenario files show keys and values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conformance import codecs
from tests.conformance.kit import MalformedScenarioError

LONGS = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("serde", "value", "hexadecimal"),
    [
        ("string", "é", "c3a9"),
        ("long", -2, "fffffffffffffffe"),
        ("int", 258, "00000102"),
        ("double", 1.0, "3ff0000000000000"),
        ("bytes", "00ff", "00ff"),
        ({"time_windowed": "string", "size": 10}, ["a", 20, 30], "610000000000000014"),
        ({"session_windowed": "string"}, ["a", 1, 2], "6100000000000000020000000000000001"),
    ],
)
def test_encodings_are_those_of_java(serde, value, hexadecimal):
    assert codecs.encode(serde, value) == bytes.fromhex(hexadecimal)
    assert codecs.decode(serde, bytes.fromhex(hexadecimal)) == value


@given(st.text(), LONGS, LONGS)
def test_session_keys_come_back(key, start, end):
    serde = {"session_windowed": "string"}
    assert codecs.decode(serde, codecs.encode(serde, [key, start, end])) == [key, start, end]


def test_null_stays_null():
    assert codecs.encode("long", None) is None
    assert codecs.decode("long", None) is None


def test_bytes_that_do_not_fit_are_shown_as_a_wrong_result():
    assert codecs.decode("long", b"\x01") == {"not": "long", "hex": "01"}


@pytest.mark.parametrize(("serde", "value"), [("long", "x"), ("no_such_serde", "x"), ("string", 1), ("hex", "xyz")])
def test_a_value_that_its_serde_cannot_have_is_a_mistake_in_the_file(serde, value):
    with pytest.raises(MalformedScenarioError):
        codecs.encode(serde, value)
