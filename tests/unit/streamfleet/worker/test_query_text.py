import uuid
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfleet import serdes
from streamfleet.worker.query_text import key_from_text, to_json


class Odd:
    """A value that no JSON knows, with a serde of its own."""

    def serialize(self, topic, value):
        return b"odd"

    def deserialize(self, topic, data):
        if data != b"odd":
            raise ValueError("not odd")
        return self


@dataclass(frozen=True)
class Order:
    id: int
    total: float


NAMED = {
    "string": (serdes.string(), "a/b ü", "a/b ü"),
    "integer": (serdes.integer(), "-7", -7),
    "long": (serdes.long(), "9007199254740993", 9007199254740993),
    "short": (serdes.short(), "3", 3),
    "double": (serdes.double(), "0.5", 0.5),
    "float": (serdes.float_(), "0.5", 0.5),
    "boolean": (serdes.boolean(), "true", True),
    "uuid": (
        serdes.uuid(),
        "12345678-1234-5678-1234-567812345678",
        uuid.UUID("12345678-1234-5678-1234-567812345678"),
    ),
    "bytes": (serdes.bytes(), "_-8", b"\xff\xef"),
    "json": (serdes.json(), "eyJhIjoxfQ", {"a": 1}),
}


@pytest.mark.parametrize("name", NAMED)
def test_keys_are_read_by_their_serde(name):
    serde, text, key = NAMED[name]
    assert key_from_text(serde, "t", text) == key


@pytest.mark.parametrize(
    ("serde", "text"),
    [
        (serdes.long(), "seven"),
        (serdes.boolean(), "yes"),
        (serdes.uuid(), "1"),
        (serdes.bytes(), "???"),
        (serdes.json(), "e"),
        (Odd(), "AAAA"),
    ],
)
def test_what_is_no_key_is_said_to_be_none(serde, text):
    with pytest.raises(ValueError):
        key_from_text(serde, "t", text)


@pytest.mark.parametrize(
    ("serde", "value", "shown"),
    [
        (serdes.string(), "ü", "ü"),
        (serdes.long(), 2**62, 2**62),
        (serdes.bytes(), b"\xff\xef", "/+8="),
        (serdes.uuid(), uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (serdes.json(Order), Order(1, 2.5), {"id": 1, "total": 2.5}),
        (serdes.json(), {"a": [1, None]}, {"a": [1, None]}),
        (Odd(), object(), {"base64": "b2Rk"}),
    ],
)
def test_values_are_shown_as_json(serde, value, shown):
    assert to_json(serde, "t", value) == shown
    assert msgspec.json.decode(msgspec.json.encode(to_json(serde, "t", value))) == shown


@given(st.text())
def test_every_text_is_a_key_of_a_store_of_texts(text):
    assert key_from_text(serdes.string(), "t", text) == text
