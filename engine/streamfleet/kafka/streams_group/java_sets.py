"""The order in which Java's hash sets give their elements back. Called by topology.py.

The broker compares the co-partition groups of a topology as lists, and Java Kafka Streams sends them in the order of its sets.
Members of both kinds can be in one group only if ours send the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

FEWEST_BUCKETS = 16
_UNSIGNED = 0xFFFFFFFF


def hash_of(text: str) -> int:
    """String.hashCode(), unsigned."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & _UNSIGNED
    return value


def hash_of_set(texts: Iterable[str]) -> int:
    """Set.hashCode(), unsigned."""
    return sum(map(hash_of, texts)) & _UNSIGNED


def in_set_order(elements: Iterable[T], hash_of_one: Callable[[T], int], made_for: int | None = None) -> list[T]:
    """The distinct elements, as a set gives them that they were put into in this order; `made_for` so many if it was not empty
    when it was made.
    """
    distinct = list(dict.fromkeys(elements))
    buckets = FEWEST_BUCKETS
    if made_for is not None:
        while buckets < made_for * 4 // 3 + 1:
            buckets *= 2
    while buckets * 3 // 4 < len(distinct):
        buckets *= 2

    def bucket(element: T) -> int:
        value = hash_of_one(element)
        return (value ^ value >> 16) & buckets - 1

    return sorted(distinct, key=bucket)  # stable: who shares a bucket keeps the order of coming
