"""In which column each vertex of the picture stands: longest-path layering, so that every edge goes from left to right.

Called by picture_blocks.py. A column holds what is equally many steps away from the inputs, with two exceptions that
keep frames short and easy to read: sources wait for each other, and outputs stand at the end. Heights:
picture_heights.py.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Mapping

from streamfleet.topology.picture_graph import Edge, Graph, Kind

Columns = dict[str, int]


def find_columns(graph: Graph) -> Columns:
    """Columns count from 0, the leftmost."""
    at_least = _waiting_sources(graph, _longest_paths(graph, {}))
    at_least |= _final_sinks(graph, _longest_paths(graph, at_least))
    columns = _longest_paths(graph, at_least)
    return columns | _topics_beside_readers(graph, columns)


def _longest_paths(graph: Graph, at_least: Mapping[str, int]) -> Columns:
    before = _neighbours(graph.vertices, ((head, tail) for tail, head in graph.edges))
    columns: Columns = {}
    for id in graphlib.TopologicalSorter(before).static_order():
        columns[id] = max([at_least.get(id, 0), *(columns[tail] + 1 for tail in before[id])])
    return columns


def _neighbours(ids: Iterable[str], pairs: Iterable[Edge]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {id: [] for id in ids}
    for one, other in pairs:
        found[one].append(other)
    return found


def _waiting_sources(graph: Graph, columns: Columns) -> Columns:
    """A source that has time waits for the first records that its sub-topology gets from another one.

    Else the frame would begin far left of most of what is in it.
    """
    written = {head for tail, head in graph.edges if graph.vertices[tail].kind is Kind.SINK}
    fed = {head for tail, head in graph.edges if tail in written}
    sources = [vertex for vertex in graph.vertices.values() if vertex.kind is Kind.SOURCE]
    entries: dict[int | None, int] = {}
    for source in sources:
        if source.id in fed:
            entries[source.frame] = min(entries.get(source.frame, columns[source.id]), columns[source.id])
    latest = _latest(graph, columns)
    waiting = [source for source in sources if source.id not in fed and source.frame in entries]
    return {source.id: min(entries[source.frame], latest[source.id]) for source in waiting}


def _latest(graph: Graph, columns: Columns) -> Columns:
    """How far right each vertex could stand without moving the last of those behind it."""
    after = _neighbours(graph.vertices, graph.edges)
    latest: Columns = {}
    for id in graphlib.TopologicalSorter(after).static_order():
        latest[id] = min((latest[head] - 1 for head in after[id]), default=columns[id])
    return latest


def _final_sinks(graph: Graph, columns: Columns) -> Columns:
    """Sinks whose topic nobody here reads stand in the last column of their frame: there is its exit."""
    last: dict[int | None, int] = {}
    for vertex in graph.vertices.values():
        last[vertex.frame] = max(last.get(vertex.frame, 0), columns[vertex.id])
    read = {tail for tail, _ in graph.edges}
    finals = [graph.vertices[tail] for tail, head in graph.edges if head not in read]
    return {vertex.id: last[vertex.frame] for vertex in finals if vertex.kind is Kind.SINK}


def _topics_beside_readers(graph: Graph, columns: Columns) -> Columns:
    """Input topics follow a source that waits."""
    written = {head for _, head in graph.edges}
    moved: Columns = {}
    for topic, source in graph.edges:
        if topic not in written:
            moved[topic] = min(moved.get(topic, columns[source] - 1), columns[source] - 1)
    return moved
