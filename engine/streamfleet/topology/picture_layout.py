"""Where everything in the picture is. Turns a Graph into boxes and routes in pixels.

Called by picture.py; drawn by picture_shapes.py. Columns come from picture_columns.py, heights from picture_heights.py;
this module adds widths, and the routes that lines take. Lines bend only in the gaps between columns and keep to a place
of their own where they pass one, so they run over no box.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from streamfleet.topology import picture_labels as labels
from streamfleet.topology.picture_blocks import BOX_HEIGHT, STORE_HEIGHT, Blocks, Line, store_offset, to_blocks
from streamfleet.topology.picture_graph import Edge, Graph
from streamfleet.topology.picture_heights import FRAME_PADDING, Heights, find_heights

STORE_INDENT = 22.0
NODE_PADDING = 12.0  # left and right of what is written on a shape
TOPIC_PADDING = 20.0
BORDER = 26.0  # around the whole picture

_MIN_WIDTH = 132.0
_MAX_TEXT = 184.0  # about 30 small letters: most generated names
_MAX_TOPIC_TEXT = 210.0  # topics are what people look for
_GAP = (46.0, 110.0)
_GAP_PER_RISE = 0.14
_LANE = 16.0


@dataclass(frozen=True)
class Box:
    """A rectangle; y grows downwards, as in SVG."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


Point = tuple[float, float]


@dataclass(frozen=True)
class Route:
    """A line from one thing to another. Its 1st, 3rd, 5th ... piece bends in the gap between two columns."""

    tail: str
    head: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Layout:
    """Boxes by vertex id, store name and number of the sub-topology."""

    width: float
    height: float
    vertices: Mapping[str, Box]
    stores: Mapping[str, Box]
    homes: Mapping[str, str]
    """By store name, the vertex that it hangs under."""

    frames: Mapping[int, Box]
    flows: tuple[Route, ...]
    feedback: tuple[Route, ...]
    accesses: tuple[Route, ...]
    """From a store to a processor that it does not hang under."""


@dataclass(frozen=True)
class _Column:
    x: float
    width: float


def lay_out(graph: Graph) -> Layout:
    """The place of everything in the graph."""
    blocks = to_blocks(graph)
    heights = find_heights(blocks)
    levels = {line.id: _levels(blocks, heights, line) for line in blocks.lines}
    columns = _columns(blocks, levels)
    vertices = {id: _block_box(columns[blocks.columns[id]], top) for id, top in heights.blocks.items()}
    frames = {frame: _frame_box(blocks, vertices, frame, *place) for frame, place in heights.frames.items()}
    stores = _store_boxes(blocks, vertices)
    boxes = [*vertices.values(), *frames.values(), *stores.values()]
    bottom = max((box.bottom for box in boxes), default=BORDER)
    right = max((box.right for box in boxes), default=BORDER) + (2 * _LANE if graph.feedback else 0.0)
    routes = {line: _route(blocks, columns, line, levels[line.id]) for line in blocks.lines}
    return Layout(
        width=right + BORDER,
        height=bottom + _LANE * len(graph.feedback) + BORDER,
        vertices=vertices,
        stores=stores,
        homes=blocks.homes,
        frames=frames,
        flows=tuple(route for line, route in routes.items() if not line.is_access),
        feedback=tuple(_return_route(edge, vertices, bottom, n) for n, edge in enumerate(graph.feedback)),
        accesses=tuple(route for line, route in routes.items() if line.is_access),
    )


def _levels(blocks: Blocks, heights: Heights, line: Line) -> list[float]:
    """The height of a line at its start, in each column that it passes, and at its end."""
    start, end = (heights.blocks[port.block] + port.offset + BORDER for port in (line.start, line.end))
    return [start, *(heights.long_lines[line.id] + BORDER for _ in blocks.passed_by(line)), end]


def _columns(blocks: Blocks, levels: Mapping[str, Sequence[float]]) -> dict[int, _Column]:
    """As wide as the widest label needs, within reason; steep lines get a wider gap to bend in."""
    widths: dict[int, float] = {}
    for id, column in blocks.columns.items():
        # Whole pixels: a rounding error must not make a text that fits look too wide.
        widths[column] = max(widths.get(column, _MIN_WIDTH), math.ceil(_wanted_width(blocks, id)))
    rises: dict[int, float] = {}
    for line in blocks.lines:
        for gap, (here, there) in enumerate(pairwise(levels[line.id]), blocks.columns_of(line)[0]):
            rises[gap] = max(rises.get(gap, 0.0), abs(here - there))
    x = BORDER + FRAME_PADDING + (2 * _LANE if blocks.graph.feedback else 0.0)
    columns: dict[int, _Column] = {}
    for column, width in sorted(widths.items()):
        columns[column] = _Column(x, width)
        x += width + min(_GAP[0] + rises.get(column, 0.0) * _GAP_PER_RISE, _GAP[1])
    return columns


def _wanted_width(blocks: Blocks, id: str) -> float:
    vertex = blocks.graph.vertices[id]
    own = labels.vertex_label(vertex).width
    if vertex.kind.is_topic:
        return min(own, _MAX_TOPIC_TEXT) + 2 * TOPIC_PADDING
    under = [labels.store_label(s.name, is_global=s.is_global).width for s in blocks.stores_under(id)]
    widest = max([min(own, _MAX_TEXT), *(min(width, _MAX_TEXT) + STORE_INDENT for width in under)])
    return widest + 2 * NODE_PADDING


def _block_box(column: _Column, top: float) -> Box:
    return Box(column.x, top + BORDER, column.width, BOX_HEIGHT)


def _frame_box(blocks: Blocks, vertices: Mapping[str, Box], frame: int, top: float, height: float) -> Box:
    members = [vertices[vertex.id] for vertex in blocks.graph.vertices.values() if vertex.frame == frame]
    left = min(box.x for box in members) - FRAME_PADDING
    return Box(left, top + BORDER, max(box.right for box in members) + FRAME_PADDING - left, height)


def _store_boxes(blocks: Blocks, vertices: Mapping[str, Box]) -> dict[str, Box]:
    boxes: dict[str, Box] = {}
    for home in dict.fromkeys(blocks.homes.values()):
        at = vertices[home]
        for position, store in enumerate(blocks.stores_under(home)):
            top = at.y + store_offset(position)
            boxes[store.name] = Box(at.x + STORE_INDENT, top, at.width - STORE_INDENT, STORE_HEIGHT)
    return boxes


def _route(blocks: Blocks, columns: Mapping[int, _Column], line: Line, levels: Sequence[float]) -> Route:
    first, last = (columns[column] for column in blocks.columns_of(line))
    home = blocks.homes[line.tail] if line.is_access else None
    entry = last.x + (STORE_INDENT if line.end.block == home else 0.0)
    if first is last:  # both ends look left
        return Route(line.tail, line.head, ((first.x + STORE_INDENT, levels[0]), (entry, levels[-1])))
    points: list[Point] = [(first.x + first.width, levels[0])]
    for passed, level in zip(blocks.passed_by(line), levels[1:-1], strict=True):
        points += [(columns[passed].x, level), (columns[passed].x + columns[passed].width, level)]
    return Route(line.tail, line.head, (*points, (entry, levels[-1])))


def _return_route(edge: Edge, vertices: Mapping[str, Box], bottom: float, number: int) -> Route:
    """Out to the right, under everything, and back in from the left."""
    sink, topic = vertices[edge[0]], vertices[edge[1]]
    lane = bottom + _LANE * (number + 1)
    aside = 5.0 * (number % 3)
    out, back = sink.right + 22.0 + aside, topic.x - 20.0 - aside
    corners = ((out, sink.middle), (out, lane), (back, lane), (back, topic.middle))
    return Route(*edge, ((sink.right, sink.middle), *corners, (topic.x, topic.middle)))
