"""Who stands above whom, and at which height: the vertical half of the layout, inside a frame and among the frames.

Called by picture_heights.py with items (blocks, frames, long lines) that fill one or more columns, and links between
neighbouring columns. Barycenter sweeps in both directions: each column in turn is pulled to the mean height of its
neighbours, ordered by that, and spread so that nothing overlaps. The best of all rounds is kept: few crossings first,
short links second. Heights instead of ranks are averaged, because a frame is as tall as many blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from streamfleet.topology.picture_items import Item, Link, Tops, push_down, push_up, total_bend
from streamfleet.topology.picture_straight import align, straighten

_CROSSING_COST = 90.0
_MANY_LINKS = 300  # from here on speed matters more than the last crossing


def arrange(items: Sequence[Item], links: Sequence[Link]) -> Tops:
    """Top of each item. Items that share a column never overlap; the topmost is at 0."""
    if not items:
        return {}
    tops = push_down(items, dict.fromkeys((item.id for item in items), 0.0))
    tails, heads = _by_head(links), _by_tail(links)
    columns = range(max(item.last for item in items) + 1)
    best, best_cost = tops, _cost(items, links, tops)
    for sweep in range(16 if len(links) < _MANY_LINKS else 6):
        rightwards = sweep % 2 == 0
        for column in columns if rightwards else reversed(columns):
            pulled = _pull(items, column, tails if rightwards else heads, tops, rightwards=rightwards)
            tops = _spread(items, tops | pulled, tops) if pulled else tops
        straight = straighten(items, links, tops)
        cost = _cost(items, links, straight)
        if cost < best_cost:
            best, best_cost = straight, cost
    if len(links) < _MANY_LINKS:
        best = align(items, links, best)
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
    down, up = push_down(order, wanted), push_up(order, wanted)
    return {item.id: (down[item.id] + up[item.id]) / 2 for item in items}


def _close_gaps(items: Sequence[Item], links: Sequence[Link], tops: Tops) -> Tops:
    """What hangs together moves up as a whole until it meets what is above it: only links justify a distance."""
    closed = dict(tops)
    for group in sorted(_groups(items, links), key=lambda group: min(tops[item.id] for item in group)):
        members = {item.id for item in group}
        others = [item for item in items if item.id not in members]
        room = min(closed[item.id] - _floor(item, others, closed) for item in group)
        closed |= {id: closed[id] - room for id in members}
    return closed


def _floor(item: Item, others: Iterable[Item], tops: Tops) -> float:
    """The bottom of the lowest of the others that stand above the item."""
    above = [o for o in others if o.first <= item.last and item.first <= o.last and tops[o.id] < tops[item.id]]
    return max((tops[other.id] + other.height for other in above), default=0.0)


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
    by_gap: dict[int, list[tuple[Link, float, float]]] = {}
    for end in ends:
        by_gap.setdefault(end[0].gap, []).append(end)
    crossings = sum(_crossings(group) for group in by_gap.values())
    passed = sum(_passed(items, tops, link, tail, head) for link, tail, head in ends)
    return total_bend(links, tops) + (crossings + passed) * _CROSSING_COST


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
