"""StoreCatalogue: which sub-topology has a store, how many partitions that makes, and which of them has a key.

A pure function of the topology and its plan, made once per app; local_queries.py and hosts.py ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streamfleet.assignment.snapshot import TaskKey
from streamfleet.errors import StoreUnavailableError, TopologyError
from streamfleet.ids import TaskId
from streamfleet.partitioner import partition_for
from streamfleet.records import Windowed
from streamfleet.serdes.api import Serde, resolved
from streamfleet.state.api import StateStore, StoreBuilder
from streamfleet.thread.task_factory import TaskFactory

KeyPartitioner = Callable[[Any, int], int]
"""f(key, number of partitions) -> partition, where records did not get to their partitions by Kafka's default."""


@dataclass(frozen=True)
class StorePlace:
    """`sub_topology` is None for a global store: every process has all of it, and it has no partitions."""

    name: str
    builder: StoreBuilder[StateStore]
    changelog: str
    """The topic that its serdes are told, also where there is none."""
    sub_topology: int | None
    content_id: str | None
    partitions: int
    is_logged: bool = False

    def task(self, partition: int) -> TaskId:
        assert self.sub_topology is not None
        return TaskId(self.sub_topology, partition)

    def task_key(self, partition: int) -> TaskKey:
        assert self.content_id is not None
        return TaskKey(self.content_id, partition)


class StoreCatalogue:
    def __init__(self, factory: TaskFactory) -> None:
        self._config = factory.config
        self._places = _places(factory)
        self._serdes: dict[tuple[str, str], Serde[Any]] = {}
        """By store and side, as they are asked for: every query needs them, and resolving one costs more than using it."""

    @property
    def places(self) -> Mapping[str, StorePlace]:
        return self._places

    def place(self, store: str) -> StorePlace:
        if store not in self._places:
            raise StoreUnavailableError(
                f"there is no store {store}", hint=f"this app has {', '.join(sorted(self._places)) or 'none'}"
            )
        return self._places[store]

    def key_serde(self, store: str) -> Serde[Any]:
        """Of a windowed store: that of the key alone."""
        return self._serde(store, "key", self._config.default_key_serde)

    def value_serde(self, store: str) -> Serde[Any]:
        return self._serde(store, "value", self._config.default_value_serde)

    def _serde(self, store: str, side: str, default: Serde[Any] | None) -> Serde[Any]:
        found = self._serdes.get((store, side))
        if found is None:
            found = self._serdes[store, side] = self._resolved(store, side, default)
        return found

    def _resolved(self, store: str, side: str, default: Serde[Any] | None) -> Serde[Any]:
        given: Serde[Any] | None = getattr(self.place(store).builder, f"{side}_serde", None)
        chosen = resolved(given, default)
        if chosen is None:
            raise TopologyError(f"store {store} has no {side} serde", hint=f"pass {side}_serde where it is declared")
        return chosen

    def partition_of(
        self, store: str, key: Any, key_serde: Serde[Any] | None = None, partitioner: KeyPartitioner | None = None
    ) -> int:
        """Where a key lives: by Kafka's own partitioner, which all producers share. Windows go with their key."""
        place = self.place(store)
        plain = key.key if isinstance(key, Windowed) else key
        if partitioner is not None:
            return partitioner(plain, place.partitions)
        data = (key_serde or self.key_serde(store)).serialize(place.changelog, plain)
        if data is None:
            raise TypeError(f"a key of store {store} cannot be null")
        return partition_for(data, place.partitions)


def _places(factory: TaskFactory) -> dict[str, StorePlace]:
    topology, application_id = factory.topology, factory.config.application_id
    places: dict[str, StorePlace] = {}
    for part in topology.sub_topologies():
        plan = factory.plan.sub_topologies.get(part.id)
        if plan is None:
            continue
        for name in part.stores:
            if name in topology.stores:
                changelog = topology.changelog_topic(name, application_id, factory.config.store_epochs)
                places[name] = StorePlace(
                    name,
                    topology.stores[name],
                    changelog or f"{application_id}-{name}-changelog",
                    part.id,
                    part.content_id,
                    plan.tasks,
                    is_logged=changelog is not None,
                )
    for name, entry in topology.global_stores.items():
        places[name] = StorePlace(name, entry.builder, f"{application_id}-{name}-changelog", None, None, 0)
    return places
