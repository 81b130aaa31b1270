"""How the nodes of a Topology fall into SubTopologies, and what each of them says of itself.

Nodes belong together if one forwards to the other, or if they share a store. A repartition topic cuts: its sink and its source
are connected only through Kafka. Numbers go by the first node of each, in the order in which nodes were added; a global store
takes a number as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamfleet.topology.description import (
    GlobalStoreDescription,
    NodeDescription,
    ProcessorDescription,
    SinkDescription,
    SourceDescription,
    SubTopologyDescription,
    TopologyDescription,
)
from streamfleet.topology.nodes import GlobalStoreEntry, Node, ProcessorNode, SinkNode, SourceNode


@dataclass(frozen=True)
class SubTopology:
    """A connected part of a Topology. `global_store` is set if it is only the feed of one: it has no tasks then."""

    id: int
    nodes: tuple[Node, ...]
    global_store: str | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(s for node in self.nodes if isinstance(node, ProcessorNode) for s in node.stores))

    @property
    def content_id(self) -> str:
        """Names the state this part has, whatever its number is: the same stores (stateless: the same sources) give the same id."""
        sources = [node for node in self.nodes if isinstance(node, SourceNode)]
        topics = [t for s in sources for t in ((s.pattern.pattern,) if s.pattern is not None else s.topics)]
        return hashlib.sha256("\n".join(sorted(self.stores or topics)).encode()).hexdigest()[:16]


class _Groups:
    """Union-find over node names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._parent = {name: name for name in names}

    def find(self, name: str) -> str:
        root = name
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[name] != root:
            self._parent[name], name = root, self._parent[name]
        return root

    def unite(self, one: str, other: str) -> None:
        self._parent[self.find(one)] = self.find(other)


def find_sub_topologies(
    order: Iterable[str], nodes: Mapping[str, Node], global_stores: Mapping[str, GlobalStoreEntry]
) -> tuple[SubTopology, ...]:
    """`order` has the names of all nodes and of the sources of global stores, as they were added."""
    groups = _group(nodes)
    members: dict[str, list[Node]] = {}
    for node in nodes.values():
        members.setdefault(groups.find(node.name), []).append(node)
    feeds = {entry.source.name: entry for entry in global_stores.values()}
    found: dict[str, SubTopology] = {}
    for name in order:
        root = name if name in feeds else groups.find(name)
        if root in found:
            continue
        if name in feeds:
            entry = feeds[name]
            found[root] = SubTopology(len(found), (entry.source, entry.processor), entry.name)
        else:
            found[root] = SubTopology(len(found), tuple(members[root]))
    return tuple(found.values())


def _group(nodes: Mapping[str, Node]) -> _Groups:
    groups = _Groups(nodes)
    users: dict[str, str] = {}
    for node in nodes.values():
        for parent in () if isinstance(node, SourceNode) else node.parents:
            groups.unite(node.name, parent)
        for store in node.stores if isinstance(node, ProcessorNode) else ():
            groups.unite(node.name, users.setdefault(store, node.name))
    return groups


def describe(sub_topologies: Iterable[SubTopology]) -> TopologyDescription:
    parts: list[SubTopologyDescription] = []
    feeds: list[GlobalStoreDescription] = []
    for sub_topology in sub_topologies:
        nodes = _describe_nodes(sub_topology.nodes)
        if sub_topology.global_store is None:
            parts.append(SubTopologyDescription(sub_topology.id, nodes))
            continue
        source, processor = nodes
        assert isinstance(source, SourceDescription) and isinstance(processor, ProcessorDescription)
        feeds.append(GlobalStoreDescription(sub_topology.id, source, processor))
    return TopologyDescription(tuple(parts), tuple(feeds))


def _describe_nodes(nodes: tuple[Node, ...]) -> tuple[NodeDescription, ...]:
    successors: dict[str, list[str]] = {node.name: [] for node in nodes}
    for node in nodes:
        for parent in _parents(node):
            successors[parent].append(node.name)
    weights: dict[str, int] = {}
    for node in reversed(nodes):  # children come after their parents
        weights[node.name] = 1 + sum(weights[child] for child in successors[node.name])
    ordered = sorted(nodes, key=lambda node: (-weights[node.name], node.name))
    return tuple(_describe_node(node, tuple(successors[node.name])) for node in ordered)


def _describe_node(node: Node, successors: tuple[str, ...]) -> NodeDescription:
    if isinstance(node, SourceNode):
        pattern = None if node.pattern is None else node.pattern.pattern
        return SourceDescription(node.name, node.topics, pattern, successors)
    if isinstance(node, SinkNode):
        if isinstance(node.topic, str):
            return SinkDescription(node.name, node.topic, None, _parents(node))
        return SinkDescription(node.name, None, extractor_name(node.topic), _parents(node))
    return ProcessorDescription(node.name, node.stores, _parents(node), successors)


def _parents(node: Node) -> tuple[str, ...]:
    """Each once, also if it was named twice."""
    return () if isinstance(node, SourceNode) else tuple(dict.fromkeys(node.parents))


def extractor_name(extractor: object) -> str:
    """What a dynamic sink is shown as: the function's own name, or that of its class."""
    return getattr(extractor, "__qualname__", None) or type(extractor).__qualname__
