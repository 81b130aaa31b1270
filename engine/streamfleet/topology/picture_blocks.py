"""What the layout has to place: blocks in columns, and the lines between them.

Called by picture_layout.py, read by picture_heights.py too. A block is a vertex together with the stores that hang
under it; a store that several processors use hangs under one of them, its home, and the others are joined to it by a
line. Sizes are in pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamfleet.topology.picture_columns import find_columns
from streamfleet.topology.picture_graph import Graph, Store

BOX_HEIGHT = 46.0
STORE_HEIGHT = 50.0
STORE_GAP = 7.0

_FLOW_PORT = BOX_HEIGHT * 0.5
_STORE_PORT = BOX_HEIGHT * 0.78  # a store is used below the line that records take
_ACCESS_WEIGHT = 0.4  # a bent line to a store is less bad than a bent line of records


@dataclass(frozen=True)
class Port:
    """Where a line touches: a block, and how far below its top."""

    block: str
    offset: float


@dataclass(frozen=True)
class Line:
    """From the left `start` to the right `end`. An access joins store `tail` to processor `head`, whichever is left."""

    tail: str
    head: str
    start: Port
    end: Port
    is_access: bool

    @property
    def id(self) -> str:
        return f"{'access' if self.is_access else 'flow'}:{self.tail}>{self.head}"

    @property
    def weight(self) -> float:
        return _ACCESS_WEIGHT if self.is_access else 1.0


@dataclass(frozen=True)
class Blocks:
    """All of them, by vertex id, and the lines."""

    graph: Graph
    columns: Mapping[str, int]
    homes: Mapping[str, str]
    """By store name, the vertex that it hangs under."""

    lines: tuple[Line, ...]

    def height(self, block: str) -> float:
        return BOX_HEIGHT + len(self.stores_under(block)) * (STORE_GAP + STORE_HEIGHT)

    def stores_under(self, block: str) -> tuple[Store, ...]:
        return tuple(store for store in self.graph.stores if self.homes[store.name] == block)

    def frame_of(self, line: Line) -> int | None:
        """The frame that a line stays in, if it does."""
        start, end = (self.graph.vertices[port.block].frame for port in (line.start, line.end))
        return start if start == end else None

    def columns_of(self, line: Line) -> tuple[int, int]:
        return self.columns[line.start.block], self.columns[line.end.block]

    def passed_by(self, line: Line) -> range:
        """The columns between its two ends, where a line needs a place to go through."""
        first, last = self.columns_of(line)
        return range(first + 1, last)


def to_blocks(graph: Graph) -> Blocks:
    """Blocks of a graph, each in its column."""
    columns = find_columns(graph)
    homes = {store.name: _home(store, columns) for store in graph.stores}
    return Blocks(graph, columns, homes, (*_flows(graph), *_accesses(graph, columns, homes)))


def store_offset(position: int) -> float:
    """How far the n-th store of a block is below the block's top."""
    return BOX_HEIGHT + STORE_GAP + position * (STORE_HEIGHT + STORE_GAP)


def _home(store: Store, columns: Mapping[str, int]) -> str:
    """The leftmost user, because that is usually the one that fills the store."""
    return store.users[0] if store.is_global else min(store.users, key=lambda user: columns[user])


def _flows(graph: Graph) -> Iterable[Line]:
    for tail, head in graph.edges:
        yield Line(tail, head, Port(tail, _FLOW_PORT), Port(head, _FLOW_PORT), is_access=False)


def _accesses(graph: Graph, columns: Mapping[str, int], homes: Mapping[str, str]) -> Iterable[Line]:
    positions: dict[str, int] = {}
    for store in graph.stores:
        home = homes[store.name]
        position = positions[home] = positions.get(home, -1) + 1
        at_store = Port(home, store_offset(position) + STORE_HEIGHT / 2)
        for user in store.users:
            at_user = Port(user, _STORE_PORT)
            ends = (at_store, at_user) if columns[home] <= columns[user] else (at_user, at_store)
            if user != home:
                yield Line(store.name, user, *ends, is_access=True)
