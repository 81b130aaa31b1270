"""StandbyTask: a copy of the stores of one task, without its processors. The StateUpdater replays the changelogs into it.

Kept where the active task is not, so that another process can go on with it at once. It becomes the active task by handing over its
engines (`detach`), databases open as they are, and is made of an active task the same way: see TaskFactory. A warm-up is a
StandbyTask, too; only the group's plan knows the difference. All of it belongs to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from streamfleet.errors import StreamsError
from streamfleet.ids import TaskId, TopicPartition
from streamfleet.metrics import Metrics
from streamfleet.ports import StoreEngine
from streamfleet.records import Headers, RawRecord, RecordContext
from streamfleet.state.api import StateStore, StoreEngineKind
from streamfleet.state.committed_stores import CommittedStores
from streamfleet.state.store_caches import StoreCaches
from streamfleet.state.task_state import TaskState
from streamfleet.task import restoration
from streamfleet.task.store_engines import StoreEngines
from streamfleet.topology.nodes import ProcessorTopology

if TYPE_CHECKING:
    from streamfleet.config import StreamsConfig
    from streamfleet.serdes.api import Serde


class StandbyContext:
    """The StoreContext of a copy: nothing is cached and nothing is logged, since nobody writes but the changelog."""

    deduplicate_changelog = False
    record_context: RecordContext | None = None

    def __init__(
        self,
        task_id: TaskId,
        config: StreamsConfig,
        engines: StoreEngines,
        metrics: Metrics,
        changelogs: Mapping[str, str],
        state_id: str,
    ) -> None:
        self.task_id = task_id
        self.state_id = state_id
        self.application_id = config.application_id
        self.default_key_serde: Serde[Any] | None = config.default_key_serde
        self.default_value_serde: Serde[Any] | None = config.default_value_serde
        self._engines = engines
        self._metrics = metrics
        self._changelogs = changelogs
        self.caches = StoreCaches(0, 0)

    def engine(self, kind: StoreEngineKind) -> StoreEngine:
        return self._engines.engine(kind)

    def changelog_topic(self, store_name: str) -> str | None:
        return self._changelogs.get(store_name)

    def log_change(
        self, store_name: str, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers
    ) -> NoReturn:
        raise StreamsError(f"store {store_name} of a standby task was written to; only its active task may")

    def drop(self, store_name: str, reason: str) -> None:
        self._metrics.record_dropped(store_name, reason)


class StandbyTask:
    """`state_id` names the task's rows on disk, `topic_ids` are the present ids of its changelog topics."""

    def __init__(
        self,
        task_id: TaskId,
        topology: ProcessorTopology,
        config: StreamsConfig,
        *,
        engines: StoreEngines,
        metrics: Metrics,
        state_id: str,
        topic_ids: Mapping[str, str] | None = None,
        snapshots: Path | None = None,
    ) -> None:
        self.task_id = task_id
        self._entries = topology.stores
        self._engines = engines
        changelogs = {entry.name: entry.changelog for entry in topology.stores if entry.changelog is not None}
        self._context = StandbyContext(task_id, config, engines, metrics, changelogs, state_id)
        self._topic_ids = topic_ids
        self._snapshots = snapshots
        self._state: TaskState | None = None

    def initialize(self) -> None:
        """Open the stores."""
        self._state = TaskState(self._context, self._entries, self._topic_ids, self._snapshots)

    @property
    def stores(self) -> Mapping[str, StateStore]:
        return {} if self._state is None else self._state.stores

    @property
    def committed_stores(self) -> CommittedStores | None:
        """The stores as far as they were replayed, for any thread; None unless they are open."""
        return None if self._state is None else self._state.committed

    @property
    def source_changelogs(self) -> frozenset[str]:
        return restoration.source_changelogs(self._entries)

    @property
    def changelog_stores(self) -> Mapping[str, str]:
        return restoration.changelog_stores(self._entries)

    def restore_positions(self) -> dict[TopicPartition, int | None]:
        return restoration.restore_positions(self._entries, self._opened, self.task_id.partition)

    def restore(self, partition: TopicPartition, records: Iterable[RawRecord], last_offset: int) -> None:
        restoration.apply_changelog(self._entries, self._opened, partition.topic, records, last_offset)

    def offset_sum_on_disk(self) -> int:
        return restoration.offset_sum_on_disk(self._entries, self._opened)

    def detach(self) -> StoreEngines:
        """Close the stores and give their engines away, open as they are."""
        if self._state is not None:
            self._state.close()
            self._state = None
        return self._engines

    def close(self) -> None:
        """The rows stay on disk."""
        self.detach().close()

    @property
    def _opened(self) -> TaskState:
        if self._state is None:
            raise StreamsError(f"standby task {self.task_id} is not open")
        return self._state
