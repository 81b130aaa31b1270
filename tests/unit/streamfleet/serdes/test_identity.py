import enum

import msgspec
import pytest

from streamfleet import serdes
from streamfleet.serdes.change import change
from streamfleet.serdes.identity import identity
from streamfleet.serdes.join_side import SidedKeySerde, SidedValueSerde
from streamfleet.serdes.subscription import ResponseSerde, SubscriptionSerde


class Order(msgspec.Struct):
    """What was bought."""

    customer: str
    cents: int


class Kind(enum.Enum):
    A = "a"


@pytest.mark.parametrize(
    ("serde", "expected"),
    [
        (serdes.string(), "string"),
        (serdes.long(), "long"),
        (serdes.json(), "json"),
        (serdes.windowed(serdes.string(), size=5), "windowed(string)"),
        (serdes.session_windowed(serdes.long()), "session_windowed(long)"),
        (serdes.list_of(serdes.json(Order)), "list_of(json)"),
    ],
)
def test_the_id_names_the_encoding(serde, expected):
    assert identity(serde)["id"] == expected


def test_serdes_of_the_engines_own_are_known_by_names_that_stay():
    text = serdes.string()
    assert identity(SubscriptionSerde(text, "t", "s"))["id"] == "subscription(string)"
    assert identity(ResponseSerde(None))["id"] == "response(default)"
    assert identity(SidedKeySerde(text))["id"] == "sided_key(string)"
    sided = identity(SidedValueSerde(text, serdes.json(Order)))
    assert sided["id"] == "sided_value(string, json)" and "fingerprint" in sided
    assert identity(change(None))["id"] == "change(default)"


def test_a_serde_that_is_left_open_has_no_identity():
    assert identity(None) is None


def renamed(**fields):
    return msgspec.defstruct("Order", list(fields.items()))


def test_the_fingerprint_follows_the_fields_and_not_the_docstring():
    here = identity(serdes.json(Order))
    assert here["fields"] == {"cents": "integer", "customer": "string"}
    assert identity(serdes.json(renamed(customer=str, cents=int)))["fingerprint"] == here["fingerprint"]
    assert identity(serdes.json(renamed(customer=str, euros=float)))["fingerprint"] != here["fingerprint"]


def test_json_and_msgpack_of_one_type_differ_in_id_only():
    json, msgpack = identity(serdes.json(Order)), identity(serdes.msgpack(Order))
    assert (json["id"], msgpack["id"]) == ("json", "msgpack") and json["fingerprint"] == msgpack["fingerprint"]


def test_the_schema_of_what_is_wrapped_counts():
    assert (
        identity(serdes.windowed(serdes.json(Order), size=1))["fingerprint"]
        == identity(serdes.json(Order))["fingerprint"]
    )


class OwnSerde:
    def serialize(self, topic, value): ...

    def deserialize(self, topic, data): ...


def test_a_serde_of_ones_own_is_known_by_its_class_or_by_what_it_says():
    assert identity(OwnSerde())["id"].endswith("test_identity.OwnSerde")
    own = OwnSerde()
    own.id, own.schema = "avro", {"type": "record", "properties": {"a": {"type": "int"}}}
    assert identity(own)["id"] == "avro" and identity(own)["fields"] == {"a": "int"}


def test_the_identity_of_a_type_that_needs_hooks_is_its_name():
    class Special:
        pass

    assert "fingerprint" in identity(serdes.json(dict[str, Kind]))
    assert identity(serdes.json(Special)) == identity(serdes.json(Special))
