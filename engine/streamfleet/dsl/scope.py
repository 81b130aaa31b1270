"""What all objects of one StreamsBuilder share, and what every stream and table has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from streamfleet.dsl.graph import GraphNode
from streamfleet.dsl.names import NameProvider
from streamfleet.dsl.streams_graph import StreamsGraph
from streamfleet.serdes.api import Serde

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class BuilderScope:
    """The graph that calls add to, and the names they take."""

    graph: StreamsGraph = field(default_factory=StreamsGraph)
    names: NameProvider = field(default_factory=NameProvider)


class StreamLike(Generic[K, V]):
    """A stream, table or grouping: `node` is the last GraphNode, `sources` the source nodes that its data comes from."""

    def __init__(
        self,
        scope: BuilderScope,
        node: GraphNode,
        name: str,
        sources: frozenset[str],
        key_serde: Serde[Any] | None,
        value_serde: Serde[Any] | None,
    ) -> None:
        self._scope = scope
        self._node = node
        self._name = name
        self._sources = sources
        self._key_serde = key_serde
        self._value_serde = value_serde

    def _copartition_with(self, other: StreamLike[Any, Any]) -> frozenset[str]:
        """Declare that both must have the same partitions; returns the sources of the two."""
        sources = self._sources | other._sources
        self._scope.graph.copartition(sources)
        return sources

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name})"
