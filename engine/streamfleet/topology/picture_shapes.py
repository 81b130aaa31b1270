"""SVG text of each thing in the picture: frames, boxes, topics, stores, lines. Called by picture.py.

Knows shapes and what is written on them; places come from picture_layout.py, colours from picture_style.py.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from streamfleet.topology import picture_labels as labels
from streamfleet.topology.picture_graph import Kind, Store, Vertex
from streamfleet.topology.picture_layout import NODE_PADDING, STORE_INDENT, TOPIC_PADDING, Box, Point, Route

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TOPIC_END = 8.0  # half the depth of a lying cylinder's end
_STORE_END = 5.0  # the same of a standing one
_ARROW = 7.0


def escape(text: str) -> str:
    """For text and attributes alike; white space is written as references, which attributes keep as it is."""
    return html.escape(_NOT_IN_XML.sub("\ufffd", text)).translate({ord(char): f"&#{ord(char)};" for char in "\t\n\r"})


def _group(classes: str, name: str, tooltip: str, parts: Iterable[str]) -> str:
    body = "".join(parts)
    return f'<g class="{classes}" data-name="{escape(name)}"><title>{escape(tooltip)}</title>{body}</g>'


def frame(number: int, box: Box, *, is_global: bool) -> str:
    """A sub-topology, with its number."""
    caption = f"Sub-topology {number}" + (" · global store" if is_global else "")
    tooltip = f"{caption}: filled on every instance, has no tasks" if is_global else caption
    classes = "frame global" if is_global else "frame"
    rect = f'<rect class="{classes}" {_place(box)} rx="12"/>'
    words = f'<text class="caption quiet" x="{_px(box.x + 16)}" y="{_px(box.y + 20)}">{caption}</text>'
    return _group("sub-topology", str(number), tooltip, [rect, words])


def vertex(item: Vertex, box: Box, *, stores: tuple[str, ...]) -> str:
    """A node or a topic."""
    tooltip = f"{item.name}\n{item.kind.value}" + (f", stores: {', '.join(stores)}" if stores else "")
    label, middle = labels.vertex_label(item), box.x + box.width / 2
    if item.kind.is_topic:
        shape = _lying_cylinder(box, "topic internal" if item.kind.is_internal else "topic")
        # The rim takes room at the right end only.
        text = _label(label, middle - _TOPIC_END / 2, box.y, box.width - 2 * TOPIC_PADDING)
        return _group("topic-shape", item.name, tooltip, [shape, *text])
    classes = "processor stateful" if stores else item.kind.value
    radius = 9.0 if item.kind is Kind.PROCESSOR else box.height / 2
    rect = f'<rect class="{classes}" {_place(box)} rx="{_px(radius)}"/>'
    return _group("node-shape", item.name, tooltip, [rect, *_label(label, middle, box.y, box.width - 2 * NODE_PADDING)])


def store(item: Store, box: Box) -> str:
    """A store, global or not."""
    label = labels.store_label(item.name, is_global=item.is_global)
    kind = "global store" if item.is_global else "state store"
    shape = _standing_cylinder(box, "store global" if item.is_global else "store")
    text = _label(label, box.x + box.width / 2, box.y + 5, box.width - 2 * NODE_PADDING + 6)
    return _group("store-shape", item.name, f"{item.name}\n{kind}", [shape, *text])


def stem(home: Box, stores: Iterable[Box]) -> str:
    """What hangs stores on their processor."""
    x = home.x + STORE_INDENT / 2
    ticks = "".join(f"M{_px(x)} {_px(home.bottom)}V{_px(b.y + b.height / 2)}H{_px(b.x)}" for b in stores)
    return f'<path class="access stem" d="{ticks}"/>'


def flow(route: Route) -> str:
    """The way records take."""
    return _line(route, "flow", _bends(route.points)) + _head(route.points[-1], "head")


def access(route: Route) -> str:
    """Joins a store to a further processor that uses it."""
    (x, y), (end_x, end_y) = route.points[0], route.points[-1]
    if end_x - x > STORE_INDENT:
        return _line(route, "access", _bends(route.points))
    out = min(x, end_x) - 26  # both ends look left: a loop beside the column
    return _line(
        route, "access", f"M{_px(x)} {_px(y)}C{_px(out)} {_px(y)} {_px(out)} {_px(end_y)} {_px(end_x)} {_px(end_y)}"
    )


def feedback(route: Route) -> str:
    """A write to a topic that stands further left."""
    (x, y), *corners = route.points
    path = f"M{_px(x)} {_px(y)}" + "".join(f"L{_px(x)} {_px(y)}" for x, y in corners)
    return _line(route, "feedback", path) + _head(route.points[-1], "feedback-head")


def _line(route: Route, kind: str, path: str) -> str:
    ends = f'data-from="{escape(route.tail)}" data-to="{escape(route.head)}"'
    return f'<path class="{kind}" {ends} d="{path}"/>'


def _bends(points: tuple[Point, ...]) -> str:
    (x, y), *others = points
    path = f"M{_px(x)} {_px(y)}"
    for at, (to_x, to_y) in enumerate(others):
        if at % 2 or y == to_y:
            path += f"L{_px(to_x)} {_px(to_y)}"
        else:
            middle = (x + to_x) / 2
            path += f"C{_px(middle)} {_px(y)} {_px(middle)} {_px(to_y)} {_px(to_x)} {_px(to_y)}"
        x, y = to_x, to_y
    return path


def _head(tip: Point, kind: str) -> str:
    x, y = tip
    back, half = x - _ARROW, _ARROW / 2
    return f'<path class="{kind}" d="M{_px(x)} {_px(y)}L{_px(back)} {_px(y - half)}V{_px(y + half)}Z"/>'


def _lying_cylinder(box: Box, classes: str, end: float = _TOPIC_END) -> str:
    left, right, depth, half = box.x + end, box.right - end, _px(end), _px(box.height / 2)
    body = (
        f"M{_px(left)} {_px(box.y)}H{_px(right)}A{depth} {half} 0 0 1 {_px(right)} {_px(box.bottom)}H{_px(left)}"
        f"A{depth} {half} 0 0 1 {_px(left)} {_px(box.y)}Z"
    )
    rim = f"M{_px(right)} {_px(box.y)}A{depth} {half} 0 0 0 {_px(right)} {_px(box.bottom)}"
    return f'<path class="{classes}" d="{body}"/><path class="{classes} rim" d="{rim}"/>'


def _standing_cylinder(box: Box, classes: str, end: float = _STORE_END) -> str:
    top, bottom, depth, half = box.y + end, box.bottom - end, _px(end), _px(box.width / 2)
    body = (
        f"M{_px(box.x)} {_px(top)}A{half} {depth} 0 0 1 {_px(box.right)} {_px(top)}V{_px(bottom)}"
        f"A{half} {depth} 0 0 1 {_px(box.x)} {_px(bottom)}Z"
    )
    rim = f"M{_px(box.x)} {_px(top)}A{half} {depth} 0 0 0 {_px(box.right)} {_px(top)}"
    return f'<path class="{classes}" d="{body}"/><path class="{classes} rim" d="{rim}"/>'


def _label(label: labels.Label, middle: float, top: float, room: float) -> list[str]:
    (head, size_px), small = labels.fit_head(label.head, room), labels.fit_note(label.note, room)
    word = "word ink" if size_px == labels.HEAD_PX else "word small ink"
    note = "quiet name" if label.note_is_name else "quiet"
    return [
        f'<text class="{word}" x="{_px(middle)}" y="{_px(top + 20)}">{escape(head)}</text>',
        f'<text class="{note}" x="{_px(middle)}" y="{_px(top + 35)}">{escape(small)}</text>',
    ]


def _place(box: Box) -> str:
    return f'x="{_px(box.x)}" y="{_px(box.y)}" width="{_px(box.width)}" height="{_px(box.height)}"'


def _px(value: float) -> str:
    """At most one decimal: finer places cannot be seen, and would make the text differ between machines."""
    return f"{value:.1f}".removesuffix(".0")


def box_swatch(classes: str, radius: int) -> str:
    """A tiny node, for the legend."""
    return f'<rect class="{classes}" y="0" width="20" height="14" rx="{radius}"/>'


def topic_swatch(classes: str) -> str:
    """A tiny topic, for the legend."""
    return _lying_cylinder(Box(0, 0, 20, 14), classes, end=4)


def store_swatch(classes: str) -> str:
    """A tiny store, for the legend."""
    return _standing_cylinder(Box(2, -1, 16, 16), classes, end=3)


def line_swatch(classes: str) -> str:
    """A short line, for the legend."""
    return f'<path class="{classes}" d="M0 7H20"/>'
