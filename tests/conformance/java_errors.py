"""Java's exceptions and ours: which of our errors stands for which of Java's.

`checks` asks whether an error is the recorded one; `execution` translates class names in headers of dead letters.
"""

from __future__ import annotations

import re

from tests.conformance.kit import Boom, Json
from tests.conformance.specs import RefusedTextError

import streamfleet as sf

_OURS: dict[str, tuple[type[Exception], ...]] = {
    "TopologyException": (sf.TopologyError,),
    "StreamsException": (sf.StreamsError,),
    "ConfigException": (sf.ConfigError,),
    "ProcessorStateException": (sf.StateStoreError,),
    "IllegalArgumentException": (ValueError,),
    "NullPointerException": (TypeError, ValueError),
}
_SENSIBLE: tuple[type[Exception], ...] = (sf.StreamsError, ValueError, TypeError, RuntimeError)
"""For the exceptions that Python has no word for (IllegalStateException, UnsupportedOperationException)."""

_SERIALIZATION = "org.apache.kafka.common.errors.SerializationException"
_JAVA_NAMES = {
    Boom.__qualname__: "java.lang.IllegalStateException",
    RefusedTextError.__qualname__: _SERIALIZATION,
    sf.SerializationError.__qualname__: _SERIALIZATION,
}

EXCEPTION_HEADER = "__streams.errors.exception"
MESSAGE_HEADER = "__streams.errors.message"
_OWN_MESSAGES = ("boom ", "refused ")
"""Messages that the scenario itself makes begin like this; the other side words all others in its own way."""


def stands_for(java_class: str, error: Exception) -> bool:
    """Whether `error` is what the engine should raise where Java raised `java_class` (a simple name)."""
    return isinstance(error, _OURS.get(java_class, _SENSIBLE))


def java_name(python_name: str) -> str:
    """The Java class for a qualified Python class name, where the scenario itself raised it; else the name as it is."""
    return _JAVA_NAMES.get(python_name.rpartition(".")[2], python_name)


def java_message(message: str) -> str:
    """A message without what the engine says around the serde's own: which store could not take the value."""
    found = re.search("refused [^;]*", message)
    return found[0] if found else message


def comparable_headers(expected: list[list[Json]]) -> list[list[Json]]:
    """Recorded headers with a "*" for a message in Java's own words."""
    return [
        [name, "*"] if name == MESSAGE_HEADER and not str(value).startswith(_OWN_MESSAGES) else [name, value]
        for name, value in expected
    ]
