"""A TopologyDescription as one graph: what is drawn, and what is connected to what. Nothing here has a place yet.

Called by picture.py. Nodes of sub-topologies and the topics between them become vertices; stores stay attached to the
nodes that use them. Edges never close a circle: an app that reads what it writes has that write under `feedback`
instead.
"""

from __future__ import annotations

import graphlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from streamfleet.errors import TopologyError
from streamfleet.topology.description import (
    NodeDescription,
    ProcessorDescription,
    SinkDescription,
    SourceDescription,
    TopologyDescription,
)

Edge = tuple[str, str]

_FOREIGN_KEY_TOPIC = re.compile(r"subscription-(registration|response)(-\d{10})?-topic$", re.IGNORECASE)


class Kind(Enum):
    """What a vertex is. The value is how it is called in the picture."""

    SOURCE = "source"
    PROCESSOR = "processor"
    SINK = "sink"
    INPUT = "input topic"
    OUTPUT = "output topic"
    REPARTITION = "repartition topic"
    FOREIGN_KEY = "foreign-key join topic"
    INTERMEDIATE = "intermediate topic"
    PATTERN = "input topics by pattern"
    CHOSEN = "topic chosen per record"

    @property
    def is_topic(self) -> bool:
        return self not in (Kind.SOURCE, Kind.PROCESSOR, Kind.SINK)

    @property
    def is_internal(self) -> bool:
        return self in (Kind.REPARTITION, Kind.FOREIGN_KEY)


@dataclass(frozen=True)
class Vertex:
    """A node, or a topic. `frame` is the number of the sub-topology around it; topics have none."""

    id: str
    kind: Kind
    name: str
    frame: int | None = None


@dataclass(frozen=True)
class Store:
    """`users` are vertex ids, the global store's own processor first."""

    name: str
    is_global: bool
    users: tuple[str, ...]


@dataclass(frozen=True)
class Graph:
    """Vertices by id; edges in the order of the description."""

    frames: Mapping[int, bool]
    """Numbers of sub-topologies; True for the feed of a global store."""

    vertices: Mapping[str, Vertex]
    edges: tuple[Edge, ...]
    feedback: tuple[Edge, ...]
    stores: tuple[Store, ...]


def to_graph(description: TopologyDescription) -> Graph:
    """The graph of a whole topology."""
    parts = _parts(description)
    nodes = [(number, node) for number, (_, members) in parts.items() for node in members]
    vertices = {_node_id(node.name): _node_vertex(number, node) for number, node in nodes}
    inside = [(_node_id(node.name), _node_id(child)) for _, node in nodes for child in _successors(node)]
    reads = [(topic, _node_id(node.name)) for _, node in nodes for topic in _read_topics(node)]
    writes = [(_node_id(node.name), _written_topic(node)) for _, node in nodes if isinstance(node, SinkDescription)]
    vertices |= _known_topics({topic for topic, _ in reads}, {topic for _, topic in writes})
    vertices |= _chosen_topics(node for _, node in nodes)
    _refuse_circles([*inside, *reads])
    edges, feedback = _split_feedback([*inside, *reads], writes)
    frames = {number: is_global for number, (is_global, _) in parts.items()}
    return Graph(frames, vertices, edges, feedback, _stores(nodes, frames))


def _parts(description: TopologyDescription) -> dict[int, tuple[bool, tuple[NodeDescription, ...]]]:
    parts: dict[int, tuple[bool, tuple[NodeDescription, ...]]] = {}
    for part in description.sub_topologies:
        parts[part.id] = (False, part.nodes)
    for feed in description.global_stores:
        parts[feed.id] = (True, (feed.source, feed.processor))
    return {number: part for number, part in sorted(parts.items()) if part[1]}


def _node_id(name: str) -> str:
    return f"node:{name}"


def _node_vertex(number: int, node: NodeDescription) -> Vertex:
    kinds = {SourceDescription: Kind.SOURCE, ProcessorDescription: Kind.PROCESSOR, SinkDescription: Kind.SINK}
    return Vertex(_node_id(node.name), kinds[type(node)], node.name, number)


def _successors(node: NodeDescription) -> tuple[str, ...]:
    return () if isinstance(node, SinkDescription) else node.successors


def _read_topics(node: NodeDescription) -> list[str]:
    if not isinstance(node, SourceDescription):
        return []
    return [f"topic:{topic}" for topic in node.topics] if node.pattern is None else [f"pattern:{node.pattern}"]


def _written_topic(sink: SinkDescription) -> str:
    # Two functions may well have the same name (<lambda>), so each such sink has an unknown topic of its own.
    return f"topic:{sink.topic}" if sink.topic is not None else f"chosen:{sink.name}"


def _chosen_topics(nodes: Iterable[NodeDescription]) -> dict[str, Vertex]:
    sinks = [node for node in nodes if isinstance(node, SinkDescription) and node.topic is None]
    ids = {_written_topic(sink): sink.extractor or "unknown" for sink in sinks}
    return {id: Vertex(id, Kind.CHOSEN, extractor) for id, extractor in ids.items()}


def _known_topics(read: set[str], written: set[str]) -> dict[str, Vertex]:
    found: dict[str, Vertex] = {}
    for id in sorted(read | written):
        scheme, name = id.split(":", 1)
        if scheme == "pattern":
            found[id] = Vertex(id, Kind.PATTERN, name)
        elif scheme == "topic":
            found[id] = Vertex(id, _topic_kind(name, is_read=id in read, is_written=id in written), name)
    return found


def _topic_kind(name: str, *, is_read: bool, is_written: bool) -> Kind:
    if not is_written:
        return Kind.INPUT
    if not is_read:
        return Kind.OUTPUT
    if name.endswith("-repartition"):
        return Kind.REPARTITION
    return Kind.FOREIGN_KEY if _FOREIGN_KEY_TOPIC.search(name) else Kind.INTERMEDIATE


def _refuse_circles(edges: list[Edge]) -> None:
    order: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for tail, head in edges:
        order.add(head, tail)
    try:
        order.prepare()
    except graphlib.CycleError as error:
        circle = ", ".join(id.split(":", 1)[1] for id in error.args[1])
        raise TopologyError(
            f"processors forward to each other in a circle: {circle}", hint="send one of them through a topic"
        ) from error


def _split_feedback(edges: list[Edge], writes: list[Edge]) -> tuple[tuple[Edge, ...], tuple[Edge, ...]]:
    """Writes are added one by one; one that leads back to its own sink is feedback."""
    heads: dict[str, list[str]] = {}
    for tail, head in edges:
        heads.setdefault(tail, []).append(head)
    feedback: list[Edge] = []
    for sink, topic in writes:
        if _reaches(heads, topic, sink):
            feedback.append((sink, topic))
        else:
            heads.setdefault(sink, []).append(topic)
    forward = [*edges, *(write for write in writes if write not in feedback)]
    return tuple(dict.fromkeys(forward)), tuple(feedback)


def _reaches(heads: Mapping[str, list[str]], start: str, goal: str) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        for head in heads.get(waiting.pop(), ()):
            if head not in seen:
                seen.add(head)
                waiting.append(head)
    return goal in seen


def _stores(nodes: list[tuple[int, NodeDescription]], frames: Mapping[int, bool]) -> tuple[Store, ...]:
    users: dict[str, list[str]] = {}
    global_stores: set[str] = set()
    # Global stores' own processors come first, so that they are the ones that the store is drawn at.
    for number, node in sorted(nodes, key=lambda pair: not frames[pair[0]]):
        for store in node.stores if isinstance(node, ProcessorDescription) else ():
            users.setdefault(store, []).append(_node_id(node.name))
            if frames[number]:
                global_stores.add(store)
    return tuple(Store(name, name in global_stores, tuple(dict.fromkeys(ids))) for name, ids in users.items())
