"""How a store's changes become changelog records: each as it is made, or the last one per key and commit.

Keys and values are those of the topic: the raw key, and the bare value without timestamp. Changelog records carry no headers, but
for the stores of joins, which in the original keep those of their records.
"""

from __future__ import annotations

from typing import Protocol

from streamfleet.records import Headers
from streamfleet.state.api import StoreContext


class ChangeLog(Protocol):
    """Where a store reports its changes."""

    def log(self, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers = ()) -> None: ...

    def flush(self) -> None:
        """Send what was held back."""

    def discard(self) -> None:
        """Forget what was held back."""


class EachChange:
    """Sends every change at once: what Kafka Streams does."""

    def __init__(self, context: StoreContext, store_name: str) -> None:
        self._send = context.log_change
        self._store_name = store_name

    def log(self, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers = ()) -> None:
        self._send(self._store_name, key, value, timestamp, headers)

    def flush(self) -> None: ...

    def discard(self) -> None: ...


class LastChangePerKey:
    """Holds changes back until the commit and sends only the last of every key, in the order in which those were made.
    Compaction would leave the same.
    """

    def __init__(self, context: StoreContext, store_name: str) -> None:
        self._send = context.log_change
        self._store_name = store_name
        self._held: dict[bytes, tuple[bytes | None, int | None, Headers]] = {}

    def log(self, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers = ()) -> None:
        self._held.pop(key, None)
        self._held[key] = (value, timestamp, headers)

    def flush(self) -> None:
        held, self._held = self._held, {}
        for key, (value, timestamp, headers) in held.items():
            self._send(self._store_name, key, value, timestamp, headers)

    def discard(self) -> None:
        self._held = {}
