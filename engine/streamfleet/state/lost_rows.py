"""Counts the rows of a task's former database that its new one does not have. Called when a wiped task was restored.

Both are read in key order, side by side, so that memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamfleet.ports import StoreEngine
from streamfleet.state.dirty_buffer import successor


def count_lost_rows(former: StoreEngine, former_prefix: bytes, now: StoreEngine, now_prefix: bytes) -> int:
    """Of one store, whose rows begin with a prefix of their own in each database."""
    present = _keys(now, now_prefix)
    candidate = next(present, None)
    lost = 0
    for key in _keys(former, former_prefix):
        while candidate is not None and candidate < key:
            candidate = next(present, None)
        lost += candidate != key
    return lost


def _keys(engine: StoreEngine, prefix: bytes) -> Iterator[bytes]:
    return (key[len(prefix) :] for key, _ in engine.scan(prefix, successor(prefix)))
