"""The Consumer port over librdkafka: assigned partitions in, batches of RawRecords out.

Used by the StreamThread (main), the StateUpdater (restore) and the global tables; what differs between them is in
their settings (client_settings.py). It never subscribes and never commits: the group client does both.

End offsets are not asked here. A read_committed librdkafka consumer answers with the last stable offset where the high
watermark is meant, and a restore that ends there misses records: `Admin.list_offsets` has both, by name.
Nor does librdkafka say that an assigned topic does not exist, or was deleted or made anew: whoever assigns partitions
compares topic ids (`Admin.describe_topics`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer as LibrdkafkaConsumer
from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as Partition

from streamfleet.errors import StreamsError
from streamfleet.ids import TopicPartition
from streamfleet.kafka.client_failures import call_client
from streamfleet.kafka.client_making import make_client
from streamfleet.ports import ClientTrouble, ConsumerEvent, OffsetOutOfRange, PartitionUnavailable
from streamfleet.records import RawRecord

_END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001  (librdkafka's own codes begin with an underscore)
_OUT_OF_RANGE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # noqa: SLF001


class KafkaConsumer:
    """Implements Consumer."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._client = make_client(LibrdkafkaConsumer, settings, error_cb=self._trouble)
        self._started_at: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._ends: dict[TopicPartition, int] = {}
        self._events: list[ConsumerEvent] = []

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self.incremental_unassign(list(self._started_at))
        self.incremental_assign(positions)

    def incremental_assign(self, positions: Mapping[TopicPartition, int]) -> None:
        for partition, offset in positions.items():
            if offset < 0:
                raise StreamsError(f"{partition} cannot be read from offset {offset}", hint="look up the offset first")
            if partition in self._started_at:
                raise StreamsError(f"{partition} is assigned already", hint="use seek to move it")
        if positions:
            chosen = [Partition(partition.topic, partition.partition, at) for partition, at in positions.items()]
            call_client("assigning partitions", self._client.incremental_assign, chosen)
            self._started_at.update(positions)

    def incremental_unassign(self, partitions: Iterable[TopicPartition]) -> None:
        known = [partition for partition in partitions if partition in self._started_at]
        if known:
            # Or librdkafka leaves them paused when they are assigned again.
            self.resume(self._paused.intersection(known))
            call_client("giving up partitions", self._client.incremental_unassign, _named(known))
            for partition in known:
                del self._started_at[partition]
                self._ends.pop(partition, None)
                self._paused.discard(partition)

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._started_at)

    def poll_batch(self, timeout_ms: int, max_records: int) -> list[RawRecord]:
        # consume(n, timeout) would wait for n records until the time-out, however many there are.
        first = call_client("reading records", self._client.poll, timeout_ms / 1000)
        if first is None:
            return []
        rest = call_client("reading records", self._client.consume, max_records - 1, 0) if max_records > 1 else []
        return self._raw([first, *rest])

    def take_events(self) -> Sequence[ConsumerEvent]:
        events, self._events = self._events, []
        return events

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        known = [partition for partition in partitions if partition in self._started_at]
        if known:
            call_client("pausing partitions", self._client.pause, _named(known))
            self._paused.update(known)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        known = [partition for partition in partitions if partition in self._started_at]
        if known:
            call_client("resuming partitions", self._client.resume, _named(known))
            self._paused.difference_update(known)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        # librdkafka's seek fails while a partition is still being assigned; assigning it anew always works.
        was_paused = partition in self._paused
        self.incremental_unassign([partition])
        self.incremental_assign({partition: offset})
        if was_paused:
            self.pause([partition])

    def position(self, partition: TopicPartition) -> int:
        [at] = call_client("asking for the position", self._client.position, _named([self._assigned(partition)]))
        # Before the first record librdkafka knows none, and it does not count what a compacted log lacks at its end.
        return max(at.offset, self._started_at[partition], self._ends.get(partition, 0))

    def lag_records(self, partition: TopicPartition) -> int | None:
        position = self.position(partition)
        if self._ends.get(partition) == position:
            return 0
        known = Partition(partition.topic, partition.partition)
        _, high_watermark = self._client.get_watermark_offsets(known, cached=True)
        return None if high_watermark < 0 else max(0, high_watermark - position)

    def close(self) -> None:
        call_client("closing the consumer", self._client.close)

    def _assigned(self, partition: TopicPartition) -> TopicPartition:
        if partition not in self._started_at:
            raise StreamsError(f"{partition} is not assigned to this consumer")
        return partition

    def _raw(self, messages: list[Message]) -> list[RawRecord]:
        records = []
        for message in messages:
            if message.error() is not None:
                self._note(message)
                continue
            records.append(
                RawRecord(
                    message.topic(),  # type: ignore[arg-type]  # set on every message without an error
                    message.partition(),  # type: ignore[arg-type]
                    message.offset(),  # type: ignore[arg-type]
                    message.timestamp()[1],
                    message.key(),
                    message.value(),
                    tuple(headers) if (headers := message.headers()) else (),  # type: ignore[arg-type]
                )
            )
        return records

    def _note(self, message: Message) -> None:
        error, topic, number = message.error(), message.topic(), message.partition()
        assert error is not None
        if topic is None or number is None or number < 0:
            self._trouble(error)
            return
        partition, offset = TopicPartition(topic, number), message.offset()
        if error.code() == _END_OF_PARTITION:
            if offset is not None and partition in self._started_at:
                self._ends[partition] = offset
        elif error.code() in _OUT_OF_RANGE:
            self._events.append(OffsetOutOfRange(partition, self._wanted(partition, offset)))
        else:
            self._events.append(PartitionUnavailable(partition, error.name(), error.str()))

    def _wanted(self, partition: TopicPartition, reported: int | None) -> int:
        return reported if reported is not None and reported >= 0 else self._started_at.get(partition, 0)

    def _trouble(self, error: KafkaError) -> None:
        self._events.append(ClientTrouble(error.name(), error.str()))


def _named(partitions: Iterable[TopicPartition]) -> list[Partition]:
    return [Partition(partition.topic, partition.partition) for partition in partitions]
