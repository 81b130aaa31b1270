"""Who stands above whom, and at which height: the vertical half of the layout, inside a frame and among the frames.

Called by picture_heights.py with items (blocks, frames, long lines) that fill one or more columns, and links between
neighbouring columns. Barycenter sweeps in both directions: each column in turn is pulled to the mean height of its
neighbours, ordered by that, and spread so that nothing overlaps. The best of all rounds is kept: few crossings first,
short links second. Heights instead of ranks are averaged, because a frame is as tall as many blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_SWEEPS = 16
_CROSSING_COST = 90.0


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


def arrange(items: Sequence[Item], links: Sequence[Link]) -> Tops:
    """Top of each item. Items that share a column never overlap; the topmost is at 0."""
    if not items:
        return {}
    tops = _push_down(items, dict.fromkeys((item.id for item in items), 0.0))
    tails, heads = _by_head(links), _by_tail(links)
    columns = range(max(item.last for item in items) + 1)
    best, best_cost = tops, _cost(items, links, tops)
    for sweep in range(_SWEEPS):
        rightwards = sweep % 2 == 0
        for column in columns if rightwards else reversed(columns):
            pulled = _pull(items, column, tails if rightwards else heads, tops, rightwards=rightwards)
            tops = _spread(items, tops | pulled, tops) if pulled else tops
        straight = _straighten(items, links, tops)
        cost = _cost(items, links, straight)
        if cost < best_cost:
            best, best_cost = straight, cost
    highest = min(best.values())
    return _close_gaps(items, links, {id: top - highest for id, top in best.items()})


Pulls = Mapping[str, list[tuple[str, float, float]]]


def _by_head(links: Iterable[Link]) -> Pulls:
    """For each item, those left of it: (item, how much lower than that item's top this one's should be, weight)."""
    pulls: dict[str, list[tuple[str, float, float]]] = {}
    for link in links:
        pulls.setdefault(link.head, []).append((link.tail, link.tail_port - link.head_port, link.weight))
    return pulls


def _by_tail(links: Iterable[Link]) -> Pulls:
    pulls: dict[str, list[tuple[str, float, float]]] = {}
    for link in links:
        pulls.setdefault(link.tail, []).append((link.head, link.head_port - link.tail_port, link.weight))
    return pulls


def _pull(items: Sequence[Item], column: int, pulls: Pulls, tops: Tops, *, rightwards: bool) -> Tops:
    pulled: Tops = {}
    for item in items:
        neighbours = pulls.get(item.id, ())
        if neighbours and column == (item.first if rightwards else item.last):
            weight = sum(pull[2] for pull in neighbours)
            pulled[item.id] = sum((tops[other] + offset) * w for other, offset, w in neighbours) / weight
    return pulled


def _spread(items: Sequence[Item], wanted: Tops, now: Tops) -> Tops:
    """The nearest places without overlap, in the order of the wanted centres.

    Pushing everything down gives one solution, pushing everything up another. Every mean of two solutions is a solution
    too, and this one leaves a crowd centred on the place that it wants.
    """
    order = sorted(items, key=lambda item: (wanted[item.id] + item.height / 2, now[item.id]))
    down, up = _push_down(order, wanted), _push_up(order, wanted)
    return {item.id: (down[item.id] + up[item.id]) / 2 for item in items}


def _push_down(order: Iterable[Item], wanted: Tops) -> Tops:
    floors: dict[int, float] = {}
    tops: Tops = {}
    for item in order:
        columns = range(item.first, item.last + 1)
        tops[item.id] = max([wanted[item.id], *(floors[c] for c in columns if c in floors)])
        floors.update(dict.fromkeys(columns, tops[item.id] + item.height))
    return tops


def _push_up(order: Sequence[Item], wanted: Tops) -> Tops:
    ceilings: dict[int, float] = {}
    tops: Tops = {}
    for item in reversed(order):
        columns = range(item.first, item.last + 1)
        tops[item.id] = min([wanted[item.id], *(ceilings[c] - item.height for c in columns if c in ceilings)])
        ceilings.update(dict.fromkeys(columns, tops[item.id]))
    return tops


def _straighten(items: Sequence[Item], links: Sequence[Link], tops: Tops) -> Tops:
    """Moves each item, inside the room it has, to where its links bend least. Order and distances stay."""
    tops = dict(tops)
    left, right = _by_head(links), _by_tail(links)
    columns: dict[int, list[Item]] = {}
    for item in sorted(items, key=lambda item: tops[item.id]):
        for column in range(item.first, item.last + 1):
            columns.setdefault(column, []).append(item)
    rightwards = sorted(items, key=lambda item: (item.first, tops[item.id]))
    for order in (rightwards, rightwards[::-1], rightwards):
        for item in order:
            pulls = [*left.get(item.id, ()), *right.get(item.id, ())]
            if pulls:
                low, high = _room(item, columns, tops)
                goals = [(tops[other] + offset, weight) for other, offset, weight in pulls]
                tops[item.id] = _least_bent(tops[item.id], low, high, goals)
    return tops


def _room(item: Item, columns: Mapping[int, list[Item]], tops: Tops) -> tuple[float, float]:
    low, high = float("-inf"), float("inf")
    for column in range(item.first, item.last + 1):
        members = columns[column]
        at = members.index(item)
        if at > 0:
            low = max(low, tops[members[at - 1].id] + members[at - 1].height)
        if at + 1 < len(members):
            high = min(high, tops[members[at + 1].id] - item.height)
    return low, high


def _least_bent(now: float, low: float, high: float, goals: Sequence[tuple[float, float]]) -> float:
    if low > high:  # touching neighbours, and a rounding error between them
        return now
    places = [now, *(min(max(goal, low), high) for goal, _ in goals)]
    return min(places, key=lambda place: (sum(abs(place - goal) * weight for goal, weight in goals), abs(place - now)))


def _close_gaps(items: Sequence[Item], links: Sequence[Link], tops: Tops) -> Tops:
    """What hangs together moves up as a whole until it meets what is above it: only links justify a distance."""
    closed: Tops = {}
    floors: dict[int, float] = {}
    for group in sorted(_groups(items, links), key=lambda group: min(tops[item.id] for item in group)):
        columns = {item.id: range(item.first, item.last + 1) for item in group}
        rooms = [tops[item.id] - max(floors.get(c, 0.0) for c in columns[item.id]) for item in group]
        shift = max(0.0, min(rooms))
        for item in group:
            closed[item.id] = tops[item.id] - shift
            bottom = closed[item.id] + item.height
            floors |= {c: max(floors.get(c, 0.0), bottom) for c in columns[item.id]}
    return closed


def _groups(items: Sequence[Item], links: Sequence[Link]) -> list[list[Item]]:
    """Items that are linked, directly or through others."""
    group_of = {item.id: [item] for item in items}
    for link in links:
        one, other = group_of[link.tail], group_of[link.head]
        if one is not other:
            one += other
            group_of |= dict.fromkeys((item.id for item in other), one)
    return list({id(group): group for group in group_of.values()}.values())


def _cost(items: Sequence[Item], links: Sequence[Link], tops: Tops) -> float:
    ends = [(link, tops[link.tail] + link.tail_port, tops[link.head] + link.head_port) for link in links]
    length = sum(abs(tail - head) * link.weight for link, tail, head in ends)
    by_gap: dict[int, list[tuple[Link, float, float]]] = {}
    for end in ends:
        by_gap.setdefault(end[0].gap, []).append(end)
    crossings = sum(_crossings(group) for group in by_gap.values())
    passed = sum(_passed(items, tops, link, tail, head) for link, tail, head in ends)
    return length + (crossings + passed) * _CROSSING_COST


def _crossings(group: Sequence[tuple[Link, float, float]]) -> int:
    return sum(
        (tail - other_tail) * (head - other_head) < 0
        for at, (_, tail, head) in enumerate(group)
        for _, other_tail, other_head in group[:at]
    )


def _passed(items: Sequence[Item], tops: Tops, link: Link, tail: float, head: float) -> int:
    """How many frames and long edges the link runs over: they fill the gap that it goes through."""
    low, high = min(tail, head), max(tail, head)
    return sum(
        item.first <= link.gap < item.last
        and item.id not in (link.tail, link.head)
        and low < tops[item.id] + item.height / 2 < high
        for item in items
    )
