import enum

import msgspec
import pytest

from streamfleet import serdes


class Reading(msgspec.Struct, frozen=True):
    sensor: str
    celsius: float


class Draft(msgspec.Struct):
    text: str


class Album(msgspec.Struct, frozen=True):
    titles: list[str]


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize("make", [serdes.json, serdes.msgpack])
def test_plain_values_need_no_type(make):
    value = {"a": [1, 2.5, None, True], "b": "é"}
    assert make().deserialize("t", make().serialize("t", value)) == value


def test_json_is_compact():
    assert serdes.json().serialize("t", {"a": 1, "b": [1, 2]}) == b'{"a":1,"b":[1,2]}'


@pytest.mark.parametrize("make", [serdes.json, serdes.msgpack])
def test_typed_values_come_back_as_their_type(make):
    serde = make(Reading)
    assert serde.deserialize("t", serde.serialize("t", Reading("s", 1.5))) == Reading("s", 1.5)


@pytest.mark.parametrize("make", [serdes.json, serdes.msgpack])
def test_data_that_does_not_fit_the_type_is_refused(make):
    data = make().serialize("t", {"sensor": 5})
    with pytest.raises(ValueError, match="Reading"):
        make(Reading).deserialize("t", data)


def test_broken_json_is_refused_with_what_was_read():
    with pytest.raises(ValueError, match="nonsense"):
        serdes.json().deserialize("t", b"nonsense")


@pytest.mark.parametrize("make", [serdes.json, serdes.msgpack])
def test_values_that_do_not_fit_are_refused(make):
    with pytest.raises(TypeError, match="dict"):
        make(Reading).serialize("t", {"sensor": "s"})
    with pytest.raises(TypeError, match="object"):
        make().serialize("t", object())


@pytest.mark.parametrize(
    ("of", "immutable"),
    [
        (None, False),
        (int, True),
        (str, True),
        (Reading, True),
        (Draft, False),
        (Album, False),
        (Colour, True),
        (list, False),
    ],
)
def test_immutable_says_whether_values_can_be_shared(of, immutable):
    assert serdes.json(of).immutable is immutable
