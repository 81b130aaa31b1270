"""StreamsGraph: all GraphNodes of a builder, from the first call of the DSL to the Topology they are written into."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from typing import Any

from streamfleet.config import StreamsConfig
from streamfleet.dsl.graph import GraphNode, RepartitionGraphNode, RootNode, SourceGraphNode
from streamfleet.errors import TopologyError
from streamfleet.topology.nodes import SourceNode
from streamfleet.topology.plan import check_asked_counts
from streamfleet.topology.topology import Topology


class StreamsGraph:
    """All GraphNodes of a builder, and the groups of sources that must be co-partitioned."""

    def __init__(self) -> None:
        self.root: GraphNode = RootNode("root")
        self._priorities = itertools.count(1)
        self._copartitioned: list[frozenset[str]] = []
        self._renamed: dict[str, str] = {}

    def add(self, parent: GraphNode, child: GraphNode) -> None:
        """Adding a node again, below another parent, moves it behind everything added so far."""
        parent.add_child(child)
        child.priority = next(self._priorities)

    def copartition(self, sources: frozenset[str]) -> None:
        self._copartitioned.append(sources)

    def rename_source(self, name: str, new_name: str) -> None:
        """A source was replaced by another one."""
        self._renamed[name] = new_name

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        """May be called again: every call writes everything. Equal sources must have been merged."""
        self._settle_null_keys()
        for node in self.nodes():
            node.settle_versions()
        self._write_nodes(topology, config)
        for group in self._copartitioned:
            topology.copartition({self._renamed.get(name, name) for name in group})
        check_asked_counts(topology)

    def nodes(self) -> Iterator[GraphNode]:
        seen: set[int] = set()
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                waiting += node.children
                yield node

    def _write_nodes(self, topology: Topology, config: StreamsConfig | None) -> None:
        order = itertools.count()
        written: set[int] = set()
        queue: list[tuple[int, int, GraphNode]] = [(0, next(order), self.root)]
        while queue:
            _, _, node = heapq.heappop(queue)
            if id(node) in written or not all(id(parent) in written for parent in node.parents):
                continue
            node.write(topology, config)
            written.add(id(node))
            for child in node.children:
                heapq.heappush(queue, (child.priority, next(order), child))

    def merge_equal_sources(self) -> None:
        """Streams of the same topics share one source node, so that a topic is read once."""
        kept: dict[Any, SourceGraphNode] = {}
        for node in list(self.root.children):
            if not isinstance(node, SourceGraphNode):
                continue
            same = self._equal_source(kept, node.source)
            if same is None:
                kept.update(dict.fromkeys([node.source.pattern] if node.source.pattern else node.source.topics, node))
                continue
            if same.source.offset_reset != node.source.offset_reset:
                raise TopologyError(
                    f"sources {same.name} and {node.name} read the same topics, but with different offset resets",
                    hint="use one offset_reset for a topic, or read it once",
                )
            for child in list(node.children):
                node.remove_child(child)
                same.add_child(child)
            self.root.remove_child(node)
            self._renamed[node.name] = same.name

    @staticmethod
    def _equal_source(kept: dict[Any, SourceGraphNode], source: SourceNode) -> SourceGraphNode | None:
        if source.pattern is not None:
            return kept.get(source.pattern)
        for topic in source.topics:
            other = kept.get(topic)
            if other is None:
                continue
            if set(other.source.topics) != set(source.topics):
                raise TopologyError(
                    f"sources {other.name} and {source.name} read overlapping but not equal sets of topics",
                    hint=f"read {topic} in one stream only, and use that stream twice",
                )
            return other
        return None

    def _settle_null_keys(self) -> None:
        seen: dict[int, bool] = {}

        def leads_to_relaxed_join(node: GraphNode) -> bool:
            if id(node) not in seen:
                seen[id(node)] = False
                below = [child.relaxes_null_keys | leads_to_relaxed_join(child) for child in node.children]
                seen[id(node)] = any(below)
            if isinstance(node, RepartitionGraphNode):
                node.keeps_null_keys = seen[id(node)]
            return seen[id(node)]

        leads_to_relaxed_join(self.root)
