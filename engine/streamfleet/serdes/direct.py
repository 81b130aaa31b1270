"""Using a serde for one topic, once per record: without a Python call where the serde has nothing of its own to do.

Used by record queues, sinks and stores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from streamfleet.serdes.api import Serde
from streamfleet.serdes.plain import StringSerde
from streamfleet.serdes.structured import StructuredSerde


class DirectUse:
    """One of the two methods of a serde, for one topic and for what is not None."""

    def __init__(self, method: Callable[[str, Any], Any], topic: str, direct: Callable[[Any], Any] | None) -> None:
        """`direct` does what the method does, but for what it says of an error."""
        self._method = partial(method, topic)
        self.call: Callable[[Any], Any] = direct or self._method

    def reason(self, given: Any, error: Exception) -> Exception:
        """The error that `call` has raised, as the serde says it."""
        if self.call is not self._method:
            try:
                self._method(given)
            except Exception as told:
                return told
        return error


def reader(serde: Serde[Any], topic: str) -> DirectUse:
    """Bytes to values. Here and below, a class made from one of ours may do something else."""
    direct: Callable[[bytes], Any] | None = None
    if type(serde) is StringSerde:
        direct = bytes.decode
    elif type(serde) is StructuredSerde:
        direct = serde.decode
    return DirectUse(serde.deserialize, topic, direct)


def writer(serde: Serde[Any], topic: str) -> DirectUse:
    """Values to bytes."""
    return DirectUse(serde.serialize, topic, str.encode if type(serde) is StringSerde else None)
