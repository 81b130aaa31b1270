"""A binary heap whose ties come out as in the original. Used for input queues (by head timestamp) and punctuations
(by due time).

Equal times are common, and which of two equal ones goes first is visible in the results. Kafka Streams leaves that to
java.util.PriorityQueue, so this is the same sifting: `heapq` takes another path down and orders ties differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BinaryHeap(Generic[T]):
    """Smallest `key(item)` first. The key of an item must not change while it is in the heap."""

    __slots__ = ("_items", "_key")

    def __init__(self, key: Callable[[T], int]) -> None:
        self._key = key
        self._items: list[T] = []

    def __len__(self) -> int:
        return len(self._items)

    def peek(self) -> T | None:
        return self._items[0] if self._items else None

    def push(self, item: T) -> None:
        items, key = self._items, self._key(item)
        items.append(item)
        at = len(items) - 1
        while at > 0:
            parent = (at - 1) // 2
            if key >= self._key(items[parent]):
                break
            items[at] = items[parent]
            at = parent
        items[at] = item

    def pop(self) -> T | None:
        items = self._items
        if not items:
            return None
        top, last = items[0], items.pop()
        if items:
            self._sift_down(last)
        return top

    def _sift_down(self, item: T) -> None:
        """Put `item` in the place of the root, and push it down until no child is smaller."""
        items, key, size = self._items, self._key(item), len(self._items)
        at = 0
        while (child := 2 * at + 1) < size:
            if child + 1 < size and self._key(items[child]) > self._key(items[child + 1]):
                child += 1
            if key <= self._key(items[child]):
                break
            items[at] = items[child]
            at = child
        items[at] = item

    def clear(self) -> None:
        self._items.clear()
