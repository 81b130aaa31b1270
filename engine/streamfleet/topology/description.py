"""What a Topology says of itself, as values and as text. The text is the Java original's, so that tools and eyes that know it work.

Made by Topology.describe(); drawn by picture.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceDescription:
    name: str
    topics: tuple[str, ...]
    pattern: str | None
    successors: tuple[str, ...]

    def __str__(self) -> str:
        what = f"topics: [{', '.join(self.topics)}]" if self.pattern is None else f"topics: {self.pattern}"
        return f"Source: {self.name} ({what})\n      --> {_names(self.successors)}"


@dataclass(frozen=True)
class ProcessorDescription:
    name: str
    stores: tuple[str, ...]
    predecessors: tuple[str, ...]
    successors: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"Processor: {self.name} (stores: [{', '.join(self.stores)}])\n"
            f"      --> {_names(self.successors)}\n      <-- {_names(self.predecessors)}"
        )


@dataclass(frozen=True)
class SinkDescription:
    """`topic` is None when a function chooses it; `extractor` then names that function."""

    name: str
    topic: str | None
    extractor: str | None
    predecessors: tuple[str, ...]

    def __str__(self) -> str:
        what = f"extractor class: {self.extractor}" if self.topic is None else f"topic: {self.topic}"
        return f"Sink: {self.name} ({what})\n      <-- {_names(self.predecessors)}"


NodeDescription = SourceDescription | ProcessorDescription | SinkDescription


@dataclass(frozen=True)
class SubTopologyDescription:
    """Nodes by number of descendants (most first), then by name."""

    id: int
    nodes: tuple[NodeDescription, ...]

    def __str__(self) -> str:
        return f"Sub-topology: {self.id}\n" + "".join(f"    {node}\n" for node in self.nodes)


@dataclass(frozen=True)
class GlobalStoreDescription:
    """A global store takes a sub-topology number, but no tasks."""

    id: int
    source: SourceDescription
    processor: ProcessorDescription

    def __str__(self) -> str:
        return f"Sub-topology: {self.id} for global store (will not generate tasks)\n    {self.source}\n    {self.processor}"


@dataclass(frozen=True)
class TopologyDescription:
    sub_topologies: tuple[SubTopologyDescription, ...]
    global_stores: tuple[GlobalStoreDescription, ...]

    def __str__(self) -> str:
        parts: list[SubTopologyDescription | GlobalStoreDescription] = [*self.sub_topologies, *self.global_stores]
        parts.sort(key=lambda part: part.id)
        return "Topologies:\n " + "".join(f"  {part}\n" for part in parts)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
