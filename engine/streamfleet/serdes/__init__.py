"""Bytes to values and back: the serdes of an app's keys and values, compatible byte for byte with Kafka's Java ones.

Any object with `serialize(topic, value)` and `deserialize(topic, data)` is a serde (api.py); these come along. A
value that does not fit raises TypeError or ValueError with what was given and what is expected; the sink, source or store
that called puts its own name around it. The `change` serde is internal to grouped tables and not exported here.
"""

from streamfleet.serdes.api import Serde, WrongTypeError
from streamfleet.serdes.lists import list_of
from streamfleet.serdes.numbers import double, float_, integer, long, short
from streamfleet.serdes.plain import boolean, bytes, string, uuid, void  # noqa: A004 Kafka's word
from streamfleet.serdes.registered import avro, protobuf
from streamfleet.serdes.structured import json, msgpack
from streamfleet.serdes.windowed import session_windowed, windowed

__all__ = [
    "Serde",
    "WrongTypeError",
    "avro",
    "boolean",
    "bytes",
    "double",
    "float_",
    "integer",
    "json",
    "list_of",
    "long",
    "msgpack",
    "protobuf",
    "session_windowed",
    "short",
    "string",
    "uuid",
    "void",
    "windowed",
]
