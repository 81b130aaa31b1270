"""The batches of a partition as they lie in the broker's log files, with what no consumer shows: who wrote them, and markers.

Called by the checker while the broker runs or after. Turns bytes into WrittenBatch and those into a verdict about owners: the
committed transactions of two producers must not overlap in a changelog partition, because then both thought that they own
the task.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kafka.record import MemoryRecords  # type: ignore[import-untyped]
from tests.ledger.oracle import Anomaly

from streamfleet.records import RawRecord

# base offset, length, leader epoch, magic, crc, attributes, last offset delta, two timestamps, producer id, producer epoch,
# base sequence, count
_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH = 12
_IS_TRANSACTIONAL = 0x10
_IS_CONTROL = 0x20
MOST_BESIDE = 100
"""A transaction does not overlap more than that: its producer would have been thrown out long before."""
_MARKER = struct.Struct(">hh")
COORDINATOR_LOG = "__transaction_state"
_STATE = struct.Struct(">hqhib")
"""Version, producer id, epoch, time-out and state of a transaction, where a record of the coordinator's log begins."""
_COMPLETE = (4, 5)
"""The states after a commit and after an abort."""


@dataclass(frozen=True)
class WrittenBatch:
    first_offset: int
    producer_id: int
    epoch: int
    is_transactional: bool
    marker: str | None
    """commit or abort; None: it has records."""


@dataclass(frozen=True)
class Transaction:
    """A committed one, as far as it is in one partition."""

    producer_id: int
    epoch: int
    first_offset: int
    marker_offset: int


def partition_batches(data_directory: Path, topic: str, partition: int) -> list[WrittenBatch]:
    return batches_in(data_directory / f"{topic}-{partition}")


def batches_in(partition_directory: Path) -> list[WrittenBatch]:
    return [batch for file in sorted(partition_directory.glob("*.log")) for batch in parse_batches(file.read_bytes())]


def partition_records(data_directory: Path, topic: str, partition: int) -> list[tuple[RawRecord, int]]:
    """With who wrote them. What was purged is among them, as long as its file is there: a purge moves the start of the log only."""
    found: list[tuple[RawRecord, int]] = []
    for file in sorted((data_directory / f"{topic}-{partition}").glob("*.log")):
        batches = MemoryRecords(file.read_bytes())
        while (batch := batches.next_batch()) is not None:
            found += [
                (
                    RawRecord(topic, partition, each.offset, each.timestamp, each.key, each.value, tuple(each.headers)),
                    batch.producer_id,
                )
                for each in batch
                if not batch.is_control_batch
            ]
    return found


def parse_batches(data: bytes) -> Iterator[WrittenBatch]:
    """Ends at the first incomplete batch: the broker may be writing it."""
    at = 0
    while at + _HEADER.size <= len(data):
        base, length, _, _, _, attributes, _, _, _, producer_id, epoch, _, _ = _HEADER.unpack_from(data, at)
        end = at + _BEFORE_LENGTH + length
        if length <= 0 or end > len(data):
            return  # preallocated or half written
        marker = _marker(data[at + _HEADER.size : end]) if attributes & _IS_CONTROL else None
        yield WrittenBatch(base, producer_id, epoch, bool(attributes & _IS_TRANSACTIONAL), marker)
        at = end


def _marker(record: bytes) -> str:
    """A record of a control batch: varints length, time and offset around one byte of attributes, then the key with its length."""
    at = _skip_varint(record, 0) + 1
    at = _skip_varint(record, _skip_varint(record, at))
    _, kind = _MARKER.unpack_from(record, _skip_varint(record, at))
    return "commit" if kind == 1 else "abort"


def _skip_varint(data: bytes, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1


def committed_transactions(batches: Iterable[WrittenBatch]) -> list[Transaction]:
    open_since: dict[int, int] = {}
    found = []
    for batch in batches:
        if not batch.is_transactional:
            continue
        if batch.marker is None:
            open_since.setdefault(batch.producer_id, batch.first_offset)
            continue
        began = open_since.pop(batch.producer_id, None)
        if batch.marker == "commit" and began is not None:
            found.append(Transaction(batch.producer_id, batch.epoch, began, batch.first_offset))
    return found


def open_transactions(batches: Iterable[WrittenBatch]) -> dict[int, WrittenBatch]:
    """Producers whose last transaction has no marker, with its first batch."""
    found: dict[int, WrittenBatch] = {}
    for batch in batches:
        if batch.marker is not None:
            found.pop(batch.producer_id, None)
        elif batch.is_transactional:
            found.setdefault(batch.producer_id, batch)
    return found


def completed_transactions(coordinator_log: Iterable[RawRecord]) -> set[tuple[int, int]]:
    """Producers and epochs whose last transaction is over: the broker has written that all its markers are where they belong.

    It does so as well where it has given them up, because it takes partitions without leader for deleted ones: a defect of 4.x
    brokers (KAFKA-20734). Partitions are without leader while the controller has given up the broker, so the session between the
    two (`broker.session.timeout.ms`) stays at its 9 s here: a shorter one ends whenever a busy machine lets it wait.
    """
    last: dict[tuple[int, int], int] = {}
    for record in coordinator_log:
        if record.value is not None:
            _, producer, epoch, _, state = _STATE.unpack_from(record.value)
            last[producer, epoch] = state
    return {who for who, state in last.items() if state in _COMPLETE}


def check_owners(where: str, transactions: list[Transaction]) -> list[Anomaly]:
    """`transactions` are in the order of their markers."""
    anomalies: list[Anomaly] = []
    epochs: dict[int, int] = {}
    for number, later in enumerate(transactions):
        beside = itertools.takewhile(
            lambda earlier: earlier.marker_offset > later.first_offset,  # noqa: B023  (used up in this turn of the loop)
            reversed(transactions[:number][-MOST_BESIDE:]),
        )
        anomalies += [
            Anomaly("two owners", where, f"{earlier} and {later} overlap")
            for earlier in beside
            if earlier.producer_id != later.producer_id
        ]
        if later.epoch < epochs.get(later.producer_id, later.epoch):
            anomalies.append(Anomaly("two owners", where, f"{later} has an older epoch than one before it"))
        epochs[later.producer_id] = later.epoch
    return anomalies
