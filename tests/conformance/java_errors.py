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

_JAVA_NAMES = {
    Boom.__qualname__: "java.lang.IllegalStateException",
    RefusedTextError.__qualname__: "org.apache.kafka.common.errors.SerializationException",
    sf.ProductionError.__qualname__: "java.lang.IllegalArgumentException",  # of a record without topic
}
_STREAMS_EXCEPTION = "org.apache.kafka.streams.errors.StreamsException"
_OF_A_STORE = re.compile("(key|value) of store .* cannot be serialized .*?: (?P<serde>[^;]*)")
"""Where Java lets out the serde's own error, this engine says in addition which store could not take the value."""

EXCEPTION_HEADER = "__streams.errors.exception"
MESSAGE_HEADER = "__streams.errors.message"
_OWN_MESSAGES = ("boom ", "refused ")
"""Messages that the scenario itself makes begin like this; the other side words all others in its own way."""


def stands_for(java_class: str, error: Exception) -> bool:
    """Whether `error` is what the engine should raise where Java raised `java_class` (a simple name)."""
    return isinstance(error, _OURS.get(java_class, _SENSIBLE))


def in_java_words(headers: list[list[Json]]) -> list[list[Json]]:
    """Headers of a dead letter with Java's class for the error, where it is an error that Java has as well."""
    message = next((str(value) for name, value in headers if name == MESSAGE_HEADER), "")
    stored = _OF_A_STORE.match(message)
    shown = []
    for name, value in headers:
        if name == EXCEPTION_HEADER:
            refused = stored is not None and stored["serde"].startswith("refused ")
            shown.append([name, _java_name(str(value), refused=refused)])
        elif name == MESSAGE_HEADER and stored is not None:
            shown.append([name, stored["serde"]])
        else:
            shown.append([name, value])
    return shown


def _java_name(python_name: str, *, refused: bool) -> str:
    simple = python_name.rpartition(".")[2]
    if simple == TypeError.__qualname__:  # a value that its serde is not made for
        return _STREAMS_EXCEPTION
    if simple == sf.SerializationError.__qualname__:
        return _JAVA_NAMES[RefusedTextError.__qualname__] if refused else _STREAMS_EXCEPTION
    return _JAVA_NAMES.get(simple, python_name)


def comparable_headers(expected: list[list[Json]]) -> list[list[Json]]:
    """Recorded headers with a "*" for a message in Java's own words."""
    return [
        [name, "*"] if name == MESSAGE_HEADER and not str(value).startswith(_OWN_MESSAGES) else [name, value]
        for name, value in expected
    ]
