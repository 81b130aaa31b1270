"""How high everything stands. Called by picture_layout.py; the sorting itself is in picture_order.py, and done twice.

First inside each frame, with the blocks of one sub-topology. Then outside, with whole frames as items among the topics.
So frames are rectangles that no other box enters, although their columns interleave: a sub-topology that reads back
what another one made of its records spans both. A line longer than one column is an item too, thin and as long as what
it passes: the dummy nodes of layered drawing, kept at one height so that the line stays straight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from streamfleet.topology.picture_blocks import Blocks, Line, Port
from streamfleet.topology.picture_items import Item, Link, Tops
from streamfleet.topology.picture_order import arrange

FRAME_HEADER = 30.0
FRAME_PADDING = 16.0

# Free space above and below.
_BLOCK_MARGIN = 9.0
_LINE_MARGIN = 9.0
_FRAME_MARGIN = 13.0

PlaceOf = Callable[[Port], tuple[str, float]]


@dataclass(frozen=True)
class Heights:
    """Tops of blocks and frames; where long lines run. All count from the top of the picture."""

    blocks: Mapping[str, float]
    long_lines: Mapping[str, float]
    frames: Mapping[int, tuple[float, float]]
    """Top and height."""


@dataclass(frozen=True)
class _Inside:
    tops: Tops
    height: float


def find_heights(blocks: Blocks) -> Heights:
    """Where every block, frame and long line is, from top to bottom."""
    insides = {frame: _arrange_inside(blocks, frame) for frame in blocks.graph.frames}
    outside = _arrange_outside(blocks, insides)
    frames = {frame: (outside[_frame_id(frame)] + _FRAME_MARGIN, i.height) for frame, i in insides.items()}
    tops = dict(outside)
    for frame, inside in insides.items():
        tops |= {id: frames[frame][0] + top for id, top in inside.tops.items()}
    return Heights(
        {id: tops[id] + _BLOCK_MARGIN for id in blocks.columns},
        {line.id: tops[line.id] + _LINE_MARGIN for line in blocks.lines if blocks.passed_by(line)},
        frames,
    )


def _arrange_inside(blocks: Blocks, frame: int) -> _Inside:
    members = [vertex.id for vertex in blocks.graph.vertices.values() if vertex.frame == frame]
    lines = [line for line in blocks.lines if blocks.frame_of(line) == frame]
    items = [*_block_items(blocks, members), *_line_items(blocks, lines)]
    tops = arrange(items, [link for line in lines for link in _links(blocks, line, _on_block)])
    start = FRAME_HEADER - _BLOCK_MARGIN
    bottom = max((tops[item.id] + item.height for item in items), default=2 * _BLOCK_MARGIN)
    return _Inside({id: top + start for id, top in tops.items()}, start + bottom - _BLOCK_MARGIN + FRAME_PADDING)


def _arrange_outside(blocks: Blocks, insides: Mapping[int, _Inside]) -> Tops:
    topics = [vertex.id for vertex in blocks.graph.vertices.values() if vertex.frame is None]
    lines = [line for line in blocks.lines if blocks.frame_of(line) is None]

    def on_frame(port: Port) -> tuple[str, float]:
        frame = blocks.graph.vertices[port.block].frame
        block, offset = _on_block(port)
        return (
            (block, offset)
            if frame is None
            else (_frame_id(frame), _FRAME_MARGIN + insides[frame].tops[block] + offset)
        )

    items = [
        *(_frame_item(blocks, frame, inside.height) for frame, inside in insides.items()),
        *_block_items(blocks, topics),
        *_line_items(blocks, lines),
    ]
    return arrange(items, [link for line in lines for link in _links(blocks, line, on_frame)])


def _frame_id(frame: int) -> str:
    return f"frame:{frame}"


def _frame_item(blocks: Blocks, frame: int, height: float) -> Item:
    columns = [blocks.columns[vertex.id] for vertex in blocks.graph.vertices.values() if vertex.frame == frame]
    return Item(_frame_id(frame), min(columns), max(columns), height + 2 * _FRAME_MARGIN)


def _block_items(blocks: Blocks, members: Iterable[str]) -> Iterable[Item]:
    for id in members:
        yield Item(id, blocks.columns[id], blocks.columns[id], blocks.height(id) + 2 * _BLOCK_MARGIN)


def _line_items(blocks: Blocks, lines: Iterable[Line]) -> Iterable[Item]:
    for line in lines:
        passed = blocks.passed_by(line)
        if passed:
            yield Item(line.id, passed[0], passed[-1], 2 * _LINE_MARGIN)


def _on_block(port: Port) -> tuple[str, float]:
    return port.block, port.offset + _BLOCK_MARGIN


def _links(blocks: Blocks, line: Line, place_of: PlaceOf) -> Iterable[Link]:
    (tail, tail_port), (head, head_port) = place_of(line.start), place_of(line.end)
    first, last = blocks.columns_of(line)
    if blocks.passed_by(line):
        yield Link(tail, tail_port, line.id, _LINE_MARGIN, first, line.weight)
        yield Link(line.id, _LINE_MARGIN, head, head_port, last - 1, line.weight)
    elif first != last:  # else it is a loop beside the column, and no reason to stand anywhere
        yield Link(tail, tail_port, head, head_port, first, line.weight)
