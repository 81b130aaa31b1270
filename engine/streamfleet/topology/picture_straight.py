"""Makes the links between ordered items straight. Called by picture_order.py; changes heights, never the order.

The eye forgives a long bend, but not a line that is straight except for a few pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streamfleet.topology.picture_items import Item, Link, Tops, bend, push_down, push_up, total_bend

_PASSES = 3
_VISIBLE_PX = 0.05
_KINK_PX = 8.0  # a link that is not quite straight is as bad as one that bends so much more


def straighten(items: Sequence[Item], links: Sequence[Link], tops: Tops) -> Tops:
    """Moves each item, inside the room it has, to where its links bend least."""
    tops = dict(tops)
    goals = _goals(links)
    above, below = _neighbours(items, tops)
    rightwards = sorted(items, key=lambda item: (item.first, tops[item.id]))
    for order in (rightwards, rightwards[::-1], rightwards):
        for item in order:
            low = max((tops[other.id] + other.height for other in above[item.id]), default=float("-inf"))
            high = min((tops[other.id] - item.height for other in below[item.id]), default=float("inf"))
            wanted = [(tops[other] + offset, weight) for other, offset, weight in goals.get(item.id, ())]
            if wanted and low <= high:  # else it touches its neighbours, with a rounding error between them
                tops[item.id] = _least_bent(tops[item.id], low, high, wanted)
    return tops


def align(items: Sequence[Item], links: Sequence[Link], tops: Tops) -> Tops:
    """Moves whole rows, and what they push before them, if that makes links straight. Slower, so it is done last."""
    order = sorted(items, key=lambda item: tops[item.id])
    best = _ugliness(links, tops)
    for _ in range(_PASSES):
        before = best
        for link in links:
            for moved, by in _moves(links, link, tops):
                shifted = tops | {id: tops[id] + by for id in moved}
                tried = push_down(order, shifted) if by > 0 else push_up(order, shifted)
                ugliness = _ugliness(links, tried)
                if ugliness < best - _VISIBLE_PX:
                    tops, best = tried, ugliness
        if best == before:
            break
    return tops


def _ugliness(links: Sequence[Link], tops: Tops) -> float:
    return total_bend(links, tops) + sum(
        _KINK_PX * link.weight for link in links if abs(bend(link, tops)) > _VISIBLE_PX
    )


def _moves(links: Sequence[Link], link: Link, tops: Tops) -> Iterable[tuple[set[str], float]]:
    """Ways to make one link straight: either end alone, or with all that is in a straight line with it."""
    by = bend(link, tops)
    if abs(by) < _VISIBLE_PX:
        return
    yield {link.tail}, by
    yield {link.head}, -by
    yield _row(links, link.tail, tops), by
    yield _row(links, link.head, tops), -by


def _row(links: Sequence[Link], start: str, tops: Tops) -> set[str]:
    row = {start}
    straight = [link for link in links if abs(bend(link, tops)) < _VISIBLE_PX]
    size = 0
    while size != len(row):
        size = len(row)
        for link in straight:
            if link.tail in row or link.head in row:
                row |= {link.tail, link.head}
    return row


def _goals(links: Iterable[Link]) -> Mapping[str, list[tuple[str, float, float]]]:
    """For each item: which others it is linked to, how much lower than their tops its own should be, and the weight."""
    goals: dict[str, list[tuple[str, float, float]]] = {}
    for link in links:
        offset = link.tail_port - link.head_port
        goals.setdefault(link.head, []).append((link.tail, offset, link.weight))
        goals.setdefault(link.tail, []).append((link.head, -offset, link.weight))
    return goals


def _neighbours(items: Iterable[Item], tops: Tops) -> tuple[dict[str, set[Item]], dict[str, set[Item]]]:
    """The items right above and right below each item, in any of its columns."""
    above: dict[str, set[Item]] = {item.id: set() for item in items}
    below: dict[str, set[Item]] = {item.id: set() for item in items}
    lowest: dict[int, Item] = {}
    for item in sorted(items, key=lambda item: tops[item.id]):
        for column in range(item.first, item.last + 1):
            if column in lowest:
                above[item.id].add(lowest[column])
                below[lowest[column].id].add(item)
            lowest[column] = item
    return above, below


def _least_bent(now: float, low: float, high: float, goals: Sequence[tuple[float, float]]) -> float:
    places = [now, *(min(max(goal, low), high) for goal, _ in goals)]
    return min(places, key=lambda place: (sum(abs(place - goal) * weight for goal, weight in goals), abs(place - now)))
