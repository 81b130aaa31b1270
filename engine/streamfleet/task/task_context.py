"""TaskContext: the one object that a task's program, stores and queues share. It is their view of the task.

For the program it is the TaskEnvironment, for the stores the StoreContext. It holds what changes while a record is
under way (record context, stream time, requests, processor metadata, schedules) and passes the rest on to what it was
given. Created and read by StreamTask; GlobalTaskContext is the variant without time, schedules and commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from streamfleet.clock import Clock
from streamfleet.errors import StreamsError
from streamfleet.ids import TaskId
from streamfleet.metrics import Metrics
from streamfleet.ports import Producer, StoreEngine
from streamfleet.processor.api import Cancellable, PunctuationType, Punctuator
from streamfleet.records import NO_TIMESTAMP, Headers, ProducerRecord, RecordContext
from streamfleet.state.api import StateStore, StoreEngineKind
from streamfleet.state.store_caches import StoreCaches
from streamfleet.task.handlers import ErrorHandlers
from streamfleet.task.punctuation import PunctuationQueue, PunctuationSchedule
from streamfleet.task.record_collector import RecordCollector
from streamfleet.task.store_engines import StoreEngines

if TYPE_CHECKING:
    from streamfleet.config import StreamsConfig
    from streamfleet.serdes.api import Serde


T = TypeVar("T")


class TaskContext:
    """Of one StreamTask."""

    def __init__(
        self,
        task_id: TaskId,
        config: StreamsConfig,
        *,
        clock: Clock,
        producer: Producer,
        engines: StoreEngines,
        metrics: Metrics,
        changelogs: Mapping[str, str],
        global_stores: Mapping[str, StateStore],
        state_id: str,
        caches: StoreCaches | None = None,
    ) -> None:
        """`caches` are shared by all tasks of a thread; None: the task is alone."""
        self.task_id = task_id
        self.state_id = state_id
        self.config = config
        self.application_id = config.application_id
        self.caches = caches or StoreCaches(config.statestore_cache_max_bytes, config.statestore_object_cache_max_bytes)
        self.deduplicate_changelog = config.changelog_deduplicate
        self.default_key_serde: Serde[Any] | None = config.default_key_serde
        self.default_value_serde: Serde[Any] | None = config.default_value_serde
        self.handlers = ErrorHandlers.of(config)
        self.processing_handler = self.handlers.processing
        self.sender = RecordCollector(self, producer, self.handlers.production)
        self.stores: Mapping[str, StateStore] = {}
        self.record_context: RecordContext | None = None
        self.stream_time = NO_TIMESTAMP
        self.commit_requested = False
        self.metadata: dict[str, int] = {}
        self.metadata_changed = False
        self.punctuations = {kind: PunctuationQueue() for kind in PunctuationType}
        self._shared: dict[object, Any] = {}
        self._clock = clock
        self._engines = engines
        self._metrics = metrics
        self._changelogs = changelogs
        self._global_stores = global_stores

    # for the program

    def stream_time_ms(self) -> int:
        return self.stream_time

    def system_time_ms(self) -> int:
        return self._clock.now_ms()

    def store(self, name: str) -> StateStore | None:
        return self.stores.get(name)

    def global_store(self, name: str) -> StateStore | None:
        return self._global_stores.get(name)

    def schedule(
        self,
        operator: str,
        interval_ms: int,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        start_ms: int | None,
    ) -> Cancellable:
        is_by_stream_time = punctuation_type is PunctuationType.STREAM_TIME
        now_ms = self.stream_time if is_by_stream_time else self._clock.now_ms()
        # By stream time as soon as there is a record, then at multiples of the interval; by the clock after one interval.
        own_start_ms = 0 if is_by_stream_time else now_ms + interval_ms
        schedule = PunctuationSchedule(operator, own_start_ms if start_ms is None else start_ms, interval_ms, callback)
        if start_ms is not None and start_ms < now_ms:
            schedule.advance_past(now_ms)  # a start in the past only sets the rhythm
        self.punctuations[punctuation_type].add(schedule)
        return schedule

    def request_commit(self) -> None:
        self.commit_requested = True

    def drop(self, name: str, reason: str) -> None:
        self._metrics.record_dropped(name, reason)

    def processor_metadata(self, key: str) -> int | None:
        return self.metadata.get(key)

    def set_processor_metadata(self, key: str, value: int) -> None:
        self.metadata[key] = value
        self.metadata_changed = True

    def shared(self, key: object, make: Callable[[], T]) -> T:
        if key not in self._shared:
            self._shared[key] = make()
        found: T = self._shared[key]
        return found

    def forget_shared(self) -> None:
        self._shared.clear()

    # for the stores

    def engine(self, kind: StoreEngineKind) -> StoreEngine:
        return self._engines.engine(kind)

    def changelog_topic(self, store_name: str) -> str | None:
        return self._changelogs.get(store_name)

    def log_change(
        self, store_name: str, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers
    ) -> None:
        record = ProducerRecord(
            self._changelogs[store_name], key, value, timestamp, headers, partition=self.task_id.partition
        )
        self.sender.send_raw(store_name, record)


class GlobalTaskContext(TaskContext):
    """Of the GlobalTask, whose processors only fill stores."""

    def stream_time_ms(self) -> NoReturn:
        self._refuse("stream time")

    def schedule(self, operator: str, *_: object) -> NoReturn:
        self._refuse(f"punctuation (operator {operator})")

    def _refuse(self, what: str) -> NoReturn:
        raise StreamsError(
            f"there is no {what} in the processor of a global store", hint="use it in a stream processor"
        )
