"""What the engine needs from outside, one Protocol per outside system. Each has one production adapter, the only module that
imports the library behind it. The clock's port is in clock.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Protocol

import msgspec

from streamfleet.ids import TopicPartition
from streamfleet.records import ProducerRecord, RawRecord


class Producer(Protocol):
    """Where results, repartition records, changelog records and dead letters leave a task."""

    def send(self, record: ProducerRecord) -> None:
        """Hand over one record. Raises what the client raises when it refuses the record."""

    def partition_count(self, topic: str) -> int | None:
        """Number of partitions of a topic, None if it is not known (then no partitioner can run)."""


class StoreEngine(Protocol):
    """Ordered bytes to bytes, below the stores: one per task and kind (memory, RocksDB). Keys order as unsigned bytes."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= key < end (None: no upper bound), in key order or its reverse."""

    def write(
        self,
        puts: Iterable[tuple[bytes, bytes]],
        deletes: Iterable[bytes],
        range_deletes: Iterable[tuple[bytes, bytes]],
    ) -> None:
        """Apply range deletes (start <= key < end), then deletes and puts, as one atomic batch."""

    def flush(self) -> None:
        """Make everything written so far durable."""

    def close(self) -> None: ...


# --- Kafka: reading ---------------------------------------------------------------------------------------------------


class OffsetOutOfRange(msgspec.Struct, frozen=True):
    """The offset we wanted to read is not in the log (any more). Nothing more comes from the partition until a seek."""

    partition: TopicPartition
    offset: int


class PartitionUnavailable(msgspec.Struct, frozen=True):
    """Nothing can be read from one partition: `code` is Kafka's name for why (no permission, bad bytes).
    A topic that does not exist is not told: compare topic ids before partitions are assigned.
    """

    partition: TopicPartition
    code: str
    detail: str


class ClientTrouble(msgspec.Struct, frozen=True):
    """Something is wrong with the connection, not with one partition. The client goes on trying by itself."""

    code: str
    detail: str


ConsumerEvent = OffsetOutOfRange | PartitionUnavailable | ClientTrouble


class Consumer(Protocol):
    """Reads the partitions it is told to read, from the offsets it is told. Knows no group and commits nothing."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read exactly these partitions, each from the offset given; what was assigned before is dropped."""

    def incremental_assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions as well. They must not be assigned yet; the others go on undisturbed."""

    def incremental_unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions; those that are not assigned are left out."""

    def assignment(self) -> frozenset[TopicPartition]: ...

    def poll_batch(self, timeout_ms: int, max_records: int) -> list[RawRecord]:
        """Wait for the first record at most that long, then take what is there; in order per partition."""

    def take_events(self) -> Sequence[ConsumerEvent]:
        """What poll_batch was told besides records since the last call."""

    def pause(self, partitions: Iterable[TopicPartition]) -> None: ...

    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on from that offset; a paused partition stays paused."""

    def position(self, partition: TopicPartition) -> int:
        """Offset of the next record, control records of transactions counted; what was asked for until one was read."""

    def lag_records(self, partition: TopicPartition) -> int | None:
        """How far the position is behind the readable end, as of the last fetch; None before anything is known."""

    def close(self) -> None: ...


# --- Kafka: writing ---------------------------------------------------------------------------------------------------


class DeliveryFailure(msgspec.Struct, frozen=True):
    """A record that the client had accepted and that did not reach its topic."""

    record: ProducerRecord
    error: Exception


class ClientProducer(Producer, Protocol):
    """A Producer as the thread that owns it sees it."""

    def poll(self) -> None:
        """Let the client do its callbacks; once per batch of records. Never waits."""

    def flush(self, timeout_ms: int) -> None:
        """Wait until every record sent is delivered or has failed."""

    def take_failures(self) -> Sequence[DeliveryFailure]:
        """Records that failed since the last call; complete after flush."""

    def close(self) -> None:
        """Drop the client; what was not flushed is lost."""


class ProducerIdentity(msgspec.Struct, frozen=True):
    """What the transaction coordinator knows a producer by; needed to add offsets to its transaction."""

    transactional_id: str
    producer_id: int
    epoch: int


class IdempotentProducer(ClientProducer, Protocol):
    """Without transactions. Once `is_usable` is false it must be renewed."""

    @property
    def is_usable(self) -> bool: ...

    def renew(self) -> None:
        """Go on with another client; what the old one had not sent is lost."""


class TransactionalProducer(ClientProducer, Protocol):
    """One transaction after the other. Once `is_usable` is false it must be closed and replaced."""

    @property
    def is_usable(self) -> bool: ...

    @property
    def in_transaction(self) -> bool: ...

    @property
    def has_sent(self) -> bool:
        """Whether this transaction has a record. One without any is not ended by the client: see the group client."""

    @property
    def identity(self) -> ProducerIdentity: ...

    def init(self, timeout_ms: int) -> None:
        """Take over the transactional id: fences its former owner, aborts what that left open."""

    def begin(self) -> None: ...

    def commit(self, timeout_ms: int) -> None: ...

    def abort(self, timeout_ms: int) -> None: ...

    def last_offsets(self) -> Mapping[TopicPartition, int]:
        """Offset of the last record of this transaction in every tracked partition, after flush."""


# --- Kafka: topics ----------------------------------------------------------------------------------------------------


class OffsetKind(Enum):
    """Which end of a partition is asked for."""

    EARLIEST = "earliest"
    HIGH_WATERMARK = "high_watermark"
    """Behind the last replicated record, those of open transactions included: where a restore must end."""
    LAST_STABLE = "last_stable"
    """Behind the last record that no open transaction can take back: where a read_committed consumer ends."""


class TopicInfo(msgspec.Struct, frozen=True):
    """A topic as the cluster knows it. The id changes when the topic is deleted and created again under its name."""

    name: str
    topic_id: str
    partitions: int


class TopicToCreate(msgspec.Struct, frozen=True):
    """`replication_factor` -1 takes the cluster's default."""

    name: str
    partitions: int
    configs: dict[str, str]
    replication_factor: int = -1


class ClusterReader(Protocol):
    """What the leader of a group asks the cluster before it assigns tasks. Every call answers soon or fails: all others wait."""

    def list_offsets(self, partitions: Iterable[TopicPartition], kind: OffsetKind) -> dict[TopicPartition, int]: ...

    def committed(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """How far the group has processed its inputs; partitions of which it has committed nothing are left out."""

    def partition_racks(self, names: Iterable[str]) -> dict[TopicPartition, frozenset[str]]:
        """Racks of the brokers that have a replica, for all partitions of these topics; empty where brokers have no rack."""


class Admin(Protocol):
    """Topics and their offsets. Every call waits for an absent broker until its deadline, and says so meanwhile."""

    def topic_names(self) -> frozenset[str]: ...

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicInfo]:
        """By name; topics that do not exist are left out."""

    def create_topics(self, topics: Iterable[TopicToCreate]) -> frozenset[str]:
        """Names of those that were created now; a topic that exists is left as it is. All can be described then."""

    def describe_configs(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """All settings of existing topics, defaults included."""

    def list_offsets(self, partitions: Iterable[TopicPartition], kind: OffsetKind) -> dict[TopicPartition, int]: ...

    def offsets_since(self, partitions: Iterable[TopicPartition], since_ms: int) -> dict[TopicPartition, int]:
        """Offset of the first record with that timestamp or a later one; the readable end where there is none."""

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete records with smaller offsets; the new first offset of each partition."""

    def delete_topics(self, names: Iterable[str]) -> frozenset[str]:
        """Names of those that were there to delete."""

    def close(self) -> None: ...
