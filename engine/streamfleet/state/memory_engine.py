"""MemoryEngine: a StoreEngine whose rows live and die with the process. Made once per task by its owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from sortedcontainers import SortedDict

_CHUNK = 256


class MemoryEngine:
    """Rows in a sorted dict. A scan may be open while a batch is written: it goes on after the last key it returned."""

    def __init__(self) -> None:
        self._rows: SortedDict[bytes, bytes] = SortedDict()

    def get(self, key: bytes) -> bytes | None:
        return self._rows.get(key)

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        rows = self._rows
        low, high, includes_low, includes_high = start, end, True, False
        while True:
            keys = list(islice(rows.irange(low, high, (includes_low, includes_high), reverse), _CHUNK))
            for key in keys:
                value = rows.get(key)
                if value is not None:
                    yield key, value
            if len(keys) < _CHUNK:
                return
            if reverse:
                high = keys[-1]
            else:
                low, includes_low = keys[-1], False

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes],
        range_deletes: Iterable[tuple[bytes, bytes]],
    ) -> None:
        rows = self._rows
        for start, end in range_deletes:
            for key in list(rows.irange(start, end, (True, False))):
                del rows[key]
        for key in deletes:
            rows.pop(key, None)
        rows.update(puts)

    def flush(self) -> None:
        """Nothing is durable here."""

    def close(self) -> None:
        self._rows.clear()
