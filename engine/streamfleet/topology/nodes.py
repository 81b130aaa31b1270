"""The nodes of a Topology as values: source, processor, sink. Made by Topology, read by compiler/ and description."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from streamfleet.processor.api import ProcessorSupplier
from streamfleet.processor.timestamps import TimestampExtractor
from streamfleet.records import RecordContext
from streamfleet.serdes.api import Serde
from streamfleet.state.api import StateStore, StoreBuilder

OffsetReset = Literal["earliest", "latest", "none"] | timedelta
"""Where to begin without a committed offset; a timedelta means that long before now."""

TopicNameExtractor = Callable[[Any, Any, RecordContext], str]
"""f(key, value, record context) -> topic"""

StreamPartitioner = Callable[[str, Any, Any, int], Iterable[int] | None]
"""f(topic, key, value, number of partitions) -> the partitions to send to; None for the default, none at all to drop."""


@dataclass(frozen=True)
class SourceNode:
    """Reads topics. Exactly one of `topics` and `pattern` is set. A None serde means the configured default."""

    name: str
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: OffsetReset | None = None


@dataclass(frozen=True)
class ProcessorNode:
    """Runs a processor of `supplier`, once per task. `stores` are the names connected to it."""

    name: str
    supplier: ProcessorSupplier
    parents: tuple[str, ...]
    stores: tuple[str, ...] = ()


@dataclass(frozen=True)
class SinkNode:
    """Writes to a topic, or to the one a function names for each record."""

    name: str
    topic: str | TopicNameExtractor
    parents: tuple[str, ...]
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    partitioner: StreamPartitioner | None = None


Node = SourceNode | ProcessorNode | SinkNode


@dataclass(frozen=True)
class StoreEntry:
    """A store of a task with the topic that restores it: its changelog or, if `source_is_changelog`, an input topic of the app.
    `changelog` is None for a store without logging.
    """

    builder: StoreBuilder[StateStore]
    changelog: str | None
    source_is_changelog: bool = False

    @property
    def name(self) -> str:
        return self.builder.name


@dataclass(frozen=True)
class GlobalStoreEntry:
    """A global store with the source and the processor that feed it. It has no changelog: its topic is one."""

    builder: StoreBuilder[StateStore]
    source: SourceNode
    processor: ProcessorNode

    @property
    def name(self) -> str:
        return self.builder.name


@dataclass(frozen=True)
class ProcessorTopology:
    """What one task runs: a SubTopology, or in the test driver all of them, with the real names of all topics.

    `nodes` are in the order in which they were added, which is the order in which they are initialised; every parent comes
    before its children. `children` are in the order in which a forward visits them. `stores` are in the order in which they are
    opened and flushed. Global stores are shared by all tasks of a process and listed with each.
    """

    nodes: tuple[Node, ...]
    children: dict[str, tuple[str, ...]]
    stores: tuple[StoreEntry, ...]
    global_stores: tuple[GlobalStoreEntry, ...]

    @property
    def sources(self) -> tuple[SourceNode, ...]:
        return tuple(n for n in self.nodes if isinstance(n, SourceNode))
