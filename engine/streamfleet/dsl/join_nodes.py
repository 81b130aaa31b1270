"""GraphNodes of joins: several processors each, which belong together."""

from __future__ import annotations

from collections.abc import Sequence

from streamfleet.config import StreamsConfig
from streamfleet.dsl.graph import GraphNode, Operator, OwnedStore, ProcessorGraphNode
from streamfleet.dsl.materialized import StoreSpec
from streamfleet.errors import OptionError
from streamfleet.state.record_buffer import RecordBufferBuilder
from streamfleet.topology.topology import Topology


class StreamTableJoinGraphNode(ProcessorGraphNode):
    """A stream joined with a table or global table; with grace, over a buffer of its own, if the table has enough history."""

    def __init__(
        self,
        name: str,
        operator: Operator,
        stores: Sequence[str],
        *,
        left: bool,
        buffer: RecordBufferBuilder | None = None,
    ) -> None:
        super().__init__(name, operator, stores=stores, builders=() if buffer is None else (buffer,))
        self.relaxes_null_keys = left
        self.buffer = buffer

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        super().write(topology, config)
        if self.buffer is None:
            return
        for store in self.stores:
            history_ms = getattr(topology.stores[store], "history_retention_ms", None)
            if history_ms is None:
                raise not_versioned(self.name)
            if history_ms < self.buffer.grace_ms:
                raise OptionError(
                    f"join {self.name} waits {self.buffer.grace_ms} ms, but versioned store {store} remembers only {history_ms} ms",
                    hint="raise the store's history_retention, or shorten the grace",
                )


def not_versioned(name: str) -> OptionError:
    return OptionError(
        f"join {name} has a grace period, but its table has no history",
        hint="keep the table in a versioned store: materialized=Materialized(Stores.versioned_key_value(...))",
    )


class TableJoinGraphNode(GraphNode):
    """Two tables joined: a processor for the updates of each side, and one that merges their results."""

    def __init__(
        self,
        merge: str,
        merge_operator: Operator,
        spec: StoreSpec | None,
        this_side: tuple[str, Operator, str, Sequence[str]],
        other_side: tuple[str, Operator, str, Sequence[str]],
    ) -> None:
        """A side is: node name, operator, parent node name, stores read on the opposite side."""
        super().__init__(merge)
        self.merge_operator = merge_operator
        self.spec = spec
        self.is_versioned = spec is not None and spec.is_versioned
        self.sides = (this_side, other_side)

    def settle_versions(self) -> None:
        versioned = {parent.name for parent in self.parents if parent.has_versions}
        for _, operator, parent, _ in self.sides:
            operator.uses_versions = parent in versioned  # type: ignore[attr-defined]  # a TableJoinOperator

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        for name, operator, parent, _ in self.sides:
            topology.add_operator(name, operator, parent)
        topology.add_operator(self.name, self.merge_operator, *(name for name, *_ in self.sides))
        if self.spec is not None:
            topology.add_state_store(self.spec.builder(config), self.name)
        for name, _, _, stores in self.sides:
            topology.connect_processor_and_state_stores(name, *stores)


class StreamJoinGraphNode(GraphNode):
    """Two streams joined: a processor for the records of each side, and one that merges their results. The processors that keep
    the records are nodes of their own, added before this one.
    """

    def __init__(
        self,
        merge: str,
        merge_operator: Operator,
        this_side: tuple[str, Operator, str, str],
        other_side: tuple[str, Operator, str, str],
        waiting: OwnedStore | None,
        self_join: Operator,
        *,
        is_relaxed: bool,
    ) -> None:
        """A side is: node name, operator, name of the node that keeps its records, store of the opposite side."""
        super().__init__(merge)
        self.merge_operator = merge_operator
        self.sides = (this_side, other_side)
        self.waiting = waiting
        self.self_join = self_join
        self.is_self_join = False
        """Set by the optimizer: both sides are the same stream."""
        self.relaxes_null_keys = is_relaxed

    def write(self, topology: Topology, config: StreamsConfig | None) -> None:
        if self.is_self_join:
            _, _, windowed, _ = self.sides[0]
            topology.add_operator(self.name, self.self_join, windowed)
            topology.connect_processor_and_state_stores(self.name, self.sides[1][3])
            return
        for name, operator, windowed, _ in self.sides:
            topology.add_operator(name, operator, windowed)
        topology.add_operator(self.name, self.merge_operator, *(name for name, *_ in self.sides))
        for name, _, _, opposite in self.sides:
            topology.connect_processor_and_state_stores(name, opposite)
        if self.waiting is not None:
            topology.add_state_store(self.waiting.builder(config), *(name for name, *_ in self.sides))
