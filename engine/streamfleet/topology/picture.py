"""A topology as a picture: one SVG file that needs nothing else. Called by Topology.to_svg().

Turns a TopologyDescription into SVG text in three steps, each in its own module: picture_graph.py (what is connected),
picture_layout.py (where it is), picture_shapes.py (how it is drawn, in the colours of picture_style.py). Left to right:
the topics read, the sub-topologies as frames, the topics written; stores hang under the processor that fills them. The
same description always gives the same text.
"""

from __future__ import annotations

import hashlib

from streamfleet.topology import picture_legend
from streamfleet.topology import picture_shapes as shapes
from streamfleet.topology.description import TopologyDescription
from streamfleet.topology.picture_graph import Graph, Kind, to_graph
from streamfleet.topology.picture_labels import head_width, shorten
from streamfleet.topology.picture_layout import BORDER, Box, Layout, lay_out
from streamfleet.topology.picture_style import CLASS, style_sheet

_HEADING_HEIGHT = 26.0
_HEADING_PX = 18
_WIDENED_FOR_HEADING = 420.0  # a small picture may grow that wide, a longer title is shortened


def to_svg(description: TopologyDescription, *, title: str | None = None) -> str:
    """The whole picture. `title` is shown above it and read out by screen readers."""
    graph = to_graph(description)
    layout = lay_out(graph)
    legend = picture_legend.draw(graph)
    top = _HEADING_HEIGHT if title else 0.0
    width = max(
        layout.width, legend.width, min(head_width(title or "", _HEADING_PX) + 2 * BORDER + 1, _WIDENED_FOR_HEADING)
    )
    height = top + layout.height + legend.height
    parts = [
        _opening(description, title, _summary(graph), width, height),
        f"<style>{style_sheet()}</style>",
        f'<rect class="canvas" width="{width:.0f}" height="{height:.0f}" rx="10"/>',
        _heading(title, width) if title else "",
        f'<g transform="translate(0 {top:.0f})">',
        *_body(graph, layout),
        "</g>",
        f'<g transform="translate(0 {top + layout.height:.0f})">{legend.svg}</g>',
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _opening(description: TopologyDescription, title: str | None, summary: str, width: float, height: float) -> str:
    # A page may hold several pictures; ids must not meet.
    key = hashlib.sha256(f"{title}\n{description}".encode(errors="surrogatepass")).hexdigest()[:10]
    name = shapes.escape(title or "Topology")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{CLASS}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-labelledby="t{key} d{key}">\n'
        f'<title id="t{key}">{name}</title>\n<desc id="d{key}">{shapes.escape(summary)}</desc>'
    )


def _summary(graph: Graph) -> str:
    topics = [vertex for vertex in graph.vertices.values() if vertex.kind.is_topic]
    read = [topic.name for topic in topics if topic.kind in (Kind.INPUT, Kind.PATTERN)]
    written = [topic.name for topic in topics if topic.kind is Kind.OUTPUT]
    nodes = len(graph.vertices) - len(topics)
    counts = [
        _count(len(graph.frames), "sub-topology", "sub-topologies"),
        _count(nodes, "node", "nodes"),
        _count(len(graph.stores), "store", "stores"),
    ]
    reads = f" Reads {', '.join(read)}." if read else ""
    writes = f" Writes {', '.join(written)}." if written else ""
    return f"{', '.join(counts)}.{reads}{writes}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _heading(title: str, width: float) -> str:
    fitted = shorten(title, width - 2 * BORDER, lambda part: head_width(part, _HEADING_PX))
    return f'<text class="heading ink" x="{BORDER:.0f}" y="34">{shapes.escape(fitted)}</text>'


def _body(graph: Graph, layout: Layout) -> list[str]:
    homes: dict[str, list[Box]] = {home: [] for home in layout.vertices}
    for store in graph.stores:
        homes[layout.homes[store.name]].append(layout.stores[store.name])
    used: dict[str, list[str]] = {}
    for store in graph.stores:
        for user in store.users:
            used.setdefault(user, []).append(store.name)
    return [
        *(shapes.frame(n, layout.frames[n], is_global=is_global) for n, is_global in graph.frames.items()),
        *(shapes.stem(layout.vertices[home], boxes) for home, boxes in homes.items() if boxes),
        *map(shapes.access, layout.accesses),
        *map(shapes.feedback, layout.feedback),
        *map(shapes.flow, layout.flows),
        *(shapes.vertex(v, layout.vertices[v.id], stores=tuple(used.get(v.id, ()))) for v in graph.vertices.values()),
        *(shapes.store(store, layout.stores[store.name]) for store in graph.stores),
    ]
