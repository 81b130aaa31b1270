"""What is put in order: items, the links between them, and the rule that items never overlap.

Read by picture_order.py, which finds an order, and picture_straight.py, which moves items within it. Made by
picture_heights.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """Something that fills columns `first` to `last`; `height` includes the free space around it."""

    id: str
    first: int
    last: int
    height: float


@dataclass(frozen=True)
class Link:
    """From the right side of an item in column `gap` to the left side of one in the next. Ports count from the top."""

    tail: str
    tail_port: float
    head: str
    head_port: float
    gap: int
    weight: float = 1.0


Tops = dict[str, float]


def total_bend(links: Iterable[Link], tops: Tops) -> float:
    """How far from straight all links are together."""
    return sum(abs(bend(link, tops)) * link.weight for link in links)


def bend(link: Link, tops: Tops) -> float:
    """How much lower the link ends than it starts."""
    return tops[link.head] + link.head_port - tops[link.tail] - link.tail_port


def push_down(order: Iterable[Item], wanted: Tops) -> Tops:
    """Each item where it is wanted, or lower, because of those before it in the order."""
    floors: dict[int, float] = {}
    tops: Tops = {}
    for item in order:
        columns = range(item.first, item.last + 1)
        tops[item.id] = max([wanted[item.id], *(floors[c] for c in columns if c in floors)])
        floors.update(dict.fromkeys(columns, tops[item.id] + item.height))
    return tops


def push_up(order: Sequence[Item], wanted: Tops) -> Tops:
    """Each item where it is wanted, or higher, because of those after it in the order."""
    ceilings: dict[int, float] = {}
    tops: Tops = {}
    for item in reversed(order):
        columns = range(item.first, item.last + 1)
        tops[item.id] = min([wanted[item.id], *(ceilings[c] - item.height for c in columns if c in ceilings)])
        ceilings.update(dict.fromkeys(columns, tops[item.id]))
    return tops
