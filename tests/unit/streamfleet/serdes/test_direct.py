"""What a serde is asked without a detour is what it would say itself: results, and errors."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamfleet as sf
from streamfleet.serdes.direct import reader, writer
from streamfleet.serdes.plain import StringSerde

SERDES = [sf.serdes.string(), sf.serdes.json(), sf.serdes.json(int), sf.serdes.msgpack(), sf.serdes.long()]


def outcome(call, given):
    try:
        return call(given)
    except Exception as error:
        return type(error), str(error)


def direct_outcome(direct, given):
    try:
        return direct.call(given)
    except Exception as error:
        told = direct.reason(given, error)
        return type(told), str(told)


@given(st.sampled_from(SERDES), st.binary() | st.text().map(str.encode) | st.integers().map(msgspec.json.encode))
def test_bytes_are_read_as_by_the_serde(serde, data):
    assert direct_outcome(reader(serde, "t"), data) == outcome(lambda given: serde.deserialize("t", given), data)


@given(st.sampled_from(SERDES), st.text() | st.integers() | st.binary() | st.just("\ud800"))
def test_values_are_written_as_by_the_serde(serde, value):
    assert direct_outcome(writer(serde, "t"), value) == outcome(lambda given: serde.serialize("t", given), value)


class Loud(StringSerde):
    def serialize(self, topic, value):
        return f"{topic}:{value}".encode()

    def deserialize(self, topic, data):
        return f"{topic}:{data.decode()}"


def test_a_class_made_from_a_serde_is_asked_itself():
    assert writer(Loud(), "t").call("a") == b"t:a"
    assert reader(Loud(), "t").call(b"a") == "t:a"


def test_what_only_looks_like_text_is_of_the_wrong_type():
    class Encodes:
        def encode(self):
            return b"no text"

    with pytest.raises(TypeError, match="takes text"):
        sf.serdes.string().serialize("t", Encodes())
