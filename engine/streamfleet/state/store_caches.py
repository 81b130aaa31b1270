"""StoreCaches: the memory that the stores of all tasks of one StreamThread share.

Two things with different purposes. The record cache holds results back: it decides what is forwarded, so its size is part of what
an app does. The objects only save reading, decoding and encoding values again.
"""

from __future__ import annotations

from streamfleet.state.object_cache import ObjectMemory
from streamfleet.state.record_cache import RecordCache


class StoreCaches:
    def __init__(self, record_max_bytes: int, object_max_bytes: int) -> None:
        self.record = RecordCache(record_max_bytes)
        self.objects = ObjectMemory(object_max_bytes)

    def resize(self, record_max_bytes: int, object_max_bytes: int) -> None:
        """The number of threads has changed. May be called by another thread: what is too much goes with the next update."""
        if self.record.max_bytes > 0:  # a store that was opened without a cache has none
            self.record.max_bytes = max(1, record_max_bytes)
        self.objects.max_bytes = object_max_bytes
