"""The line under the picture that says what its shapes mean; only those that occur. Called by picture.py."""

from __future__ import annotations

from dataclasses import dataclass

from streamfleet.topology import picture_shapes as shapes
from streamfleet.topology.picture_graph import Graph, Kind
from streamfleet.topology.picture_labels import head_width

_LEFT = 26.0
_HEIGHT = 36.0
_SWATCH = 20.0
_TEXT_PX = 11


@dataclass(frozen=True)
class Legend:
    """Drawn, and how much room it takes."""

    svg: str
    width: float
    height: float


def draw(graph: Graph) -> Legend:
    """One entry beside the other."""
    x = _LEFT
    parts: list[str] = []
    for words, swatch in _entries(graph):
        parts.append(f'<g transform="translate({x:.0f} 0)">{swatch}')
        parts.append(f'<text class="legend quiet" x="{_SWATCH + 7:.0f}" y="11">{words}</text></g>')
        x += _SWATCH + 7 + head_width(words, _TEXT_PX) * 0.8 + 18
    return Legend("".join(parts), x + _LEFT - 18, _HEIGHT) if parts else Legend("", 0.0, 0.0)


def _entries(graph: Graph) -> list[tuple[str, str]]:
    kinds = {vertex.kind for vertex in graph.vertices.values()}
    used = {user for store in graph.stores for user in store.users}
    plain = any(v.kind is Kind.PROCESSOR and v.id not in used for v in graph.vertices.values())
    entries = [
        (any(k.is_topic and not k.is_internal for k in kinds), "topic", shapes.topic_swatch("topic")),
        (any(k.is_internal for k in kinds), "internal topic", shapes.topic_swatch("topic internal")),
        (bool(kinds & {Kind.SOURCE, Kind.SINK}), "source, sink", shapes.box_swatch("source", 7)),
        (plain, "processor", shapes.box_swatch("processor", 4)),
        (bool(used), "processor with state", shapes.box_swatch("processor stateful", 4)),
        (any(not s.is_global for s in graph.stores), "state store", shapes.store_swatch("store")),
        (any(s.is_global for s in graph.stores), "global store", shapes.store_swatch("store global")),
        (bool(graph.feedback), "written back", shapes.line_swatch("feedback")),
    ]
    return [(words, swatch) for occurs, words, swatch in entries if occurs]
