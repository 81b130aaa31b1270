"""The input partitions of a task and the choice of the next records: the smallest head timestamp over all of them.

Owned by StreamTask. Records of one partition never change their order. A partition with nothing buffered may hold the
task back (`max.task.idle.ms`), because its next record could be older than all others; what the broker still has for
it is asked for through `LagOf`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from streamfleet.compiler.program import InputRecord
from streamfleet.ids import TopicPartition
from streamfleet.records import NO_TIMESTAMP, RawRecord
from streamfleet.task.binary_heap import BinaryHeap
from streamfleet.task.record_queue import RecordQueue

LagOf = Callable[[TopicPartition], int | None]
"""Number of records on the broker that were not fetched yet; None if that is not known."""

NEVER_WAIT = -1


class PartitionGroup:
    """Queues by partition, the non-empty ones also by time."""

    def __init__(self, queues: Mapping[TopicPartition, RecordQueue], max_task_idle_ms: int, lag_of: LagOf) -> None:
        self._queues = dict(queues)
        self._by_time: BinaryHeap[RecordQueue] = BinaryHeap(lambda queue: queue.head_timestamp)
        self._max_task_idle_ms = max_task_idle_ms
        self._lag_of = lag_of
        self._deadlines_ms: dict[TopicPartition, int] = {}
        self.stream_time_ms = NO_TIMESTAMP

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self._queues)

    @property
    def has_records(self) -> bool:
        return len(self._by_time) > 0

    def buffered(self, partition: TopicPartition) -> int:
        return len(self._queues[partition])

    def head_offset(self, partition: TopicPartition) -> int | None:
        return self._queues[partition].head_offset

    def partition_time(self, partition: TopicPartition) -> int:
        return self._queues[partition].partition_time

    def set_partition_time(self, partition: TopicPartition, timestamp: int) -> None:
        """Go on with the time that was committed with the offset."""
        self._queues[partition].partition_time = timestamp
        self.stream_time_ms = max(self.stream_time_ms, timestamp)

    def add(self, partition: TopicPartition, records: Iterable[RawRecord]) -> int:
        """Buffer records; returns how many the partition now has."""
        queue = self._queues[partition]
        was_empty = not len(queue)
        queue.add(records)
        if was_empty and len(queue):
            self._by_time.push(queue)
        return len(queue)

    def take(self, limit: int) -> tuple[RecordQueue, list[InputRecord]] | None:
        """The next records, at most `limit`, all of one queue: as many as would come one by one, without another queue between.
        The list is empty where a record was passed over.
        """
        queue = self._by_time.pop()
        if queue is None:
            return None
        other = self._by_time.peek()
        if other is None:
            batch = queue.take(limit)
        elif len(self._by_time) == 1:
            batch = queue.take(limit, other.head_timestamp)
        else:
            # Among three, the order of equals depends on every step of the heap.
            batch = queue.take(1)
        if len(queue):
            self._by_time.push(queue)
        self.stream_time_ms = max(self.stream_time_ms, queue.partition_time)
        return queue, batch

    def is_ready(self, now_ms: int) -> bool:
        """Whether the next record may be taken now, or an empty partition has to be waited for."""
        if self._max_task_idle_ms == NEVER_WAIT:
            return self.has_records
        for partition, queue in self._queues.items():
            if len(queue):
                self._deadlines_ms.pop(partition, None)
            elif not self._has_waited_for(partition, now_ms):
                return False
        return self.has_records

    def _has_waited_for(self, partition: TopicPartition, now_ms: int) -> bool:
        lag = self._lag_of(partition)
        if lag is None or lag > 0:
            # There is data, or there may be: it has to be fetched, however long that takes.
            self._deadlines_ms.pop(partition, None)
            return False
        deadline_ms = self._deadlines_ms.setdefault(partition, now_ms + self._max_task_idle_ms)
        return now_ms >= deadline_ms

    def clear(self) -> None:
        for queue in self._queues.values():
            queue.clear()
        self._by_time.clear()
        self._deadlines_ms.clear()
        self.stream_time_ms = NO_TIMESTAMP
